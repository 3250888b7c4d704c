# Rows of I-DATA and of schedulers (RFC 8260) and of partial reliability (RFC 3758, 7496), which run.sh
# and linux.sh read.

# interleaved NAME LINK CLIENT SECONDS OPTIONS... is a row of both with I-DATA.
interleaved() {
	has=(64) lacks=(0 192)
	both "$@" --interleave && expect "$1" ours '^extensions .*i-data=true' "I-DATA is agreed on"
	has=() lacks=()
}

# abandoned NAME LINK CLIENT MESSAGES OPTIONS... is a row in which messages are given up, each way.
abandoned() {
	local name=$1 on=$2 client=$3 n=$4
	shift 4
	mine=(--send "$n" --expect "$n" --abandon 0 --partial --rto-min 250 --rto-max 1000 "$@") yours=("${mine[@]}")
	[[ $name = *-reordered-* ]] && mine+=(--reorder 3)
	if [[ $client = us ]]; then mine+=(--end shutdown); else yours+=(--end shutdown); fi
	chunks_abandoned "$@"
	row "$name" "$on" "$client" 60 && ended "$name" && gave_up "$name" "$n" "$@"
	has=() lacks=()
}

# chunks_abandoned OPTIONS... says what chunks such a row has. What expires before it is sent needs no
# FORWARD TSN, which may be all of it.
chunks_abandoned() {
	[[ " $* " = *" --interleave "* ]] && has=(64 194) lacks=(0 192) || { has=(0 192) lacks=(64 194); }
	[[ " $* " != *" timed "* ]] || has=("${has[0]}")
}

# gave_up NAME MESSAGES OPTIONS...: neither all of ours have come, nor all of theirs. Where only what
# is lost is given up, most have.
gave_up() {
	local name=$1 n=$2 side lost most=$(($2 / 5))
	shift 2
	[[ " $* " != *" --policy "[tp]* ]] || most=$n
	expect "$name" ours '^extensions pr=true' "partial reliability is agreed on"
	for side in ours theirs; do
		# usrsctp 0.9.5 makes no room so. pion 1.12.1 gives nothing up for its age: before it looks, it
		# sets the time of a chunk that it sends again.
		[[ "$side $peer_name $*" =~ ^ours\ (usrsctp.*\ priority|pion.*\ timed)(\ |$) ]] && continue
		lost=$(sed -n 's/^received \([0-9]*\).*/\1/p' "$dir/$name.$side")
		lost=$((n - ${lost:-0}))
		if ((lost > 0 && lost < most)); then
			ok "$name: $side: $lost of $n messages were given up"
		else
			bad "$name: $side: $lost of $n messages were given up"
		fi
	done
}

# scheduled NAME LINK CLIENT SECONDS OPTIONS...: each end's streams take turns as each scheduler has
# it, with DATA and with I-DATA. The rows of I-DATA with usrsctp have round robin.
scheduled() {
	local name=$1 on=$2 client=$3 seconds=$4 kind cut=()
	shift 4
	[[ $peer_name != Linux ]] || cut=(--sizes short)
	for kind in fcfs rr prio; do
		[[ $peer_name = Linux || $kind = prio ]] && both "$name-$kind-$client" "$on" "$client" "$seconds" "$@" --scheduler $kind
		[[ $peer_name = usrsctp && $kind = rr ]] || interleaved "$name-$kind-i-data-$client" "$on" "$client" "$seconds" "$@" "${cut[@]}" --scheduler $kind
	done
}

# extension_rows CLIENT: I-DATA and partial reliability, without loss and with it.
extension_rows() {
	local who=$1 n=$((count / 10))
	interleaved "i-data-$who" raw4 "$who" 60 --send "$n" --expect "$n" --streams 100 --order both
	interleaved "i-data-long-messages-$who" raw6 "$who" 60 --send $((n / 20)) --expect $((n / 20)) --sizes big --order both
	interleaved "i-data-small-buffers-$who" udp4 "$who" 60 --send $((n / 20)) --expect $((n / 20)) --sizes big --buffer 70000
	interleaved "i-data-reordered-$who" raw4 "$who" 60 --send "$n" --expect "$n" --streams 30 --order both
	# The buffer has room for what has come of all messages: usrsctp may wait for the rest of each.
	scheduled streams raw4 "$who" 60 --send $((n / 10)) --expect $((n / 10)) --sizes big --order both --buffer 2000000
	lossy
	interleaved "i-data-loss-$who" raw4 "$who" 60 --send "$n" --expect "$n" --streams 30 --order both --rto-min 250
	interleaved "i-data-loss-reordered-$who" raw4 "$who" 60 --send "$n" --expect "$n" --streams 30 --order both --rto-min 250
	pr_rows "$who" "$n"
	lossless
}

# pr_rows CLIENT MESSAGES: under loss, for each policy. usrsctp 0.9.5.0 takes the MID of an unordered
# message that is skipped for that of an ordered one. Linux lists I-DATA alone, and so does not agree
# on giving messages up with it (RFC 8260 section 2.3.1).
pr_rows() {
	local who=$1 n=$2 policy options
	for policy in resent timed priority; do
		options=(--streams 30 --policy $policy)
		[[ $policy != timed ]] || options+=(--abandon 10)
		[[ $policy != priority ]] || options+=(--abandon 5 --sizes small --buffer 5000)
		[[ $peer_name = usrsctp && $policy != resent ]] || abandoned "pr-$policy-loss-$who" raw4 "$who" "$n" "${options[@]}" --order both
		abandoned "pr-$policy-loss-reordered-$who" raw4 "$who" "$n" "${options[@]}" --order both
		[[ $peer_name = usrsctp && $policy != priority ]] || continue
		abandoned "pr-$policy-i-data-ordered-reordered-$who" raw4 "$who" "$n" "${options[@]}" --order ordered --interleave
		[[ $policy = timed ]] || abandoned "pr-$policy-i-data-unordered-$who" raw6 "$who" "$n" "${options[@]}" --order unordered --interleave
	done
}
