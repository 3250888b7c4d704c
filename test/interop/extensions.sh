# Rows of I-DATA (RFC 8260) and of partial reliability (RFC 3758, 7496), which run.sh reads.

# interleaved NAME LINK CLIENT SECONDS OPTIONS... is a row of both with I-DATA.
interleaved() {
	has=(64) lacks=(0 192)
	both "$@" --interleave && expect "$1" ours '^extensions .*i-data=true' "I-DATA is agreed on"
	has=() lacks=()
}

# abandoned NAME LINK CLIENT MESSAGES OPTIONS...: messages that are lost are given up, each way. Most
# arrive, and neither all of ours nor all of theirs.
abandoned() {
	local name=$1 on=$2 client=$3 n=$4 side lost
	shift 4
	mine=(--send "$n" --expect "$n" --abandon 0 --partial --rto-min 250 --rto-max 1000 "$@") yours=("${mine[@]}")
	[[ " $* " = *" --interleave "* ]] && has=(64 194) lacks=(0 192) || { has=(0 192) lacks=(64 194); }
	if [[ $client = us ]]; then mine+=(--end shutdown); else yours+=(--end shutdown); fi
	row "$name" "$on" "$client" 60 && {
		ended "$name"
		expect "$name" ours '^extensions pr=true' "partial reliability is agreed on"
		for side in ours theirs; do
			lost=$((n - $(sed -n 's/^received \([0-9]*\).*/\1/p' "$dir/$name.$side" || echo "$n")))
			if ((lost > 0 && lost < n / 5)); then
				ok "$name: $side: $lost of $n messages were given up"
			else
				bad "$name: $side: $lost of $n messages were given up"
			fi
		done
	}
	has=() lacks=()
}

# extension_rows CLIENT: I-DATA and partial reliability, without loss and with it.
extension_rows() {
	local who=$1 n=$((count / 10))
	interleaved "i-data-$who" raw4 "$who" 60 --send "$n" --expect "$n" --streams 100 --order both
	interleaved "i-data-long-messages-$who" raw6 "$who" 60 --send $((n / 20)) --expect $((n / 20)) --sizes big --order both
	interleaved "i-data-small-buffers-$who" udp4 "$who" 60 --send $((n / 20)) --expect $((n / 20)) --sizes big --buffer 70000
	interleaved "i-data-reordered-$who" raw4 "$who" 60 --send "$n" --expect "$n" --streams 30 --order both
	lossy
	interleaved "i-data-loss-$who" raw4 "$who" 60 --send "$n" --expect "$n" --streams 30 --order both --rto-min 250
	interleaved "i-data-loss-reordered-$who" raw4 "$who" 60 --send "$n" --expect "$n" --streams 30 --order both --rto-min 250
	abandoned "pr-loss-$who" raw4 "$who" "$n" --streams 30 --order both
	# usrsctp 0.9.5.0 takes the MID of an unordered message that is skipped for that of an ordered one.
	abandoned "pr-i-data-ordered-$who" raw4 "$who" "$n" --streams 30 --order ordered --interleave
	abandoned "pr-i-data-unordered-$who" raw6 "$who" "$n" --streams 30 --order unordered --interleave
	lossless
}
