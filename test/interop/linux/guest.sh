# The guest whose kernel is the peer: Debian's Linux under qemu, without a disk. linux.sh and siw.sh
# read this file. guest_build makes kernel and initramfs in $cache, once for each version; guest_up
# starts it.

cache=${XDG_CACHE_HOME:-$HOME/.cache}/rddp-interop-linux

# modules of the guest, and what they need.
modules="virtio_pci virtio_net crc32c_generic sctp sch_netem"

guest_build() {
	local image version
	image=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9][^ ]*\).*/\1/p' | head -1)
	[[ $image ]] || { echo "linux.sh: there is no package linux-image-amd64" >&2; return 1; }
	version=${image#linux-image-}
	kernel=$cache/vmlinux-$version
	mkdir -p "$cache" && [[ -s $kernel && -d $cache/tree-$version ]] || guest_kernel "$image" "$version" || return
	if declare -F guest_driver >/dev/null; then guest_driver "$cache/tree-$version" "$version" || return; fi
	guest_files "$cache/tree-$version" "$version"
}

# guest_kernel IMAGE VERSION unpacks the package and takes the ELF kernel out of it, which qemu
# starts at once: a compressed one would take seconds to unpack itself.
guest_kernel() {
	local unpacked=$cache/tree-$2 offset
	rm -rf "$unpacked" "$cache"/*.deb
	(cd "$cache" && apt-get download -q "$1" >/dev/null) && dpkg-deb -x "$cache"/linux-image-*.deb "$unpacked" || return
	rm -f "$cache"/*.deb
	offset=$(LC_ALL=C grep -aboP '\xfd7zXZ\x00' "$unpacked/boot/vmlinuz-$2" | head -1 | cut -d: -f1)
	[[ $offset ]] || { echo "linux.sh: $1 is not compressed as expected" >&2; return 1; }
	tail -c "+$((offset + 1))" "$unpacked/boot/vmlinuz-$2" | xz -dc --single-stream 2>/dev/null >"$kernel"
	[[ $(head -c4 "$kernel" | tail -c3) = ELF ]]
}

# guest_files TREE VERSION makes $dir/initramfs: busybox, the agent, the peer, and the modules in
# the order of loading.
guest_files() {
	local root=$dir/root module file
	mkdir -p "$root"/{bin,dev,proc,sys,tmp,modules}
	cp "$(command -v busybox)" "$root/bin/" && ln -s busybox "$root/bin/sh" || return
	for file in $(busybox --list); do [[ $file = busybox || $file = sh ]] || ln -s busybox "$root/bin/$file"; done
	cp test/interop/linux/init "$root/init" && cp "$dir/agent" "$root/bin/" || return
	[[ ! -e $dir/theirs ]] || cp "$dir/theirs" "$root/bin/peer" || return
	if declare -F guest_programs >/dev/null; then guest_programs "$root" || return; fi
	/sbin/depmod -b "$1" "$2" || return
	for module in $modules; do
		/sbin/modprobe -d "$1" -S "$2" --show-depends "$module" | sed -n 's/^insmod \([^ ]*\).*/\1/p'
	done | awk '!seen[$0]++' | while read -r file; do
		cp "$file" "$root/modules/" && basename "$file"
	done >"$root/modules/order"
	grep -q sctp.ko "$root/modules/order" || { echo "linux.sh: the kernel's package has no SCTP" >&2; return 1; }
	(cd "$root" && find . | LC_ALL=C sort | cpio -o -H newc --quiet -R 0:0) >"$dir/initramfs"
}

# guest_up starts the guest with its two network cards on tap0 and tap1 of namespace $B.
guest_up() {
	local nics=() n
	for n in 0 1; do
		# No offloads: what is on the tap is what would be on a wire, with its checksum.
		nics+=(-netdev "tap,id=n$n,ifname=tap$n,script=no,downscript=no,vhost=off"
			-device "virtio-net-pci,netdev=n$n,mac=52:54:00:77:00:0$n,host_mtu=9000,csum=off,gso=off,guest_csum=off,guest_tso4=off,guest_tso6=off,guest_ufo=off,host_tso4=off,host_tso6=off,host_ufo=off")
	done
	start "$B" "$dir/qemu" qemu-system-x86_64 -M q35 -accel tcg,thread=multi -cpu max -m 512 -nodefaults -no-user-config -display none -no-reboot \
		-kernel "$kernel" -initrd "$dir/initramfs" -serial "file:$dir/console" "${nics[@]}" \
		-append 'console=ttyS0 quiet panic=-1 nokaslr mitigations=off tsc=reliable no_timer_check net.ifnames=0 random.trust_cpu=on'
	guest=$pid
	await 300 "$dir/console" '^guest is up' && for _ in {1..100}; do in_guest true 2>/dev/null && return; sleep 0.1; done
	echo "linux.sh: the guest does not start" >&2
	cat "$dir/qemu" "$dir/console" >&2
	return 1
}

# in_guest COMMAND ARGS... runs a command there.
in_guest() { ip netns exec "$B" "$dir/agent" run 10.77.0.2:7777 "$@"; }

# guest_is_rid_of NAME waits until a program whose agent has been killed is gone, and its sockets
# with it.
guest_is_rid_of() { while in_guest pidof "$1" >/dev/null; do sleep 0.05; done; }

# guest_alive says what has become of a guest that does not answer: one that has stopped for good is
# started anew.
guest_alive() {
	timeout 10 ip netns exec "$B" "$dir/agent" run 10.77.0.2:7777 true && return
	echo "     the guest has stopped; another is started"
	stop "$guest"
	guest_up && guest_mtu "$mtu"
}
