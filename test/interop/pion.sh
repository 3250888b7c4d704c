# Rows with pion/sctp, the original, over UDP, which run.sh reads: partial reliability, I-DATA, resets of
# streams as data channels are closed, and zero checksum (RFC 9653) over a link that claims what DTLS
# does. Its port is always 5000, and its streams have no scheduler but with I-DATA. It drops an INIT with
# a parameter that it does not know and whose type begins with 0, such as Supported Address Types. RFC
# 9260 section 3.2.1 has it leave out that parameter, and those behind it. So our link is that of a
# connection, which says nothing of addresses.

(cd test/interop/pion && GOWORK=off $GO build -o "$dir/pion" .) || exit 2

# them_pion NAME client|server ARGS... is them for pion.
them_pion() {
	local name=$1 role=()
	[[ $2 = client ]] || role=(--server)
	shift 2
	start "$B" "$dir/$name.theirs" "$dir/pion" "${role[@]}" "--local=${theirs[0]}" "--peer=${ours[0]}" --seed 2 --peer-seed 1 "$@"
}

# pion NAME CLIENT OPTIONS... is a row with pion.
pion() {
	local name=$1 client=$2
	shift 2
	mine=(--connected --port 5000 --local-port 5000 "$@") yours=("$@")
	[[ $name != *-resets* ]] || { mine+=(--resets first) && yours+=(--resets last); }
	[[ $name = *-reordered-* ]] && yours+=(--reorder 3) # packets of both ends
	[[ $client = us ]] || mine+=(--peer=10.77.0.2)
	if [[ $client = us ]]; then mine+=(--end shutdown); else yours+=(--end shutdown); fi
	row "$name" udp4 "$client" 30 && ended "$name"
}

# pion_interleaved NAME CLIENT OPTIONS... is a row with I-DATA.
pion_interleaved() {
	has=(64) lacks=(0 192)
	pion "$@" --interleave && expect "$1" ours '^extensions .*i-data=true' "I-DATA is agreed on"
	has=() lacks=()
}

# pion_abandoned NAME CLIENT MESSAGES LIMIT OPTIONS... is a row in which messages are given up, each
# way. The first of each stream is kept: pion takes no notice of a FORWARD TSN for a stream of which
# nothing has come. Either all of a stream are ordered or none: if a program has set its side to unordered, pion
# takes no notice of FORWARD TSN for ordered messages of the peer. It then keeps what is behind them
# for ever, although it acknowledges it.
pion_abandoned() {
	local name=$1 client=$2 n=$3 limit=$4
	shift 4
	chunks_abandoned "$@"
	pion "$name" "$client" --send "$n" --expect "$n" --partial --keep-first --rto-max 1000 --abandon "$limit" "$@" && gave_up "$name" "$n" "$@"
	has=() lacks=()
}

# pion_zero NAME CLIENT OPTIONS...: each end leaves checksums 0 (RFC 9653).
pion_zero() {
	local zero=yes
	pion "$@" --zero-checksum && expect "$1" ours '^extensions .*zero-checksum=true' "zero checksum is agreed on"
}

# pion_resets NAME CLIENT OPTIONS...: each end closes a stream in the middle, and goes on with it anew.
pion_resets() {
	local name=$1 client=$2
	shift 2
	pion "$name" "$client" "${messages[@]}" --streams 5 "$@" || return
	expect "$name" ours '^asked first performed' "pion grants us a reset"
	expect "$name" ours '^closed 4: (<nil>|sctp: association is shutting down)' "we close what pion has closed, and pion grants it"
	expect "$name" theirs '^streams-reset in stream=4' "pion hears of that"
	expect "$name" ours '^numbers-again [2-9]' "SSNs of pion begin anew, twice"
	expect "$name" theirs '^asked last performed' "pion goes on with the stream that it has closed"
	expect "$name" theirs '^streams-reset in stream=0' "pion hears of our reset"
}

pion_rows() {
	local peer_name=pion who n=$((count / 10))
	local messages=(--send $n --expect $n --order both) empty_beats=10.77.0.2
	them() { them_pion "$@"; }
	if [[ -n ${SHORT:-} ]]; then # two rows that have met all that README.md says of pion
		lossy '@th,160,8 != { 14, 130 }'
		pion_resets pion-resets-i-data-loss-reordered-them them --interleave
		pion_abandoned pion-pr-timed-i-data-loss-reordered-them them $n 30 --order ordered --policy timed --interleave
		lossless
		return
	fi
	for who in us them; do
		pion_interleaved pion-i-data-rr-$who $who "${messages[@]}" --scheduler rr
		pion_resets pion-resets-$who $who
	done
	lossy '@th,160,8 != { 14, 130 }' # README.md says what becomes of SHUTDOWN COMPLETE and RE-CONFIG of pion
	for who in us them; do
		pion_interleaved pion-i-data-wfq-loss-reordered-$who $who "${messages[@]}" --scheduler wfq
		pion_resets pion-resets-i-data-loss-reordered-$who $who --interleave
		pion_zero pion-zero-checksum-loss-reordered-$who $who "${messages[@]}"
		pion_abandoned pion-pr-resent-loss-reordered-$who $who $n 0 --order ordered
		pion_abandoned pion-pr-resent-i-data-loss-reordered-$who $who $n 0 --order unordered --interleave
		pion_abandoned pion-pr-timed-loss-reordered-$who $who $n 30 --order unordered --policy timed
		pion_abandoned pion-pr-timed-i-data-loss-reordered-$who $who $n 30 --order ordered --policy timed --interleave
	done
	lossless
}
