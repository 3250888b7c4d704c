# What run.sh and linux.sh are made of: they read this file. $peer_name is the name of the peer.

GO=${GO:-go}
me=${0##*/}
((EUID == 0)) || { echo "$me: needs root, for network namespaces and raw sockets" >&2; exit 2; }

# install PROGRAM:PACKAGE... installs the packages whose program, or file, is missing.
install() {
	local pair need=()
	for pair in ip:iproute2 nft:nftables tshark:tshark tcpdump:tcpdump gcc:gcc ping:iputils-ping "$@"; do
		command -v "${pair%%:*}" >/dev/null || [[ -e ${pair%%:*} ]] || need+=("${pair##*:}")
	done
	((${#need[@]} == 0)) && return
	{ apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${need[@]}"; } >/dev/null ||
		{ echo "$me: cannot install ${need[*]}" >&2; exit 2; }
}

# We live in namespace $A. The peer lives in $B, or in a guest behind it.
A=iop$$a B=iop$$b
dir=$(mktemp -d)

# Whatever runs in the namespaces is ours, and nothing else is.
cleanup() {
	local n
	for n in "$A" "$B"; do
		ip netns pids "$n" 2>/dev/null | xargs -r kill -9
		ip netns del "$n" 2>/dev/null
	done
	if [[ $keep ]]; then echo "kept $dir"; else rm -rf "$dir"; fi
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# drop NS NAME RULE makes the namespace drop what it receives and the rule matches; undrop ends
# that.
drop() {
	ip netns exec "$1" nft -f - <<-END
		table inet $2 {
			chain in {
				type filter hook input priority 0
				$3 drop
			}
		}
	END
}
undrop() { ip netns exec "$1" nft delete table inet "$2"; }

# lossy [RULE] loses two packets of a hundred each way, of the peer those that the rule matches.
lossy() {
	drop "$A" loss "meta l4proto { sctp, udp } ${1:-} numgen random mod 100 < 2"
	drop "$B" loss 'meta l4proto { sctp, udp } numgen random mod 100 < 2'
}
lossless() { undrop "$A" loss; undrop "$B" loss; }

passed=0 failed=0
ok() { ((++passed)); echo "ok   $*"; }
bad() { ((++failed)); echo "FAIL $*"; }

# start NS OUT PROGRAM ARGS... runs a program and leaves its process ID in $pid.
start() {
	local ns=$1 out=$2
	shift 2
	ip netns exec "$ns" "$@" >"$out" 2>&1 &
	pid=$!
	disown "$pid" # so that bash does not announce how it ended
}

# alive PID says whether the process runs, and is ours.
alive() { [[ $(ip netns identify "$1" 2>/dev/null) = iop$$? ]]; }

# stop PID... ends processes of ours: those that do not go in a second are killed.
stop() {
	local p
	for p in "$@"; do alive "$p" && kill "$p"; done
	for p in "$@"; do
		for _ in {1..20}; do
			alive "$p" || continue 2
			sleep 0.05
		done
		kill -9 "$p"
	done
} 2>/dev/null

# murder PID kills a process of ours, as it stands, and waits until it is gone.
murder() {
	kill -9 "$1" 2>/dev/null
	while alive "$1"; do sleep 0.02; done
}

# await SECONDS FILE REGEXP waits for a line.
await() {
	local i
	for ((i = 0; i < $1 * 20; i++)); do
		grep -q -E "$3" "$2" 2>/dev/null && return
		sleep 0.05
	done
	return 1
}

# link KIND says where the ends are: $ours, $theirs, and flags for both. Each script has its own.

# us NAME client|server ARGS...: starts our end, with its report in NAME.ours. them does so with the
# peer's, and NAME.theirs. Both leave the process ID in $pid.
us() {
	local name=$1 role=$2
	shift 2
	if [[ $role = server ]]; then role=(--server); else role=("${theirs[@]/#/--peer=}"); fi
	start "$A" "$dir/$name.ours" "$dir/ours" "${role[@]}" "${ours[@]/#/--local=}" --seed 1 --peer-seed 2 "${flags[@]}" "$@"
}
# capture NAME starts a capture at our end, with process ID $cap.
capture() {
	start "$A" "$dir/$1.tcpdump" tcpdump -n -i any -Z root -B 65536 --immediate-mode -w "$dir/$1.pcap" 'sctp or udp port 9899 or ip6 proto 132'
	cap=$pid
	await 5 "$dir/$1.tcpdump" 'listening on' || bad "$1: no capture: $(cat "$dir/$1.tcpdump")"
}

# of_capture NAME is for what a script looks for in $dir/NAME.tshark, which has a line for each packet.
of_capture() { :; }

# with_chunk NAME TYPE [FROM] counts the packets with chunks of a type, of one address or of all.
with_chunk() { awk -F '\t' -v type="$2" -v from="${3:-}" '
	from == "" || from == $7 || from == $8 { n += ("," $6 ",") ~ ("," type ",") }
	END { print n + 0 }' "$dir/$1.tshark"; }

# zeros NAME looks for checksums of 0, which tshark 4.0 takes for wrong ones (RFC 9653): each end has to
# send some, but not with INIT and COOKIE ECHO.
zeros() {
	local from n
	for from in "${ours[0]}" "${theirs[0]}"; do
		n=$(awk -F '\t' -v from="$from" '$7 == from && $10 ~ /^0x0+$/ { if ($6 ~ /(^|,)(1|10)(,|$)/) wrong++; n++ } END { print wrong ? 0 : n + 0 }' "$dir/$1.tshark")
		if ((n > 0)); then ok "$1: $n checksums of $from are 0"; else bad "$1: $from leaves no checksum 0, or one that it may not"; fi
	done
}

# captured NAME ends the capture and has tshark look at every packet. $zero says that checksums may be 0. It has to find chunks of the
# types in ${has[@]}, and none of those in ${lacks[@]}. A packet with a HEARTBEAT alone of address $empty_beats may be malformed.
has=() lacks=() zero= empty_beats=none
captured() {
	local n wrong type
	stop "$cap"
	tshark -n -r "$dir/$1.pcap" -o sctp.checksum:CRC-32C -o sctp.ulp_dissection:FALSE -o sctp.reassembly:FALSE -Y sctp -T fields \
		-e frame.number -e sctp.checksum.status -e _ws.malformed -e _ws.expert.severity -e _ws.expert.message \
		-e sctp.chunk_type -e ip.src -e ipv6.src -e sll.pkttype -e sctp.checksum \
		>"$dir/$1.tshark" 2>"$dir/$1.tshark.err"
	n=$(wc -l <"$dir/$1.tshark")
	# Fields: number, 1 for a right checksum, name if malformed, severities (0x00800000 is an
	# error), what they are about, types of chunks, source by IPv4 and by IPv6, 4 if it is ours,
	# the checksum.
	wrong=$(awk -F '\t' -v zero="$zero" -v beats="$empty_beats" '$6 == "4" && $7 == beats { next } {
		errors = 0
		count = split($4, severities, ",")
		for (i = 1; i <= count; i++) errors += severities[i] >= 8388608
		if (zero && $10 ~ /^0x0+$/) errors-- # which says that the checksum is wrong
		else errors += $2 != 1
		if (errors || $3 != "") print
	}' "$dir/$1.tshark")
	if ((n == 0)); then
		bad "$1: nothing captured: $(cat "$dir/$1.tcpdump" "$dir/$1.tshark.err")"
	elif [[ $wrong ]]; then
		bad "$1: $(wc -l <<<"$wrong") of $n packets are wrong to tshark"
		head -5 <<<"$wrong"
	else
		ok "$1: tshark: $n packets, right checksums, none malformed"
	fi
	for type in ${has[@]+"${has[@]}"}; do
		n=$(with_chunk "$1" "$type")
		if ((n > 0)); then ok "$1: $n packets with chunks of type $type"; else bad "$1: no chunk of type $type"; fi
	done
	for type in ${lacks[@]+"${lacks[@]}"}; do
		n=$(with_chunk "$1" "$type")
		((n == 0)) || bad "$1: $n packets with chunks of type $type"
	done
	[[ -z $zero ]] || zeros "$1"
	of_capture "$1"
	[[ $keep ]] || rm -f "$dir/$1".{pcap,tshark}
}

# expect NAME ours|theirs REGEXP WHAT checks that a report has a line.
expect() {
	if grep -q -E "$3" "$dir/$1.$2" 2>/dev/null; then
		ok "$1: $4"
	else
		bad "$1: $4: $2 has no line $3"
		sed 's/^/     /' "$dir/$1.$2"
	fi
}

value() { sed -n "s/^stats.* $2=\([^ ]*\).*/\1/p" "$1"; }

# rate NAME says what was measured.
rate() {
	local side f
	for side in ours theirs; do
		f=$dir/$1.$side
		grep -q ^stats "$f" || continue
		echo "     $side: sent $(sed -n 's/^sent \([0-9]*\).*/\1/p' "$f" | tail -1), received $(sed -n 's/^received \([0-9]*\).*/\1/p' "$f"), in $(value "$f" seconds) s," \
			"$(value "$f" octets-out) octets out, $(value "$f" octets-in) in; retransmitted $(value "$f" retransmitted), fast $(value "$f" fast), timeouts $(value "$f" timeouts), duplicates $(value "$f" duplicates)"
	done
}

# row NAME LINK us|them SECONDS: both ends run once, with the options in ${mine[@]} and ${yours[@]};
# us or them is the client.
row() {
	play "$@" || return
	judge "$1"
}

# play is row without its checks.
play() {
	local name=$1 server client
	[[ $name =~ $only ]] || return 1
	link "$2"
	capture "$name"
	if [[ $3 = us ]]; then
		them "$name" server "${yours[@]}" --timeout "$4"; server=$pid
		await 5 "$dir/$name.theirs" ^listening
		us "$name" client "${mine[@]}" --timeout "$4"; client=$pid
	else
		us "$name" server "${mine[@]}" --timeout "$4"; server=$pid
		await 5 "$dir/$name.ours" ^listening
		them "$name" client "${yours[@]}" --timeout "$4"; client=$pid
	fi
	await "$4" "$dir/$name.ours" ^result && await 10 "$dir/$name.theirs" ^result
	stop "$server" "$client"
}

# judge checks what play has shown.
judge() {
	expect "$1" ours '^result ok' "we have all, as it was sent"
	expect "$1" theirs '^result ok' "$peer_name has all, as it was sent"
	rate "$1"
	captured "$1"
}

# Row names end in who is the client: us, or them.
other() { if [[ $1 = us ]]; then echo them; else echo us; fi; }
report() { if [[ $1 = us ]]; then echo ours; else echo theirs; fi; }

# both NAME LINK CLIENT SECONDS OPTIONS... is a row with the same options at both ends, except that
# the client ends the association.
both() {
	local name=$1 on=$2 client=$3 seconds=$4
	shift 4
	mine=("$@" --adaptation 11) yours=("$@" --adaptation 12)
	[[ $name = *-reordered-* ]] && mine+=(--reorder 3) # packets of both ends
	if [[ $client = us ]]; then mine+=(--end shutdown); else yours+=(--end shutdown); fi
	row "$name" "$on" "$client" "$seconds" || return
	expect "$name" ours '^adaptation 0x0000000c' "we see the adaptation indication of $peer_name"
	expect "$name" theirs '^adaptation 0x0000000b' "$peer_name sees our adaptation indication"
	ended "$name"
}

ended() {
	expect "$1" ours '^end shutdown' "a graceful end for us"
	expect "$1" theirs '^end shutdown' "a graceful end for $peer_name"
}

# shutdown_rows: a graceful end with data outstanding. The end that sends ends the association at
# once.
shutdown_rows() {
	local who closer name
	for who in us them; do
		for closer in us them; do
			name=shutdown-by-$closer-$who
			mine=(--expect 2000 --rto-min 250) yours=("${mine[@]}")
			if [[ $closer = us ]]; then mine=(--send 2000 --end shutdown --rto-min 250); else yours=(--send 2000 --end shutdown --rto-min 250); fi
			row "$name" raw4 $who 60 && {
				ended "$name"
				expect "$name" "$(report $closer)" '^shutdown' "shutdown asked for"
			}
		done
	done
}

# both_end CLIENT: both end it once each has all.
both_end() {
	mine=(--send 2000 --expect 2000 --end shutdown) yours=("${mine[@]}")
	row "shutdown-by-both-$1" raw4 "$1" 30 && ended "shutdown-by-both-$1"
}

# multihoming CLIENT LINK THEIRS OURS: one of two links goes dead in the middle of the transfer, and
# with it these two addresses, as the other end tells them. Timers are lowered so that paths fail
# within two seconds.
multihoming() {
	local name=multihoming-$1 server first common
	[[ $name =~ $only ]] || return
	link "$2"
	capture "$name"
	server=$(other "$1")
	common=(--sizes big --order both --send 2000 --expect 2000 --rto-min 250 --rto-max 500 --heartbeat 500 --path-retrans 3 --timeout 60)
	$server "$name" server "${common[@]}"; first=$pid
	await 5 "$dir/$name.$(report "$server")" ^listening
	$1 "$name" client "${common[@]}" --end shutdown
	await 5 "$dir/$name.$(report "$server")" '^address .* (available|confirmed)'
	sleep 0.2
	sever
	await 60 "$dir/$name.ours" ^result && await 10 "$dir/$name.theirs" ^result
	stop "$first" "$pid"
	rejoin
	expect "$name" ours '^result ok' "we have all, as it was sent"
	expect "$name" theirs '^result ok' "$peer_name has all, as it was sent"
	expect "$name" ours "^address $3 unreachable" "we see the path fail"
	expect "$name" theirs "^address $4 unreachable" "$peer_name sees the path fail"
	ended "$name"
	rate "$name"
	captured "$name"
}

# refused CLIENT: nobody listens on the port. (Our raw link would take no packet for it.)
refused() {
	local name=refused-$1 server first
	[[ $name =~ $only ]] || return
	link udp4
	capture "$name"
	server=$(other "$1")
	$server "$name" server; first=$pid
	await 5 "$dir/$name.$(report "$server")" ^listening
	$1 "$name" client --port 5002
	await 5 "$dir/$name.$(report "$1")" ^result
	stop "$first" "$pid"
	expect "$name" "$(report "$1")" '^(error|end refused|read-failed).* .*(aborted by the peer|error=|Connection refused)' "the client learns at once"
	captured "$name"
}

# collision: both ends send INIT at the same time, as nothing passes until the first retransmission.
collision() {
	local name=collision first
	[[ $name =~ $only ]] || return
	link raw4
	capture "$name"
	hold
	us "$name" client --port 50002 --local-port 50001 --send 1000 --expect 1000 --end shutdown; first=$pid
	them "$name" client --port 50001 --local-port 50002 --send 1000 --expect 1000
	sleep 0.5
	unhold
	await 20 "$dir/$name.ours" ^result && await 10 "$dir/$name.theirs" ^result
	stop "$first" "$pid"
	expect "$name" ours '^result ok' "we have all"
	expect "$name" theirs '^result ok' "$peer_name has all"
	ended "$name"
	captured "$name"
}
