#!/usr/bin/env bash
# Aims the hostile peer at a release of pion/sctp with a fault that is known since July 2024: it
# must find it, without being told. SEED chooses what it does; it may take DURATION, by default 10
# minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
go build -o bin/aim ./fuzz/aim
(cd fuzz/aim/pion && GOWORK=off go build -o ../../../bin/pion-1.8.16 .)
port=$((20000 + RANDOM % 20000))
bin/pion-1.8.16 -addr 127.0.0.1:$port 2>bin/pion-1.8.16.log &
target=$!
trap 'kill $target 2>/dev/null || true' EXIT
sleep 0.5
status=0
bin/aim --encap-port $port --seed "${SEED:-1}" --duration "${DURATION:-10m}" --out bin/aim.pcapng 127.0.0.1:5000 | grep -v '^  ' || status=${PIPESTATUS[0]}
grep -m1 -e '^panic' -e '^fatal' bin/pion-1.8.16.log || true
[ "$status" = 1 ] || { echo "aim: the fault was not found"; exit 1; }
