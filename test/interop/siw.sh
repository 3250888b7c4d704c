#!/usr/bin/env bash
# Interoperability with siw, Linux's software iWARP: our RDMA over TCP in a network namespace, and
# rping with the kernel of a guest, which qemu runs behind a bridge. Needs root on Debian.
#
#   test/interop/siw.sh [regexp]     only the rows whose name matches
#
# SIW_COUNT, or COUNT, is the number of rounds of the long rows (10000). In each round of rping the
# server reads and writes once, and each end sends twice. KEEP=1 keeps captures and reports. One line
# per check; the last line is "N passed, M failed".
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
only=${1:-.}
count=${SIW_COUNT:-${COUNT:-10000}}
keep=${KEEP:-}
peer_name=siw
. test/interop/lib.sh
. test/interop/linux/guest.sh
. test/interop/linux/siw_driver.sh
install qemu-system-x86_64:qemu-system-x86 xz:xz-utils cpio:cpio /sbin/depmod:kmod busybox:busybox-static make:make rping:rdmacm-utils ib_send_bw:perftest \
	/usr/lib/x86_64-linux-gnu/libibverbs/libsiw-rdmav34.so:ibverbs-providers \
	/usr/include/rdma/rdma_verbs.h:librdmacm-dev /usr/include/infiniband/verbs.h:libibverbs-dev
port=7174 # of the row; each has another one

# One link between our namespace and the guest's card, a bridge in $B, where packets can be lost. The
# guest's second card leads nowhere.
make_net() {
	local n
	for n in "$A" "$B"; do ip netns add "$n" && ip -n "$n" link set lo up || return; done
	for n in 0 1; do ip -n "$B" tuntap add dev tap$n mode tap && ip -n "$B" link set tap$n up || return; done
	ip -n "$A" link add v type veth peer name v netns "$B" && ip -n "$B" link add br0 type bridge &&
		ip -n "$B" link set v master br0 && ip -n "$B" link set tap0 master br0 &&
		ip -n "$A" link set v up && ip -n "$B" link set v up && ip -n "$B" link set br0 up &&
		ip -n "$A" addr add 10.77.0.1/24 dev v && ip -n "$B" addr add 10.77.0.3/24 dev br0
}

# Two packets of a hundred are lost each way.
lossy() {
	ip netns exec "$B" nft -f - <<-END
		table bridge loss {
			chain forward {
				type filter hook forward priority 0
				tcp dport 7174-7274 numgen random mod 100 < 2 drop
				tcp sport 7174-7274 numgen random mod 100 < 2 drop
			}
		}
	END
}
lossless() { ip netns exec "$B" nft delete table bridge loss; }

# us and them NAME client|server ROUNDS SIZE OPTIONS... start an end. Our client waits before its first
# Send: siw of Linux 6.1 sometimes does not send the first request that its program posts, if that
# answers a Send that came at once.
us() {
	local name=$1 role=(--connect "10.77.0.2:$port" --rounds "$3" --settle 500ms) size=$4
	[[ $2 = client ]] || role=(--listen "10.77.0.1:$port")
	shift 4
	start "$A" "$dir/$name.ours" "$dir/ours" "${role[@]}" --size "$size" --timeout 30m "$@"
}
them() {
	local role=(-c -a 10.77.0.1 -V)
	[[ $2 = client ]] || role=(-s -a 10.77.0.2)
	start "$B" "$dir/$1.theirs" "$dir/agent" run 10.77.0.2:7777 rping "${role[@]}" -p $port -C "$3" -S "$4"
}

capture() {
	start "$A" "$dir/$1.tcpdump" tcpdump -n -i v -Z root -B 65536 --immediate-mode -w "$dir/$1.pcap" "tcp port $port"
	cap=$pid
	await 5 "$dir/$1.tcpdump" 'listening on' || bad "$1: no capture: $(cat "$dir/$1.tcpdump")"
}

