# Rows of stream reconfiguration (RFC 6525), which run.sh and linux.sh read. Both ends ask for it in the middle of
# the transfer, and so meet each other's requests.

# performed NAME KIND...: each request of either end was performed, and both programs know of it.
performed() {
	local name=$1 kind
	shift
	for kind in "$@"; do
		expect "$name" ours "^asked $kind performed" "$peer_name grants us: $kind"
		expect "$name" theirs "^asked $kind performed" "we grant $peer_name: $kind"
	done
	if [[ $1 = add-* ]]; then
		expect "$name" ours "^streams-added in by=peer" "we hear of streams that $peer_name adds"
		expect "$name" theirs '^streams-added flags=0x0$' "$peer_name hears of streams"
		return
	fi
	expect "$name" ours "^streams-reset in by=peer" "we hear of a reset by $peer_name"
	expect "$name" theirs '^streams-reset in flags=0x1$' "$peer_name hears of our reset"
	expect "$name" theirs '^streams-reset out flags=0x2$' "$peer_name hears of its own"
	numbers_again "$name"
}

numbers_again() {
	expect "$1" ours '^numbers-again [1-9]' "SSNs of $peer_name begin anew"
	expect "$1" theirs '^numbers-again [1-9]' "our SSNs begin anew"
}

# reconfig_of_both NAME looks for RE-CONFIG chunks of both ends.
reconfig_of_both() {
	local from n
	[[ $1 = resets-* || $1 = adds-* || $1 = tsns-* ]] || return
	for from in "${ours[0]}" "${theirs[0]}"; do
		n=$(with_chunk "$1" 130 "$from")
		if ((n > 0)); then ok "$1: tshark: $n packets of $from with RE-CONFIG"; else bad "$1: no RE-CONFIG of $from"; fi
	done
}

# asking NAME LINK CLIENT KINDS OPTIONS...: a row in which both ends ask for these kinds.
asking() {
	local name=$1 on=$2 client=$3 kinds=$4
	shift 4
	mine=("$@" --send $((count / 20)) --expect $((count / 20)) --rto-min 250 --resets "$kinds") yours=("${mine[@]}")
	[[ $name = *-loss-* ]] && mine+=(--reorder 3)
	if [[ $client = us ]]; then mine+=(--end shutdown); else yours+=(--end shutdown); fi
	row "$name" "$on" "$client" 60 || return
	performed "$name" ${kinds//,/ }
	ended "$name"
}

# asking_rows CLIENT LINK NAME ORDER. usrsctp 0.9.5 forgets which message it is cutting when it adds a
# stream: it begins another one before the end (RFC 9260 section 6.9). So messages are short where it
# adds some.
asking_rows() {
	asking "resets-$3-$1" "$2" "$1" out,in,all-out,all-in --order "$4"
	asking "adds-$3-$1" "$2" "$1" add-out,add-in,add-out --sizes small
}

# tsns_rows CLIENT: TSNs are reset by either end. usrsctp cuts long messages. It sends DATA of before
# behind its answer to us, which is lost. When it has asked, it may stand still. See README.md.
tsns_rows() {
	local who=$1 asker name
	for asker in us them; do
		name=tsns-by-$asker-$who
		mine=(--send $((count / 20)) --expect $((count / 20)) --sizes small --resets out) yours=("${mine[@]}")
		if [[ $asker = us ]]; then mine+=(--resets out,tsns); else yours+=(--resets out,tsns); fi
		if [[ $asker = us && $peer_name = usrsctp ]]; then
			mine+=(--partial) yours+=(--end shutdown)
		elif [[ $who = us ]]; then mine+=(--end shutdown); else yours+=(--end shutdown); fi
		if [[ $asker = them && $peer_name = usrsctp ]]; then
			play "$name" raw4 "$who" 15 || continue
			stands_still "$name" && continue
			judge "$name"
		else
			row "$name" raw4 "$who" 60 || continue
		fi
		expect "$name" "$(report $asker)" '^asked tsns performed' "TSNs are reset"
		expect "$name" "$(report "$(other $asker)")" '^TSNs-reset .*by=peer$|^tsns-reset flags=0x0$' "the other end hears of it"
		numbers_again "$name"
		ended "$name"
	done
}

# stands_still NAME: usrsctp has reset TSNs, and takes what we acknowledge for older than our own next
# TSN. It takes notice of nothing then, and sends no more.
stands_still() {
	local senders receivers
	read -r senders receivers < <(tshark -r "$dir/$1.pcap" -Y 'sctp.parameter_reconfig_response_result == 1' \
		-T fields -e sctp.parameter_senders_next_tsn -e sctp.parameter_receivers_next_tsn 2>/dev/null | awk 'NF == 2' | tail -1)
	[[ -n ${receivers:-} ]] && (((receivers - senders & 0xffffffff) >= 0x80000000)) || return
	if grep -q '^result' "$dir/$1.theirs"; then
		bad "$1: usrsctp goes on behind TSN $receivers, which is before ours, $senders"
	else
		ok "$1: usrsctp stands still behind TSN $receivers, which is before ours, $senders"
	fi
	expect "$1" theirs '^asked tsns performed' "TSNs are reset"
	expect "$1" ours '^TSNs-reset .*by=peer$' "the other end hears of it"
	captured "$1"
}
