#!/usr/bin/env bash
# Installs the peers that the scoreboard takes from Debian, unless they are there. Needs root.
set -euo pipefail

need=()
command -v iperf3 >/dev/null || need+=(iperf3)
command -v cc >/dev/null || need+=(gcc libc6-dev)
[[ -e /usr/include/usrsctp.h ]] || need+=(libusrsctp-dev)
if ((${#need[@]})); then
	echo "installing ${need[*]}" >&2
	apt-get update -q >/dev/null
	DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${need[@]}" >/dev/null
fi