# FPDUs lie across TCP segments, which loss has sent again out of order.
shark=(tshark -n -o tcp.reassemble_out_of_order:TRUE --disable-protocol rpcordma)

# captured NAME ends the capture, and has tshark look at every start-up frame and FPDU. Only its text
# has the verdict on a CRC. 0x00800000 is an error.
captured() {
	local n good wrong
	stop "$cap"
	"${shark[@]}" -r "$dir/$1.pcap" -Y iwarp_mpa -T fields -e frame.number -e _ws.malformed -e _ws.expert.severity \
		-e _ws.expert.message >"$dir/$1.tshark" 2>"$dir/$1.tshark.err"
	n=$(wc -l <"$dir/$1.tshark")
	wrong=$(awk -F '\t' '{
		error = $2 != ""
		count = split($3, severities, ",")
		for (i = 1; i <= count; i++) error = error || severities[i] >= 8388608
		if (error) print
	}' "$dir/$1.tshark")
	wrong+=$("${shark[@]}" -r "$dir/$1.pcap" -Y iwarp_mpa -V 2>/dev/null | tee >(grep -c 'Good CRC32' >"$dir/$1.good") | grep -i 'bad crc32')
	await 5 "$dir/$1.good" .
	good=$(<"$dir/$1.good")
	if ((n < 10)); then
		bad "$1: tshark finds no MPA: $(cat "$dir/$1.tcpdump" "$dir/$1.tshark.err")"
	elif [[ $wrong ]]; then
		bad "$1: segments are wrong to tshark: $(head -5 <<<"$wrong")"
	elif [[ $1 = no-crc* && $good != 0 || $1 != no-crc* && $good = 0 ]]; then
		bad "$1: $good CRCs"
	else
		ok "$1: tshark: MPA, DDP and RDMAP in $n segments, $good right CRCs, none malformed"
	fi
	[[ $keep ]] || rm -f "$dir/$1".{pcap,tshark}
}

# guest_answers starts another guest if this one has stopped for good, as some do.
guest_answers() {
	timeout 10 ip netns exec "$B" "$dir/agent" run 10.77.0.2:7777 true && return
	echo "     the guest has stopped; another is started"
	stop "$guest"
	guest_up && siw_up
}

# pings NAME us|them ROUNDS SIZE OPTIONS... has us or them ping the other; the options are for our
# end.
pings() {
	local name=$1-$2 who=$2 rounds=$3 size=$4 client server
	shift 4
	[[ $name =~ $only ]] || return 0
	guest_answers || return
	((++port))
	capture "$name"
	if [[ $who = us ]]; then
		them "$name" server "$rounds" "$size"; server=$pid
		for _ in {1..100}; do in_guest netstat -tln 2>/dev/null | grep -q ":$port " && break; sleep 0.05; done
		us "$name" client "$rounds" "$size" "$@"; client=$pid
	else
		us "$name" server "$rounds" "$size" "$@"; server=$pid
		await 5 "$dir/$name.ours" ^listening
		them "$name" client "$rounds" "$size"; client=$pid
	fi
	await 1800 "$dir/$name.ours" ^result
	expect "$name" ours "^result ok rounds=$rounds\$" "$rounds rounds of $size octets, as they were sent"
	for _ in {1..100}; do alive "$client" || alive "$server" || break; sleep 0.05; done
	if [[ $who = them ]]; then
		if alive "$client"; then bad "$name: rping goes on"; else ok "$name: rping has ended"; fi
		if grep -E 'mismatch|error|failed' "$dir/$name.theirs"; then bad "$name: rping complains"; else ok "$name: rping has found nothing wrong"; fi
	fi
	stop "$server" "$client"
	captured "$name"
}

