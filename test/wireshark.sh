#!/usr/bin/env bash
# Has Wireshark's dissectors, which are not ours, decode every message there is with
# tools/wireshark/rddp.lua, and compares what they see with what was sent. Needs tshark; as root it
# runs in a network namespace of its own, so that UDP port 9899 is free.
#
#   KEEP=file     leave the capture there
#
# One line per message; the last line is "N passed, M failed".
set -euo pipefail
cd "$(dirname "$0")/.."
command -v tshark >/dev/null || { echo "wireshark.sh: tshark is missing: install tshark" >&2; exit 2; }

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
CGO_ENABLED=0 "${GO:-go}" build -o "$dir/wireshark" ./test/wireshark
run=("$dir/wireshark" ${KEEP:+-keep "$KEEP"} tools/wireshark/rddp.lua)
if (($(id -u) == 0)); then
	run=(unshare -n sh -c 'ip link set lo up && exec "$@"' sh "${run[@]}")
fi
"${run[@]}"
