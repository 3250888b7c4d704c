#!/usr/bin/env bash
# Installs what looks at the pages, unless it is there: Debian's Chromium, as root, and axe-core, of
# one version and content, by npm.
set -euo pipefail
cd "$(dirname "$0")"

AXE=4.14.1
SUM=FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ== # SHA-512 of the package

need=()
command -v chromium >/dev/null || need+=(chromium)
command -v npm >/dev/null || [[ -e axe.min.js ]] || need+=(npm)
if ((${#need[@]})); then
	echo "installing ${need[*]}" >&2
	apt-get update -q >/dev/null
	DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${need[@]}" >/dev/null
fi

grep -qs "axe v$AXE" axe.min.js && exit
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
npm pack --silent --pack-destination "$dir" "axe-core@$AXE" >/dev/null
got=$(openssl dgst -sha512 -binary "$dir/axe-core-$AXE.tgz" | base64 -w 0)
if [[ $got != "$SUM" ]]; then
	echo "install.sh: axe-core $AXE is not what it was: SHA-512 $got" >&2
	exit 1
fi
tar -xzf "$dir/axe-core-$AXE.tgz" -C "$dir"
cp "$dir/package/axe.min.js" .
