#!/usr/bin/env bash
# Interoperability with libusrsctp: associations between our stack (peer/) and usrsctp (theirs/), in
# two network namespaces that this script makes and removes. Needs root on Debian.
#
#   test/interop/run.sh [regexp]     only the rows whose name matches
#
# COUNT is the number of messages of the long rows (100000). SHORT=1 leaves out all but two rows with
# pion/sctp. KEEP=1 keeps captures and reports.
# One line per check; the last line is "N passed, M failed".
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
only=${1:-.}
count=${COUNT:-100000}
keep=${KEEP:-}
peer_name=usrsctp
. test/interop/lib.sh
. test/interop/reconfig.sh
. test/interop/extensions.sh
install /usr/include/usrsctp.h:libusrsctp-dev

of_capture() { reconfig_of_both "$1"; }

make_net() {
	local n
	for n in "$A" "$B"; do
		ip netns add "$n" && ip -n "$n" link set lo up || return
		echo 0 | ip netns exec "$n" tee /proc/sys/net/ipv6/conf/default/accept_dad >/dev/null
	done
	# Two links, for paths; one packet is one packet, for captures and for loss: no segmentation
	# offload of UDP.
	for n in v w; do
		ip -n "$A" link add $n type veth peer name $n netns "$B" &&
			ip -n "$A" link set $n gso_max_segs 1 up && ip -n "$B" link set $n gso_max_segs 1 up || return
	done
	ip -n "$A" addr add 10.77.0.1/24 dev v && ip -n "$A" addr add fd77::1/64 dev v nodad && ip -n "$A" addr add 10.78.0.1/24 dev w &&
		ip -n "$B" addr add 10.77.0.2/24 dev v && ip -n "$B" addr add fd77::2/64 dev v nodad && ip -n "$B" addr add 10.78.0.2/24 dev w || return
	for _ in {1..50}; do
		ip netns exec "$A" ping -c1 -W1 fd77::2 >/dev/null 2>&1 && return
		sleep 0.1
	done
	return 1
}

# quiet keeps usrsctp's host from telling us that it has no SCTP; unquiet ends that.
quiet() {
	ip netns exec "$B" nft -f - <<-'END'
		table inet quiet {
			chain out {
				type filter hook output priority 0
				icmp type destination-unreachable icmp code prot-unreachable drop
				icmpv6 type parameter-problem drop
			}
		}
	END
}
unquiet() { undrop "$B" quiet; }

# hold keeps all of SCTP by IP from either host, and sever drops what goes over the first link;
# unhold and rejoin end that.
hold() { local n; for n in "$A" "$B"; do drop "$n" wall 'meta l4proto sctp'; done; }
unhold() { local n; for n in "$A" "$B"; do undrop "$n" wall; done; }
sever() { local n; for n in "$A" "$B"; do drop "$n" cut "iifname v"; done; }
rejoin() { local n; for n in "$A" "$B"; do undrop "$n" cut; done; }

# link raw4|raw6|udp4|multi
link() {
	flags=() ours=(10.77.0.1) theirs=(10.77.0.2)
	case $1 in
	raw6) ours=(fd77::1) theirs=(fd77::2) ;;
	udp4) flags=(--udp) ;;
	multi) ours+=(10.78.0.1) theirs+=(10.78.0.2) ;;
	esac
}

them() {
	local name=$1 role=$2
	shift 2
	if [[ $role = server ]]; then role=(--server); else role=("${ours[@]/#/--peer=}"); fi
	start "$B" "$dir/$name.theirs" "$dir/theirs" "${role[@]}" "${theirs[@]/#/--local=}" --seed 2 --peer-seed 1 "${flags[@]}" "$@"
}

$GO build -o "$dir/ours" ./test/interop/peer || exit 2
gcc -std=gnu11 -O2 -Wall -Wextra -Werror -o "$dir/theirs" test/interop/theirs/{peer,options,pattern,report,resets,usrsctp}.c -lusrsctp -lpthread || exit 2
make_net || { echo "$me: cannot make the network" >&2; exit 2; }

# Much data both ways at once.
for who in us them; do
	both "bulk-raw4-$who" raw4 $who 60 --send "$count" --expect "$count" --streams 100 --order both
	both "bulk-raw6-$who" raw6 $who 60 --send "$count" --expect "$count" --streams 1000 --order ordered
	both "bulk-udp4-$who" udp4 $who 60 --send "$count" --expect "$count" --streams 3 --order unordered
	both "long-messages-$who" raw4 $who 60 --send $((count / 100)) --expect $((count / 100)) --sizes big --order both
	both "small-buffers-$who" udp4 $who 60 --send $((count / 200)) --expect $((count / 200)) --sizes big --buffer 70000
done

