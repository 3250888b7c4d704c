#!/usr/bin/env bash
# Runs the tools over real links between two network namespaces and has tshark, which is not ours,
# judge the packets. Needs root, iproute2, nftables, tshark, ping and setpriv. Prints a line for
# each check and fails if one does.
#
#   SIZE=1G       size of the file that is copied
#   KEEP=1        leave the captures and logs, and say where
set -euo pipefail
cd "$(dirname "$0")/.."

SIZE=${SIZE:-1G}
GO=${GO:-go}

A=rddp-a-$$ # the client's namespace
B=rddp-b-$$ # the server's

say() { printf '%s\n' "$*"; }
die() { say "netns.sh: $*" >&2; exit 2; }

[[ $(id -u) == 0 ]] || die "network namespaces need root"
for pair in ip:iproute2 nft:nftables tshark:tshark ping:iputils-ping setpriv:util-linux "$GO":golang; do
	command -v "${pair%%:*}" >/dev/null || die "${pair%%:*} is missing: install ${pair##*:}"
done
[[ ! -e /proc/net/sctp ]] || die "this kernel has an SCTP of its own, which would abort our associations: rmmod sctp"

# ---- what is started is stopped -----------------------------------------------------------------

WORK=$(mktemp -d)
chmod 755 "$WORK" # for the run without privilege
declare -A running=()

