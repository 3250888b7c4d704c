# What the guest needs for siw, which Debian's kernel is built without: the driver, from the source
# of the same version, and the programs of the host, with their libraries. siw.sh reads this file
# behind guest.sh.

modules+=" siw ib_uverbs rdma_ucm"

# guest_driver TREE VERSION puts the driver among the modules.
guest_driver() {
	local driver=$cache/siw-$2.ko
	[[ -s $driver ]] || build_driver "$driver" "$2" || { echo "siw.sh: cannot build siw" >&2; return 1; }
	cp "$driver" "$1/lib/modules/$2/kernel/siw.ko"
}

# build_driver FILE VERSION builds it against the kernel's headers, which are unpacked and not
# installed.
build_driver() {
	local series=${2%%-*} work=$cache/siw version package
	series=${series%.*}
	version=$(apt-cache show "linux-image-$2" | sed -n 's/^Version: //p' | head -1)
	rm -rf "$work" && mkdir -p "$work/debs" "$work/siw" || return
	for package in "linux-source-$series=$version" "linux-headers-$2" "linux-headers-${2%-amd64}-common" "linux-kbuild-$series=$version"; do
		(cd "$work/debs" && apt-get download -q "$package" >/dev/null) || return
	done
	for package in "$work"/debs/linux-{headers,kbuild}-*.deb; do dpkg-deb -x "$package" "$work" || return; done
	dpkg-deb --fsys-tarfile "$work"/debs/linux-source-*.deb | tar xf - -O --wildcards './usr/src/linux-source-*.tar.xz' | xz -dc |
		tar xf - -C "$work/siw" --strip-components=5 --wildcards '*/drivers/infiniband/sw/siw/*' || return
	sed -i "s|/usr/src/|$work/usr/src/|" "$work/usr/src/linux-headers-$2/Makefile" || return
	make -s -C "$work/usr/src/linux-headers-$2" M="$work/siw" CC=gcc CONFIG_RDMA_SIW=m modules >"$cache/siw.log" 2>&1 ||
		{ tail "$cache/siw.log" >&2; return 1; }
	strip -g -o "$1" "$work/siw/siw.ko" && rm -rf "$work"
}

# guest_programs ROOT puts rping, rdma and perftest there, and our program on rdma-core.
guest_programs() {
	local provider=/usr/lib/x86_64-linux-gnu/libibverbs/libsiw-rdmav34.so program file
	for program in rping rdma ib_{send,write,read}_bw; do
		rm -f "$1/bin/$program"
		cp -L "$(command -v $program)" "$1/bin/$program" || return
	done
	cp "$dir/theirs-verbs" "$1/bin/verbs" || return
	mkdir -p "$1/etc/libibverbs.d" && echo 'driver siw' >"$1/etc/libibverbs.d/siw.driver"
	ldd "$1"/bin/{rping,rdma,ib_send_bw,verbs} $provider | grep -o '/[^ :]*\.so[^ :]*' | sort -u | while read -r file; do
		install_file "$file" "$1" || return
	done
	install_file /usr/lib/x86_64-linux-gnu/libgcc_s.so.1 "$1" # for threads that end
	install_file $provider "$1"
}

# install_file FILE ROOT copies a file to the same place there.
install_file() { mkdir -p "$2${1%/*}" && cp -L "$1" "$2$1"; }

# siw_up makes a device of the guest's first card.
siw_up() {
	in_guest rdma link add siw0 type siw netdev eth0 || return
	for _ in {1..50}; do
		in_guest test -e /dev/infiniband/uverbs0 -a -e /dev/infiniband/rdma_cm && return
		sleep 0.1
	done
	echo "siw.sh: the guest has no RDMA device" >&2
	return 1
}
