#!/usr/bin/env bash
# Interoperability with Linux's own SCTP: associations between our stack (peer/) in a network
# namespace and the kernel of a guest (theirs/, by its socket), which qemu runs behind a bridge.
# Needs root on Debian.
#
#   test/interop/linux.sh [regexp]     only the rows whose name matches
#
# COUNT is the number of messages of the long rows (10000). KEEP=1 keeps captures and reports.
# One line per check; the last line is "N passed, M failed".
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
only=${1:-.}
count=${COUNT:-10000}
keep=${KEEP:-}
peer_name=Linux
. test/interop/lib.sh
. test/interop/reconfig.sh
. test/interop/extensions.sh
. test/interop/linux/guest.sh
install qemu-system-x86_64:qemu-system-x86 xz:xz-utils cpio:cpio /sbin/depmod:kmod busybox:busybox-static /usr/include/linux/sctp.h:linux-libc-dev \
	/usr/lib/x86_64-linux-gnu/libc.a:libc6-dev

# Two links between our namespace and the guest's two cards, each a bridge in $B, where packets can
# be lost.
make_net() {
	local n vlink=(v w)
	for n in "$A" "$B"; do
		ip netns add "$n" && ip -n "$n" link set lo up || return
		echo 0 | ip netns exec "$n" tee /proc/sys/net/ipv6/conf/default/accept_dad >/dev/null
	done
	for n in 0 1; do
		local v=${vlink[n]}
		ip -n "$A" link add $v type veth peer name $v netns "$B" && ip -n "$A" link set $v gso_max_segs 1 &&
			ip -n "$B" link add br$n type bridge && ip -n "$B" tuntap add dev tap$n mode tap &&
			ip -n "$B" link set $v master br$n && ip -n "$B" link set tap$n master br$n &&
			ip -n "$A" link set $v mtu 9000 up && ip -n "$B" link set $v mtu 9000 up && ip -n "$B" link set tap$n mtu 9000 up && ip -n "$B" link set br$n mtu 9000 up &&
			ip -n "$A" addr add 10.$((77 + n)).0.1/24 dev $v && ip -n "$A" addr add fd77:$n::1/64 dev $v nodad &&
			ip -n "$A" addr add fe80::77:1/64 dev $v nodad || return
	done
	ip -n "$B" addr add 10.77.0.3/24 dev br0
}

# guest_mtu OCTETS sets the MTU of both ends of both links.
guest_mtu() {
	local n
	mtu=$1
	for n in 0 1; do in_guest ip link set eth$n mtu "$1" || return; done
	for n in v w; do ip -n "$A" link set $n mtu "$1" || return; done
}

# between NAME RULE has the bridges drop what the rule matches; passing NAME ends that.
between() {
	ip netns exec "$B" nft -f - <<-END
		table bridge $1 {
			chain forward {
				type filter hook forward priority 0
				$2 drop
			}
		}
	END
}
passing() { ip netns exec "$B" nft delete table bridge "$1"; }

packets='meta l4proto { sctp, udp }'
lossy() { between loss "$packets numgen random mod 100 < 2"; }
lossless() { passing loss; }
hold() { between hold "$packets"; }
unhold() { passing hold; }
sever() { between cut 'iifname { v, tap0 } meta l4proto sctp'; }
rejoin() { passing cut; }

# link raw4|raw6|local|udp4|udp6|multi, with listed in front of it where our end lists the addresses
# that it has. Otherwise it lists none, as programs do that say nothing; the guest's socket always
# takes both families.
link() {
	local kind=${1#listed-}
	flags=() local=() reach=(10.77.0.1) theirs=(10.77.0.2) yours_only=(--dual)
	[[ $kind != udp* ]] || flags=(--udp)
	case $kind in
	raw6 | udp6) reach=(fd77::1) theirs=(fd77::2) ;;
	local) reach=(fe80::77:1%eth0) theirs=(fe80::77:2%v) ;;
	multi) reach+=(10.78.0.1) theirs+=(10.78.0.2) ;;
	esac
	ours=("${reach[@]}")
	if [[ $1 = listed-* ]]; then local=(--local 10.77.0.1 --local fd77::1 --local 10.78.0.1 --local fd77:1::1); fi
}

us() {
	local name=$1 role=$2
	shift 2
	if [[ $role = server ]]; then role=(--server); else role=("${theirs[@]/#/--peer=}"); fi
	start "$A" "$dir/$name.ours" "$dir/ours" "${role[@]}" "${local[@]}" --seed 1 --peer-seed 2 "${flags[@]}" "$@"
}

them() {
	local name=$1 role=$2
	shift 2
	guest_alive || return
	if [[ $role = server ]]; then role=(--server); else role=("${reach[@]/#/--peer=}"); fi
	start "$B" "$dir/$name.theirs" "$dir/agent" run 10.77.0.2:7777 peer "${role[@]}" "${yours_only[@]}" --seed 2 --peer-seed 1 "${flags[@]}" "$@"
}

