#!/usr/bin/env bash
# compat/pion in place of github.com/pion/sctp: its own tests, its table of what the original does
# against the original itself, and the tests of programs that use the original, unchanged. With
# --full all of theirs, otherwise those about SCTP. Everything is in a temporary directory.
set -euo pipefail
cd "$(dirname "$0")/../.."
top=$PWD go=${GO:-go} full=${1:-}
export CGO_ENABLED=0 GOWORK=off
original=github.com/pion/sctp@v1.12.1
tmp=$(mktemp -d)
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT

fail() { echo "compat: $*" >&2; exit 1; }

# run NAME DIR ARGS...: build the tests in a directory and run them
run() {
	(cd "$2" && $go test -mod=mod -c -vet=off -o "$tmp/${1##*/}.test" .) || fail "the tests of $1 do not build"
	local since=$SECONDS
	(cd "$2" && "$tmp/${1##*/}.test" -test.v -test.timeout 10m "${@:3}") >"$tmp/log" 2>&1 || {
		grep -v '^=== ' "$tmp/log" | tail -60
		fail "tests of $1 fail"
	}
	grep -q '^PASS' "$tmp/log" || fail "$1 has run nothing"
	echo "ok: $1: $(grep -c '^--- PASS' "$tmp/log") tests in $((SECONDS - since)) s"
}

# program MODULE@VERSION DIR: a copy of a module, with the original replaced
program() {
	local from
	from=$($go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",/\1/p')
	[ -d "$from" ] || fail "$1 cannot be had"
	cp -r "$from" "$2"
	chmod -R u+w "$2"
	(cd "$2" && $go mod edit -replace github.com/pion/sctp="$top/compat/pion" -replace github.com/rddp-go/rddp="$top" &&
		$go mod tidy 2>/dev/null)
}

(cd compat/pion && $go vet . && $go test -count=1 .)
(cd examples/datachannel && $go vet . && $go test -count=1 .)

# A row that fails with the original is wrong. Left out: the original measures a message's time from
# its last transmission, so that none is ever too old; it waits for ever for the end of a message that
# is longer than its window, for a stream that is opened again while its reset waits, and for the end
# of a write whose stream is closed.
mkdir "$tmp/semantics"
cp compat/pion/*_test.go "$tmp/semantics"
rm "$tmp"/semantics/{original,environment,inside}_test.go # of what is ours alone
(cd "$tmp/semantics" && $go mod init semantics 2>/dev/null && $go mod edit -go 1.26 -require "$original" && $go mod tidy 2>/dev/null)
run "what the original does" "$tmp/semantics" -test.skip '^TestReliability(WithInterleaving)?$/^a_time(,_unordered)?$|^Test(MessageLongerThanTheWindow|WritesToANumberThatWaitsForItsReset|CloseEndsAWriteThatWaits)$'

# Left out of pion/datachannel's, each with a test of compat/pion in its place (TestReliability): they
# drop the first packet on the wire and take it for DATA. It may be the SACK of the association's
# first DATA, which goes at once (RFC 9260 section 5.1) and not after 200 ms as the original's.
program github.com/pion/datachannel@v1.6.4 "$tmp/datachannel"
run pion/datachannel "$tmp/datachannel" -test.skip '^TestDataChannel$/^ChannelTypePartialReliable(Rexmit|Timed)$'

# Left out of pion/webrtc's, with TestLowBuffer of compat/pion in its place: it waits for the amount
# that is buffered to fall, by a callback that it sets when the channel is there. The one message of
# that channel may have been acknowledged by then, and nothing is heard any more.
program github.com/pion/webrtc/v4@v4.2.26 "$tmp/webrtc"
what=(-test.run 'SCTP|Sctp|DataChannel|EOF|BufferedAmount|MaxMessageSize')
[ "$full" != --full ] || what=()
run pion/webrtc "$tmp/webrtc" -test.skip '^TestOnBufferedAmountLowDeadlock$' "${what[@]}"

if [ "$full" = --full ]; then # what setting up and holding associations costs, with the original and with ours
	for dir in "$tmp/semantics" compat/pion; do
		(cd "$dir" && $go test -c -o "$tmp/bench.test" . && "$tmp/bench.test" -test.run '^$' -test.bench . | grep ^Benchmark)
	done
fi
echo "compat/pion: all green"