# does NAME us|them KIND ROUNDS SIZE OPTIONS... has one end drive operations of a kind, and a program
# of rdma-core be the other end.
does() {
	local name=$1-$3-$2 who=$2 kind=$3 rounds=$4 size=$5 client server
	shift 5
	[[ $name =~ $only ]] || return 0
	guest_answers || return
	((++port))
	capture "$name"
	if [[ $who = us ]]; then
		start "$B" "$dir/$name.theirs" "$dir/agent" run 10.77.0.2:7777 verbs -s -a 10.77.0.2 -p $port -k "$kind" -n "$rounds" -S "$size"; server=$pid
		await 10 "$dir/$name.theirs" ^listening
		start "$A" "$dir/$name.ours" "$dir/verbs" --connect "10.77.0.2:$port" --settle 500ms --kind "$kind" --rounds "$rounds" --size "$size" --timeout 30m "$@"; client=$pid
	else
		start "$A" "$dir/$name.ours" "$dir/verbs" --listen "10.77.0.1:$port" --kind "$kind" --rounds "$rounds" --size "$size" --timeout 30m "$@"; server=$pid
		await 5 "$dir/$name.ours" ^listening
		start "$B" "$dir/$name.theirs" "$dir/agent" run 10.77.0.2:7777 verbs -a 10.77.0.1 -p $port -k "$kind" -n "$rounds" -S "$size"; client=$pid
	fi
	await 1800 "$dir/$name.ours" ^result
	expect "$name" ours "^result ok rounds=$rounds\$" "$rounds rounds of $kind, $size octets each"
	if [[ $who-$kind = us-invalidate ]]; then
		expect "$name" ours '^refused: .*STag is not valid' "siw refuses the STag that was invalidated"
	else
		await 10 "$dir/$name.theirs" ^result
		expect "$name" theirs "^result ok rounds=$rounds\$" "rdma-core has found nothing wrong"
	fi
	stop "$server" "$client"
	captured "$name"
}

# measures NAME KIND COUNT SIZE OPTIONS... has a program of perftest in the guest measure Sends, Writes
# or Reads with us. It asks and tells by Sends of a second connection.
measures() {
	local name=$1-ib_$2_bw kind=$2 iters=$3 size=$4 client server
	shift 4
	[[ $name =~ $only ]] || return 0
	guest_answers || return
	((++port))
	capture "$name"
	start "$A" "$dir/$name.ours" "$dir/perftest" --listen "10.77.0.1:$port" --kind "$kind" --iters "$iters" --size "$size" --timeout 30m "$@"; server=$pid
	await 5 "$dir/$name.ours" ^listening
	start "$B" "$dir/$name.theirs" "$dir/agent" run 10.77.0.2:7777 ib_"$kind"_bw -R -F -n "$iters" -s "$size" -p $port 10.77.0.1; client=$pid
	await 1800 "$dir/$name.ours" ^result
	expect "$name" ours '^result ok' "ib_${kind}_bw has measured $iters operations of $size octets"
	for _ in {1..100}; do alive "$client" || break; sleep 0.05; done
	expect "$name" theirs "^ *$size +$iters " "it prints what it has measured"
	stop "$server" "$client"
	captured "$name"
}

# breaks requests|replies has a peer break the rules of RFC 5044 against rping of the guest, as a
# server or a client, one on each connection. A ping afterwards shows that siw has survived it. Rows
# that match the second argument are left out: rping, or siw of Linux 6.1, does not survive them.
breaks() {
	local name=broken-$1${3:+-$3} server client
	[[ $name =~ $only ]] || return 0
	guest_answers || return
	((++port))
	if [[ $1 = requests ]]; then
		# rping ends with some of its connections.
		start "$B" "$dir/$name.theirs" "$dir/agent" run 10.77.0.2:7777 \
			sh -c "while :; do rping -s -P -a 10.77.0.2 -p $port; done"; server=$pid
		for _ in {1..100}; do in_guest netstat -tln 2>/dev/null | grep -q ":$port " && break; sleep 0.05; done
		start "$A" "$dir/$name.ours" "$dir/malformed" --connect "10.77.0.2:$port" --skip "$2"; client=$pid
	else
		start "$A" "$dir/$name.ours" "$dir/malformed" --listen "10.77.0.1:$port" --skip "$2"; server=$pid
		await 5 "$dir/$name.ours" ^listening
		for _ in {1..40}; do # more than there are rows
			alive "$server" || break
			them "$name" client 1 64; client=$pid
			for _ in {1..600}; do alive "$client" || break; sleep 0.05; done
			stop "$client"
		done
	fi
	await 1800 "$dir/$name.ours" ^result
	sed -n 's/^row /     /p' "$dir/$name.ours"
	expect "$name" ours '^result ok' "each was answered as the RFC has it"
	stop "$client" "$server"
	pings "after-$name" us 10 64
}