# of_capture NAME looks into the capture of a row in which the peer knows one address of
# ours: nothing may leave from another one, nor to the family of which it knows none (RFC 9260
# section 5.1.2).
of_capture() {
	local sources
	reconfig_of_both "$1"
	((${#local[@]} == 0)) || return 0
	sources=$(awk -F '\t' '$9 == 4 { print $7 $8 }' "$dir/$1.tshark" | sort -u)
	if [[ $sources = "${reach[0]%\%*}" ]]; then
		ok "$1: nothing leaves but from the address that Linux knows"
	else
		bad "$1: packets leave from $(tr '\n' ' ' <<<"$sources"), and Linux knows ${reach[0]}"
	fi
}

CGO_ENABLED=0 $GO build -o "$dir/" ./test/interop/linux/agent && $GO build -o "$dir/ours" ./test/interop/peer || exit 2
gcc -std=gnu11 -O2 -Wall -Wextra -Werror -static -DLINUX_SCTP -o "$dir/theirs" test/interop/theirs/{peer,options,pattern,report,resets,linux}.c -lpthread || exit 2
guest_build && make_net && guest_up || { echo "$me: cannot make the guest" >&2; exit 2; }
echo "     the guest runs Linux $(in_guest uname -r)"

# A few messages each way over everything there is, by an end that lists no address and by one that
# lists all.
for size in 1500 9000; do
	guest_mtu $size || bad "MTU $size"
	for who in us them; do
		for kind in raw4 raw6 local udp4 udp6 listed-raw4 listed-raw6 listed-udp4 listed-udp6; do
			both "$kind-$size-$who" $kind $who 30 --send $((count / 20)) --expect $((count / 20)) --streams 10 --order both
		done
	done
done

# Much data both ways at once, at both sizes of packets.
for size in 1500 9000; do
	guest_mtu $size
	for who in us them; do
		both "bulk-raw4-$size-$who" raw4 $who 120 --send "$count" --expect "$count" --streams 100 --order both
		both "bulk-udp6-$size-$who" udp6 $who 120 --send "$count" --expect "$count" --streams 1000 --order ordered
		both "long-messages-$size-$who" raw6 $who 60 --send $((count / 20)) --expect $((count / 20)) --sizes big --order both
	done
done

# Two packets of a hundred are lost each way.
guest_mtu 1500
lossy
for who in us them; do
	both "loss-raw4-$who" raw4 $who 120 --send $((count / 2)) --expect $((count / 2)) --streams 100 --order both --rto-min 250
	both "loss-udp6-$who" udp6 $who 120 --send $((count / 5)) --expect $((count / 5)) --order unordered --rto-min 250
	both "loss-defaults-$who" raw6 $who 120 --send $((count / 10)) --expect $((count / 10)) --order both
done
shutdown_rows
lossless

for who in us them; do both_end $who; done

# The extensions that Linux speaks. To Linux the fragment behind the first has FSN 0, not 1, so with
# I-DATA messages are too short to be cut (README.md).
for who in us them; do
	n=$((count / 5))
	for kind in raw4 udp6; do
		interleaved "i-data-$kind-$who" $kind $who 60 --send $n --expect $n --streams 100 --order both --sizes short
		asking_rows $who $kind $kind both
	done
	interleaved "i-data-reordered-$who" raw4 $who 60 --send $n --expect $n --streams 30 --order both --sizes short
	scheduled streams raw4 $who 60 --send $((n / 10)) --expect $((n / 10)) --sizes big --order both
	tsns_rows $who
	lossy
	interleaved "i-data-loss-$who" raw4 $who 60 --send $n --expect $n --streams 30 --order both --sizes short --rto-min 250
	interleaved "i-data-loss-reordered-$who" raw4 $who 60 --send $n --expect $n --streams 30 --order both --sizes short --rto-min 250
	asking_rows $who raw4 loss both
	pr_rows $who $n
	lossless
done

# Abort with a reason.
for who in us them; do
	for aborter in us them; do
		name=abort-by-$aborter-$who
		reason="enough of this, says $aborter"
		mine=(--send 5000 --partial) yours=(--send 5000 --partial)
		if [[ $aborter = us ]]; then
			mine=(--expect 500 --end abort --reason "$reason" --partial)
		else
			yours=(--expect 500 --end abort --reason "$reason" --partial)
		fi
		row "$name" raw6 $who 30 && {
			expect "$name" "$(report $aborter)" '^end abort by=self' "aborted"
			if [[ $aborter = us ]]; then
				expect "$name" theirs "^end abort by=peer reason=\"$reason\"" "Linux has the reason"
			else
				expect "$name" ours '^end .*(by=peer|by the peer)' "we hear who has aborted"
			fi
		}
	done
done

# The client's process dies in the middle of the transfer and starts anew from the same address and
# port. In between nothing passes, or its host would end the association.
for who in us them; do
	for kind in raw4 udp6; do
		name=restart-$kind-$who
		[[ $name =~ $only ]] || continue
		link $kind
		capture "$name"
		server=$(other $who)
		common=(--sizes big --order both --timeout 40)
		$server "$name" server "${common[@]}" --send 500 --expect 500 --peer-run 1; first=$pid
		await 5 "$dir/$name.$(report "$server")" ^listening
		$who "$name.dead" client "${common[@]}" --send 100000 --local-port 50001
		await 5 "$dir/$name.dead.$(report $who)" ^up
		sleep 0.2
		hold
		murder "$pid"
		if [[ $who = them ]]; then guest_is_rid_of peer; fi
		$who "$name" client "${common[@]}" --send 500 --expect 500 --run 1 --peer-run 1 --local-port 50001 --end shutdown
		sleep 0.3
		unhold # when the new one has its sockets: a host that has none answers by ICMP
		await 40 "$dir/$name.ours" ^result && await 10 "$dir/$name.theirs" ^result
		stop "$first" "$pid"
		expect "$name" "$(report "$server")" '^restart' "the server sees the restart"
		expect "$name" ours '^result ok' "we have all of the new run"
		expect "$name" theirs '^result ok' "Linux has all of the new run"
		ended "$name"
		rate "$name"
		captured "$name"
	done
done

# Each end has two addresses of each family. The guest's socket is of IPv6, and tells IPv4 addresses
# as mapped ones.
for who in us them; do multihoming $who listed-raw4 10.77.0.2 ::ffff:10.77.0.1; done
for who in us them; do refused $who; done
collision

echo "$passed passed, $failed failed"
((failed == 0))