# The same with two packets of a hundred lost each way. RTO.Min is lowered to keep the row short,
# but not below the other end's delay of acknowledgements.
lossy
for who in us them; do
	both "loss-raw4-$who" raw4 $who 120 --send "$count" --expect "$count" --streams 100 --order both --rto-min 250
	both "loss-raw6-$who" raw6 $who 60 --send $((count / 10)) --expect $((count / 10)) --order ordered --rto-min 250
	both "loss-udp4-$who" udp4 $who 60 --send $((count / 10)) --expect $((count / 10)) --order unordered --rto-min 250
	both "loss-defaults-$who" raw4 $who 60 --send $((count / 20)) --expect $((count / 20)) --order both
done

shutdown_rows
for who in us them; do asking_rows $who raw4 loss ordered; done # of unordered messages see README.md
lossless

for who in us them; do
	asking_rows $who raw4 raw4 both
	asking_rows $who udp4 udp4 both
	[[ $only = . ]] || tsns_rows $who # which does not pass each time, see README.md
	extension_rows $who
done
both_end us

# One end shuts down while the other is still sending: what the other has queued by then arrives.
mine=(--send 200000) yours=(--expect 100 --partial --end shutdown)
row shutdown-against-us raw4 us 30 && {
	ended shutdown-against-us
	accepted=$(sed -n 's/^send-failed index=\([0-9]*\).*/\1/p' "$dir/shutdown-against-us.ours")
	expect shutdown-against-us theirs "^received ${accepted:-?} " "usrsctp has the ${accepted:-?} messages taken before the shutdown"
}

# Abort with a reason.
for who in us them; do
	for aborter in us them; do
		name=abort-by-$aborter-$who
		reason="enough of this, says $aborter"
		mine=(--send 5000 --partial) yours=(--send 5000 --partial)
		if [[ $aborter = us ]]; then
			mine=(--expect 1000 --end abort --reason "$reason" --partial)
		else
			yours=(--expect 1000 --end abort --reason "$reason" --partial)
		fi
		row "$name" raw4 $who 30 && {
			expect "$name" "$(report $aborter)" '^end abort by=self' "aborted"
			expect "$name" "$(report "$(other $aborter)")" "^end abort by=peer reason=\"$reason\"" "the other end has the reason"
		}
	done
done

# The client's process dies in the middle of the transfer and starts anew from the same address and
# port. In between its host keeps quiet, or the association would end before. As the server usrsctp
# only receives: after a restart it never lets its user send again (0.9.5).
for who in us them; do
	name=restart-$who
	[[ $name =~ $only ]] || continue
	link raw4
	capture "$name"
	server=$(other $who) back=500
	[[ $server = us ]] || back=0
	common=(--sizes big --order both --timeout 30)
	$server "$name" server "${common[@]}" --send $back --expect 500 --peer-run 1; first=$pid
	await 5 "$dir/$name.$(report "$server")" ^listening
	$who "$name.dead" client "${common[@]}" --send 100000 --local-port 50001
	await 5 "$dir/$name.dead.$(report $who)" ^up
	sleep 0.2
	quiet
	murder "$pid"
	$who "$name" client "${common[@]}" --send 500 --expect $back --run 1 --peer-run 1 --local-port 50001 --end shutdown
	await 30 "$dir/$name.ours" ^result && await 10 "$dir/$name.theirs" ^result
	stop "$first" "$pid"
	unquiet
	expect "$name" "$(report "$server")" '^restart' "the server sees the restart"
	expect "$name" ours '^result ok' "we have all of the new run"
	expect "$name" theirs '^result ok' "usrsctp has all of the new run"
	ended "$name"
	rate "$name"
	captured "$name"
done

for who in us them; do multihoming $who multi 10.77.0.2 10.77.0.1; done

# Odd cases.

for who in us them; do refused $who; done

# A COOKIE ECHO that comes when the cookie has expired: the client starts over.
for who in us them; do
	name=stale-cookie-$who
	[[ $name =~ $only ]] || continue
	if [[ $who = us ]]; then at=$B; else at=$A; fi
	drop "$at" late '@th,96,8 10' # chunk type COOKIE ECHO
	(sleep 2 && undrop "$at" late) &
	lift=$!
	mine=(--send 10 --expect 10 --cookie-life 1000) yours=("${mine[@]}")
	if [[ $who = us ]]; then mine+=(--end shutdown); else yours+=(--end shutdown); fi
	row "$name" raw4 $who 30 && ended "$name"
	wait "$lift"
done

collision
# usrsctp's process is gone: its host's kernel says that it has no SCTP, and the association ends
# (ICMP8 of section 10). That the kernel also says so when the buffer of usrsctp's raw socket, which
# is small, runs over is what the rows with much data meet.
name=unreachable
[[ $name =~ $only ]] && {
	link raw4
	them "$name" server; first=$pid
	await 5 "$dir/$name.theirs" ^listening
	us "$name" client --send 100000 --sizes big --partial
	await 5 "$dir/$name.ours" ^up
	sleep 0.2
	murder "$first"
	await 20 "$dir/$name.ours" ^result
	stop "$pid"
	expect "$name" ours '^end error .*nobody speaks SCTP there' "we learn by ICMP that usrsctp is gone"
}

. test/interop/pion.sh
pion_rows

echo "$passed passed, $failed failed"
((failed == 0))
