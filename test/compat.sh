#!/usr/bin/env bash
# Programs written for github.com/ishidawataru/sctp and github.com/free5gc/sctp run on ours:
# go-diameter's SCTP tests unchanged, by either way of replacing, over UDP without privileges and,
# as root, over raw IP; both originals' own tests; and the PPID on the wire. About a minute.
# Everything is in a temporary directory, and of the others' code nothing stays. As root the tests
# run in network namespaces of their own.
set -euo pipefail
cd "$(dirname "$0")/.."
top=$PWD go=${GO:-go}
diameter=github.com/fiorix/go-diameter/v4@v4.0.4
GOFLAGS="$($go env GOFLAGS) -mod=mod"
export GOFLAGS CGO_ENABLED=0
export GOWORK=off

tmp=$(mktemp -d)
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT
chmod 755 "$tmp"

# requirements: what each module of this repository requires, which no run may change
requirements() {
	find . -name go.mod -o -name go.sum | sort | xargs sha256sum
}
requirements >"$tmp/requirements"

fail() { echo "compat: $*" >&2; exit 1; }

# module PATH@VERSION DIR: a copy of a module
module() {
	local from
	from=$($go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",/\1/p')
	[ -d "$from" ] || fail "$1 cannot be had"
	cp -r "$from" "$2"
	chmod -R u+w "$2"
}

# alone COMMAND...: in a network namespace of its own if this is root
alone() {
	if [ "$(id -u)" = 0 ]; then
		unshare -n bash -c 'ip link set lo up; exec "$@"' bash "$@"
	else
		"$@"
	fi
}

# run LINK DIR BINARY ARGS...: a test binary over a link, without privileges if that is udp
run() {
	local link=$1 as=()
	if [ "$link" = raw ] && [ "$(id -u)" != 0 ]; then
		[ -z "${CI:-}" ] || fail "raw needs root"
		echo "skipped: raw needs root"
		return
	fi
	[ "$link" = raw ] || [ "$(id -u)" != 0 ] || as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	for try in 1 2 3; do
		! (cd "$2" && RDDP_LINK=$link alone timeout 60 "${as[@]}" "${@:3}") >"$tmp/log" 2>&1 || break
		# Some of go-diameter's tests give the goroutine that is to listen 10 ms before they dial,
		# which over TCP too is not enough on a busy machine.
		[ $try -lt 3 ] && grep -q 'connection refused' "$tmp/log" || {
			grep -v '^[EWI][0-9]\{4\} ' "$tmp/log" | tail -40
			fail "$3 over $link, in $2"
		}
	done
	grep -q '^PASS' "$tmp/log" || fail "$3 has run nothing"
}

# Left out of go-diameter's, and of no other: TestCapabilitiesExchangeSCTP_TLS. Its server has TLS
# 1.0 alone, which Go's TLS clients no longer have: the same test over TCP fails in the same way. So
# that this is no pretext, that is tried. TestS6aClientServerTCP bears the name of what is run, but
# is not about SCTP.
skip='TestCapabilitiesExchangeSCTP_TLS|TestS6aClientServerTCP'
tests='SCTP|S6a'

# diameter LABEL DIR: build and run the tests in a copy whose modules are replaced
diameter() {
	local pkg bin
	for pkg in diam diam/diamtest diam/sm examples/s6a_proxy/service/test; do
		bin=$tmp/bin/$1-$(echo "$pkg" | tr / -)
		(cd "$2" && $go test -c -o "$bin" "./$pkg") || fail "$pkg does not build, $1"
		for link in udp raw; do
			run $link "$2/$pkg" "$bin" -test.run "$tests" -test.skip "$skip" -test.v
			echo "ok: $pkg, $1, over $link: $(grep -c '^--- PASS' "$tmp/log") tests"
		done
	done
	if "$tmp/bin/$1-diam" -test.run '^TestCapabilitiesExchangeTLS$' >/dev/null 2>&1; then
		fail "Go has TLS 1.0 again: run TestCapabilitiesExchangeSCTP_TLS"
	fi
}

mkdir "$tmp/bin"
module "$diameter" "$tmp/replaced"
(cd "$tmp/replaced" && $go mod edit -replace github.com/ishidawataru/sctp="$top/compat/ishidawataru" -replace github.com/rddp-go/rddp="$top" && $go mod tidy 2>/dev/null)
diameter replace "$tmp/replaced"

module "$diameter" "$tmp/work"
cp -r "$tmp/work" "$tmp/before"
cat >"$tmp/go.work" <<END
go 1.26.0
use ./work
use $top/compat/ishidawataru
replace github.com/rddp-go/rddp v0.0.0 => $top
END
(
	export GOWORK=$tmp/go.work GOFLAGS=${GOFLAGS/-mod=mod/}
	diameter workspace "$tmp/work"
	cd "$tmp/work" && $go build -o "$tmp/bin/client-workspace" ./examples/client
)
diff -r "$tmp/before" "$tmp/work" || fail "the workspace has changed the program's files"

# What goes out for a PPID of 46: go-diameter was written for the version of 2019, which sends a
# PPID as it lies in memory, other programs for one of today.
$go build -o "$tmp/bin/peer" ./test/compat/peer
(cd "$tmp/replaced" && $go build -o "$tmp/bin/client-replace" ./examples/client)
mkdir "$tmp/today"
cat >"$tmp/today/main.go" <<'END'
package main

import "github.com/ishidawataru/sctp"

func main() {
	to, err := sctp.ResolveSCTPAddr("sctp", "127.0.0.1:7777")
	if err != nil {
		panic(err)
	}
	c, err := sctp.DialSCTP("sctp", nil, to)
	if err == nil {
		_, err = c.SCTPWrite([]byte("hello"), &sctp.SndRcvInfo{PPID: 46})
	}
	if err != nil {
		panic(err)
	}
	c.Close()
}
END
(cd "$tmp/today" && $go mod init today 2>/dev/null && $go mod edit -require github.com/ishidawataru/sctp@v0.0.0-20251114114122-19ddcbc6aae2 \
	-replace github.com/ishidawataru/sctp="$top/compat/ishidawataru" -replace github.com/rddp-go/rddp="$top" && $go mod tidy 2>/dev/null && $go build -o "$tmp/bin/client-today" .)
octets() { # CLIENT ARGS...
	export RDDP_LINK=udp
	"$tmp/bin/peer" >"$tmp/ppid" & peer=$!
	until grep -q listening "$tmp/ppid"; do kill -0 $peer; done
	timeout 10 "$@" >/dev/null 2>&1 & client=$!
	wait $peer
	kill $client 2>/dev/null || true
	tail -1 "$tmp/ppid"
}
export -f octets
export tmp
for client in client-replace client-workspace client-today; do
	got=$(alone bash -c 'octets "$@"' bash "$tmp/bin/$client" -network_type sctp -addr 127.0.0.1:7777)
	[ "$got" = "00 00 00 2e" ] || fail "$client sends the PPID 46 as '$got'"
	echo "ok: $client sends the PPID 46 as $got"
done

# The scoreboard's two ends of go-diameter, which are a module that replaces it, too.
(cd compat/ishidawataru/diameter && $go vet -mod=readonly . && $go build -mod=readonly -o "$tmp/bin/diameter-end" .) || fail "its two ends do not build"
trips() { # LINK SHAPE CONNECTIONS
	local what="\"link\":\"$1\",\"shape\":\"$2\",\"conns\":$3,\"size\":100,\"seconds\":0.1,\"local\":\"127.0.0.1\",\"remote\":\"127.0.0.1\"}"
	"$tmp/bin/diameter-end" "{\"server\":true,$what" >"$tmp/server" & server=$!
	until grep -q ready "$tmp/server"; do kill -0 $server || return; done
	timeout 60 "$tmp/bin/diameter-end" "{$what"
	kill $server
}
export -f trips
for link in "" udp raw; do
	[ "$link" != raw ] || [ "$(id -u)" = 0 ] || continue
	for shape in "direct 8" "pipelined 1"; do
		got=$(alone bash -c 'trips "$@"' bash "$link" $shape) || fail "diameter-end over ${link:-tcp}, $shape"
		[[ $got == *'"messages":'[1-9]* ]] || fail "diameter-end has said '$got'"
		echo "ok: diameter-end over ${link:-tcp}, $shape"
	done
done

# The originals' own tests, all of them but what the arguments leave out, against ours, which has
# the unexported names that they use.
originals() { # NAME MODULE@VERSION ARGS...
	local at=$tmp/$1-${2##*@}
	mkdir "$at"
	cp "$top/compat/$1"/*.go "$at/"
	rm "$at"/*_test.go
	module "$2" "$at-original"
	cp "$at-original"/*_test.go "$at/"
	sed "s|=> ../..|=> $top|" "$top/compat/$1/go.mod" >"$at/go.mod"
	cp "$top/compat/$1/go.sum" "$at/"
	(cd "$at" && $go mod tidy 2>/dev/null && $go test -c -vet=off -o "$tmp/bin/$1" .) || fail "the tests of $2 do not build"
	for link in udp raw; do
		run $link "$at" "$tmp/bin/$1" -test.v "${@:3}"
		echo "ok: the tests of $2 over $link: $(grep -c '^--- PASS' "$tmp/log") passed"
	done
}
originals ishidawataru github.com/ishidawataru/sctp@v0.0.0-20251114114122-19ddcbc6aae2
originals free5gc github.com/free5gc/sctp@v1.1.0
originals free5gc github.com/free5gc/sctp@v1.2.0 -test.skip '^TestBindErrorContext$' # which opens a socket of the kernel's SCTP by itself
GOFLAGS=${GOFLAGS% -mod=mod} # what runs in this repository requires what it says
for name in ishidawataru free5gc; do
	(cd "$top/compat/$name" && $go test -count=1 .)
done
cd "$top"
test/compat/pion.sh "$@"
requirements | diff "$tmp/requirements" - || fail "the run has changed what a module requires"
echo "compat: all green"