cleanup() {
	local code=$?
	trap - EXIT INT TERM
	for pid in "${!running[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
	wait 2>/dev/null || true
	ip netns del "$A" 2>/dev/null || true
	ip netns del "$B" 2>/dev/null || true
	if [[ ${KEEP:-} ]]; then say "kept in $WORK"; else rm -rf "$WORK"; fi
	exit "$code"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

in_a() { ip netns exec "$A" "$@"; }
in_b() { ip netns exec "$B" "$@"; }

# start LOG COMMAND...: in the background; sets pid.
start() {
	local log=$1
	shift
	: >"$log"
	"$@" >"$log" 2>&1 &
	pid=$!
	running[$pid]=1
}

# serve LOG COMMAND...: start in the server's namespace, and wait until it serves.
serve() {
	local log=$1 i
	start "$log" ip netns exec "$B" "${@:2}"
	for ((i = 0; i < 100; i++)); do
		grep -Eq 'serving|storing|Waiting for client' "$log" && return 0
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.05
	done
	say "the server does not start: ${*:2}" >&2
	cat "$log" >&2
	stop "$pid"
	return 1
}

# stop PID [SIGNAL]
stop() {
	kill -"${2:-TERM}" "$1" 2>/dev/null || true
	wait "$1" 2>/dev/null || true
	unset "running[$1]"
}

# ---- checks -------------------------------------------------------------------------------------

passed=0
failed=0
ok() {
	passed=$((passed + 1))
	say "ok   $*"
}
fail() { # fail WHAT [FILE]: the file has details
	failed=$((failed + 1))
	say "FAIL $1"
	if [[ ${2:-} ]]; then sed 's/^/     | /' "$2" | tail -n 25; fi
}

# try CODE OUT COMMAND...: run in the client's namespace for at most a minute; true if it exits with
# CODE. How it exited is left in code, how long it took, in ms, in took.
try() {
	local want=$1 out=$2 began
	shift 2
	began=$(date +%s%N)
	code=0
	in_a timeout -k 2 60 "$@" >"$out" 2>&1 || code=$?
	took=$((($(date +%s%N) - began) / 1000000))
	[[ $code == "$want" ]]
}

# expect WHAT CODE TEXT MS COMMAND...: exits with CODE, says TEXT (a regular expression), within MS.
expect() {
	local what=$1 want=$2 text=$3 limit=$4 out=$WORK/expect.out
	shift 4
	if ! try "$want" "$out" "$@"; then
		fail "$what: exit code $code, not $want: $*" "$out"
	elif ! grep -Eq -- "$text" "$out"; then
		fail "$what: does not say \"$text\": $*" "$out"
	elif ((took > limit)); then
		fail "$what: took $took ms, more than $limit: $*" "$out"
	else
		ok "$what: $(grep -Em1 -- "$text" "$out")"
	fi
}

# faults CAPTURE [FLAGS of tshark]: prints what tshark finds wrong, or misses; else nothing. A
# summary goes to dissect.good.
faults() {
	tshark -n -r "$1" "${@:2}" -o sctp.checksum:"CRC 32c" -T fields -E separator='|' \
		-e frame.number -e sctp.checksum.status -e _ws.malformed -e _ws.expert.severity -e _ws.expert.message \
		-e sctp.chunk_type -e sctp.adaptation_layer_indication -e sctp.data_payload_proto_id \
		>"$WORK/dissect.out" 2>"$WORK/dissect.err" || {
		cat "$WORK/dissect.err"
		return
	}
	awk -F'|' '
		function bad(text) { if (++errors <= 5) print "packet " $1 ": " text }
		$2 != "1" { bad("SCTP checksum status \"" $2 "\", not good (1)") }
		$3 != "" { bad("malformed: " $3) }
		{
			n = split($4, severity, ",")
			for (i = 1; i <= n; i++) if (severity[i] >= 8388608) bad("expert error: " $5) # 0x800000
			n = split($6, type, ",")
			for (i = 1; i <= n; i++) {
				count[type[i]]++
				if ((type[i] == 1 || type[i] == 2) && $7 != "0x00000001") bad("adaptation indication \"" $7 "\" in INIT or INIT ACK, not 1")
			}
			n = split($8, ppid, ",")
			for (i = 1; i <= n; i++) {
				ppids[ppid[i]]++
				if (ppid[i] != 16 && ppid[i] != 17) bad("PPID " ppid[i])
			}
		}
		END {
			if (!count[1] || !count[2]) print "no INIT and INIT ACK"
			if (!count[0] || !count[3]) print "no DATA and SACK"
			if (!ppids[16] || !ppids[17]) print "not both PPID 16 and PPID 17"
			if (errors > 5) print errors " faults in all"
			print NR " packets, " count[0] " DATA chunks: checksums good, adaptation 1, PPID 16 and 17" >good
		}' good="$WORK/dissect.good" "$WORK/dissect.out"
}

# dissect WHAT CAPTURE [FLAGS]: tshark finds nothing wrong, and what has to be there.
dissect() {
	faults "${@:2}" >"$WORK/faults"
	if [[ -s $WORK/faults ]]; then
		fail "$1: tshark finds faults" "$WORK/faults"
	else
		ok "$1: tshark: $(cat "$WORK/dissect.good")"
	fi
}

# ---- build, and two hosts -----------------------------------------------------------------------

CGO_ENABLED=0 "$GO" build -o "$WORK/" ./cmd/... ./examples/... ./test/noddp
PATH=$WORK:$PATH

ip netns add "$A"
ip netns add "$B"
ip link add veth0 netns "$A" type veth peer name veth0 netns "$B"
for side in "$A 1 2" "$B 2 1"; do
	read -r ns me peer <<<"$side"
	ip -n "$ns" link set lo up
	ip -n "$ns" address add 10.77.0."$me"/24 dev veth0
	ip -n "$ns" address add fd77::"$me"/64 dev veth0 nodad
	ip -n "$ns" link set veth0 mtu 1500 up
	# Behind the hosts are the stacks on TUN devices.
	ip netns exec "$ns" sh -c 'echo 1 | tee /proc/sys/net/ipv4/ip_forward >/proc/sys/net/ipv6/conf/all/forwarding'
	# What earlier programs were told, once a second and destination, is not to keep a later one
	# waiting.
	ip netns exec "$ns" sh -c 'echo 0 | tee /proc/sys/net/ipv4/icmp_ratelimit >/proc/sys/net/ipv6/icmp/ratelimit'
	ip -n "$ns" route add 10.78."$peer".0/24 via 10.77.0."$peer"
	ip -n "$ns" route add fd78:"$peer"::/64 via fd77::"$peer"
done
# The addresses need no duplicate address detection, but the devices a moment until they are up.
for ((i = 0; i < 100; i++)); do
	if in_a ping -c1 -W1 10.77.0.2 >/dev/null 2>&1 && in_a ping -c1 -W1 fd77::2 >/dev/null 2>&1; then break; fi
	sleep 0.05
done

# ---- every tool over every link -----------------------------------------------------------------

# over LINK SERVER-FLAGS CLIENT-FLAGS HOST
over() {
	local link=$1 server client host=$4 op pcap
	read -ra server <<<"$2"
	read -ra client <<<"$3"
	local out=$WORK/$link.out

	serve "$WORK/$link.ping.log" ddpping -l "${server[@]}" || { fail "$link: ddpping -l"; return; }
	pcap=$WORK/$link.ping.pcapng
	if ! try 0 "$out" ddpping --op all -c 15 -i 0.05 --pcap "$pcap" "${client[@]}" "$host"; then
		fail "$link: ddpping: exit code $code" "$out"
	elif ! grep -q '^15 pings transmitted, 15 received, 0% packet loss' "$out"; then
		fail "$link: ddpping: not every reply" "$out"
	else
		ok "$link: ddpping: $(tail -n 1 "$out")"
	fi
	dissect "$link: ddpping" "$pcap" -X lua_script:tools/wireshark/rddp.lua # with what it shows of DDP
	stop "$pid"

	for op in write read send; do
		serve "$WORK/$link.$op.log" ddpbench "$op" "${server[@]}" || { fail "$link: ddpbench $op"; return; }
		pcap=$WORK/$link.$op.pcapng
		if ! try 0 "$out" ddpbench "$op" -s 16K -n 200 --verify --pcap "$pcap" "${client[@]}" "$host"; then
			fail "$link: ddpbench $op --verify: exit code $code" "$out"
		else
			ok "$link: ddpbench $op --verify, MB/s:$(grep -E '^ *16384 ' "$out" | tr -s ' ' | cut -d' ' -f 5)"
		fi
		dissect "$link: ddpbench $op" "$pcap"
		stop "$pid"
	done
}

over "raw, IPv4" "" "" 10.77.0.2
over "raw, IPv6" "" "" fd77::2
over "udp, IPv4" "--link udp" "--link udp" 10.77.0.2
over "udp, IPv6" "--link udp" "--link udp" fd77::2
over "udp, IPv4, 3 shards" "--link udp --shards 3" "--link udp --shards 2" 10.77.0.2
over "tun, IPv4, 3 shards" "--link tun --shards 3 --local 10.78.2.2 --tun-host 10.78.2.1/24" "--link tun --shards 2 --local 10.78.1.2 --tun-host 10.78.1.1/24" 10.78.2.2
over "tun, IPv4" "--link tun --local 10.78.2.2 --tun-host 10.78.2.1/24" "--link tun --local 10.78.1.2 --tun-host 10.78.1.1/24" 10.78.2.2
over "tun, IPv6" "--link tun --local fd78:2::2 --tun-host fd78:2::1/64" "--link tun --local fd78:1::2 --tun-host fd78:1::1/64" fd78:2::2

# The judge has to be able to find something: one octet of a packet is wrong.
cp "$WORK/raw, IPv4.ping.pcapng" "$WORK/bad.pcapng"
printf '\xa5' | dd of="$WORK/bad.pcapng" bs=1 seek=$(($(stat -c %s "$WORK/bad.pcapng") - 12)) conv=notrunc status=none
faults "$WORK/bad.pcapng" >"$WORK/faults"
if grep -q 'checksum status "0"' "$WORK/faults"; then ok "tshark finds a wrong octet"; else fail "tshark does not find a wrong octet" "$WORK/faults"; fi

# ---- a real file, with and without loss ---------------------------------------------------------

store=$WORK/store
mkdir "$store"
head -c "$SIZE" /dev/urandom >"$WORK/file"
sum=$(sha256sum <"$WORK/file")

# copied WHAT FLAGS HOST: rcopy works and the copy is the same; prints time and rate.
copied() {
	local what=$1 flags out=$WORK/rcopy.out
	read -ra flags <<<"$2"
	code=0
	in_a timeout -k 2 280 rcopy "${flags[@]}" "$WORK/file" "$3" >"$out" 2>&1 || code=$?
	if [[ $code != 0 ]]; then
		fail "$what: exit code $code" "$out"
	elif [[ $(sha256sum <"$store/file") != "$sum" ]]; then
		fail "$what: the copy differs" "$out"
	else
		ok "$what: $(sed 's/^file: //; s/, SHA-256.*//' "$out")"
	fi
	rm -f "$store/file"
}

for link in "raw 10.77.0.2" "udp 10.77.0.2"; do
	read -r kind host <<<"$link"
	serve "$WORK/rcopy.log" rcopy -l --dir "$store" --link "$kind"
	copied "rcopy over $kind" "--link $kind" "$host"
	stop "$pid"
done

# Ingress comes before raw sockets and everything else.
for ns in "$A" "$B"; do
	ip netns exec "$ns" nft -f - <<-'NFT'
		table netdev loss {
			chain ingress {
				type filter hook ingress device "veth0" priority 0
				ip protocol 132 numgen random mod 100 == 0 counter drop
			}
		}
	NFT
done
drops() { ip netns exec "$1" nft list table netdev loss | sed -n 's/.*counter packets \([0-9]*\).*/\1/p'; }
serve "$WORK/rcopy.log" rcopy -l --dir "$store"
copied "rcopy over raw with 1% loss" "" 10.77.0.2
a=$(drops "$A") b=$(drops "$B")
if ((a > 0 && b > 0)); then
	ok "loss: $b packets to the server and $a to the client were dropped"
else
	fail "loss: $b packets to the server and $a to the client were dropped, want some of both"
fi

# ---- copies that are cut off; the loss makes them slow enough -----------------------------------

empty() { [[ -z $(ls -A "$store") ]]; }
# emptied WHAT: nothing is left within ten seconds.
emptied() {
	local i
	for ((i = 0; i < 100; i++)); do
		if empty; then
			ok "$1: nothing is left at the server"
			return
		fi
		sleep 0.1
	done
	ls -la "$store" >"$WORK/ls.out"
	fail "$1: something is left at the server" "$WORK/ls.out"
	rm -f "$store"/* "$store"/.rcopy-*
}
# begin: starts a copy and waits until it is under way.
begin() {
	start "$WORK/cut.out" ip netns exec "$A" rcopy "$WORK/file" 10.77.0.2
	local i
	for ((i = 0; i < 100; i++)); do
		empty || return 0
		sleep 0.02
	done
	fail "rcopy does not begin" "$WORK/cut.out"
}
server=$pid
begin
stop "$pid" INT
if grep -q 'nothing was stored: interrupted' "$WORK/cut.out"; then ok "rcopy, ^C: $(cat "$WORK/cut.out")"; else fail "rcopy, ^C" "$WORK/cut.out"; fi
emptied "rcopy, ^C"
begin
stop "$pid" KILL
emptied "rcopy, client killed"
# lose WHAT SIGNAL TEXT: the server gets SIGNAL in the middle, the client exits with 1 and says
# TEXT.
lose() {
	begin
	local client=$pid
	stop "$server" "$2"
	code=0
	wait "$client" || code=$?
	unset "running[$client]"
	if [[ $code == 1 ]] && grep -q "$3" "$WORK/cut.out"; then
		ok "$1: $(cat "$WORK/cut.out")"
	else
		fail "$1: exit code $code" "$WORK/cut.out"
	fi
}
lose "rcopy, server stopped" TERM 'the server is being stopped'
emptied "rcopy, server stopped"
serve "$WORK/rcopy.log" rcopy -l --dir "$store"
server=$pid
# When its answer to the request was lost, the client has not yet begun.
lose "rcopy, server killed" KILL 'nothing was stored: \|nothing there speaks SCTP'
if [[ -e $store/file ]]; then fail "rcopy, server killed: half a file"; else ok "rcopy, server killed: no half file"; fi
rm -f "$store"/.rcopy-*
for ns in "$A" "$B"; do ip netns exec "$ns" nft delete table netdev loss; done

# ---- failures as a user meets them --------------------------------------------------------------

expect "nobody at the address" 1 "no answer: check the address" 3500 ddpping -c 1 -w 2 10.77.0.99
expect "host without a server, raw" 1 "nothing there speaks SCTP" 1000 ddpping -c 1 -w 5 10.77.0.2
expect "host without a server, raw, IPv6" 1 "nothing there speaks SCTP" 1000 ddpping -c 1 -w 5 fd77::2
expect "host without a server, udp" 1 "nothing there speaks SCTP" 1000 ddpping --link udp -c 1 -w 5 10.77.0.2
expect "ddpbench, host without a server" 2 "nothing there speaks SCTP" 1000 ddpbench write 10.77.0.2
expect "rcopy, host without a server" 1 "nothing there speaks SCTP" 1000 rcopy "$WORK/file" 10.77.0.2
expect "rcopy, nobody at the address" 1 "no answer: check the address" 3500 rcopy -w 2 "$WORK/file" 10.77.0.99

serve "$WORK/ping.log" ddpping -l
server=$pid
code=0
in_b timeout 5 ddpping -l >"$WORK/expect.out" 2>&1 || code=$?
if [[ $code == 2 ]] && grep -q 'SCTP port is in use' "$WORK/expect.out"; then
	ok "a second server: $(cat "$WORK/expect.out")"
else
	fail "a second server: exit code $code" "$WORK/expect.out"
fi
expect "another port" 1 "no answer: check the address" 3500 ddpping --port 5999 -c 1 -w 2 10.77.0.2
expect "MTU too small" 2 "from 576 to 65535" 1000 ddpping --mtu 575 -c 1 10.77.0.2
expect "smallest MTU" 0 " 0% packet loss" 5000 ddpping --mtu 576 --op all -s 3000 -c 9 -i 0.01 10.77.0.2
expect "another tool's server" 1 "the server refused: " 3000 rcopy "$WORK/file" 10.77.0.2
nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
expect "no privilege for raw" 2 "CAP_NET_RAW.*--link udp" 1000 "${nobody[@]}" "$WORK/ddpping" -c 1 10.77.0.2
expect "no privilege for tun" 2 "CAP_NET_ADMIN.*--link udp" 1000 "${nobody[@]}" "$WORK/ddpping" --link tun --local 10.78.1.2 -c 1 10.77.0.2
expect "^C in the middle" 0 "^[0-9]+ pings transmitted, [1-9][0-9]* received" 3000 timeout --preserve-status -s INT 0.7 "$WORK/ddpping" -i 0.1 10.77.0.2
stop "$server"

serve "$WORK/ping.log" ddpping -l --link udp
server=$pid
code=0
in_b timeout 5 ddpping -l --link udp >"$WORK/expect.out" 2>&1 || code=$?
if [[ $code == 2 ]] && grep -q 'UDP port is in use' "$WORK/expect.out"; then
	ok "a second server, udp: $(cat "$WORK/expect.out")"
else
	fail "a second server, udp: exit code $code" "$WORK/expect.out"
fi
expect "no privilege, udp" 0 " 0% packet loss" 3000 "${nobody[@]}" "$WORK/ddpping" --link udp -c 3 -i 0.01 10.77.0.2
stop "$server"

serve "$WORK/noddp.log" noddp
expect "a server of something else" 2 "announced no adaptation layer" 3000 ddpping -c 1 -w 5 10.77.0.2
stop "$pid"

say "$passed passed, $failed failed, in $SECONDS s"
((failed == 0))
