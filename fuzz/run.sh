#!/usr/bin/env bash
# Runs every fuzz target below fuzz/ for FUZZTIME, one after the other.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go} time=${FUZZTIME:-20s}
for pkg in $("$go" list ./fuzz/...); do
	for target in $("$go" test -list '^Fuzz' "$pkg" | grep '^Fuzz' || true); do
		echo "-- $pkg $target"
		"$go" test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 10x -parallel 2 "$pkg"
	done
done