# breaks_fpdus has a peer break the rules of FPDUs, of DDP and of RDMAP, each against a new program on
# rdma-core. It waits before that, as siw of Linux 6.1 sometimes does not look at what comes at once.
# Another ping shows that siw has survived it.
breaks_fpdus() {
	local name=broken-fpdus n server
	[[ $name =~ $only ]] || return 0
	for n in {1..40}; do # more than there are rows
		guest_answers || return
		((++port))
		start "$B" "$dir/$name.theirs" "$dir/agent" run 10.77.0.2:7777 verbs -s -k send -n 1 -S 64 -a 10.77.0.2 -p $port; server=$pid
		await 20 "$dir/$name.theirs" ^listening
		ip netns exec "$A" "$dir/malformed" --connect "10.77.0.2:$port" --fpdus --settle 500ms --only "$n" >"$dir/$name.ours" 2>&1
		stop "$server"
		grep -q '^result none' "$dir/$name.ours" && break
		expect "$name" ours '^result ok' "$(sed -n 's/^row //p' "$dir/$name.ours")"
	done
	pings after-$name us 10 64
}

CGO_ENABLED=0 $GO build -o "$dir/" ./test/interop/linux/agent && $GO build -o "$dir/ours" ./test/interop/rping &&
	$GO build -o "$dir/malformed" ./test/interop/malformed && $GO build -o "$dir/verbs" ./test/interop/verbs && $GO build -o "$dir/perftest" ./test/interop/perftest &&
	gcc -std=gnu11 -O2 -Wall -Wextra -Werror -o "$dir/theirs-verbs" test/interop/theirs/verbs.c -lrdmacm -libverbs || exit 2
guest_build && make_net && guest_up && siw_up || { echo "$me: cannot make the guest" >&2; exit 2; }
echo "     the guest runs Linux $(in_guest uname -r), and siw"

for who in us them; do
	pings crc $who "$count" 64
	pings no-crc $who "$count" 64 --no-crc
	pings long $who $((count / 20)) 65000
done
for who in us them; do
	for kind in send read write; do
		does crc $who $kind "$count" 64
		does no-crc $who $kind "$count" 64 --no-crc
		does long $who $kind $((count / 10)) 5000
	done
	does crc $who invalidate "$count" 64
	does no-crc $who invalidate "$count" 64 --no-crc
done
for kind in send write read; do
	measures crc $kind "$count" 1024
	measures no-crc $kind "$count" 1024 --no-crc
done
# A server of rping stops behind a stream that ends in the middle, and then serves nobody.
breaks requests 'fewer|middle|nothing|in place|connection data|Markers|reserved|not wait' frames
breaks requests 'key|protocol|revision|octets|middle|nothing|in place' choices
breaks replies '513 octets|fewer octets'
breaks_fpdus
lossy
for who in us them; do
	pings loss $who $((count / 10)) 64
	pings loss-long $who $((count / 100)) 65000
	for kind in send read write invalidate; do does loss $who $kind $((count / 10)) 1000; done
done
lossless

echo "$passed passed, $failed failed"
((failed == 0))
