#!/usr/bin/env bash
# The tests of the protocol packages on other processors: arm64, and s390x, whose octets are in the
# other order. The test binaries are built here and run by qemu's user mode. --short takes the
# packages that put numbers into packets and take them out again, and runs them with -short.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(./sctp/wire ./sctp/cc ./sctp/assoc ./sctp/endpoint ./sctp/internal/... ./ddp ./ddpadapt ./rdma/rdmap
	./rawio ./rawio/internal/iphdr ./rawio/internal/defrag ./rawio/simnet)
flags=(-timeout 2h)

if [[ ${1-} == --short ]]; then
	flags=(-short)
	packages=(./sctp/wire ./sctp/assoc ./ddp ./rdma/rdmap ./rawio/internal/iphdr)
fi
if ! command -v qemu-s390x-static >/dev/null || ! command -v qemu-aarch64-static >/dev/null; then
	apt-get update -q >/dev/null
	DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends qemu-user-static >/dev/null
fi
for arch in arm64:aarch64 s390x:s390x; do
	echo "== ${arch%%:*}"
	GOARCH=${arch%%:*} CGO_ENABLED=0 ${GO:-go} test -vet=off "${flags[@]}" -exec "qemu-${arch##*:}-static" "${packages[@]}"
done
