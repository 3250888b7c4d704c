package compat

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// openSocket is replaced by tests.
var openSocket = unix.Socket

// newPlaceholder opens a placeholder.
func newPlaceholder(v6, v6only bool) (int, error) {
	family := unix.AF_INET
	if v6 {
		family = unix.AF_INET6
	}
	fd, err := openSocket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if v6 {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, boolInt(v6only))
	}
	if err == unix.EAFNOSUPPORT && v6 { // a host without IPv6
		fd, err = openSocket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	}
	return fd, err
}

func closePlaceholder(fd int) { unix.Close(fd) }

// placeholderKey returns the socket's cookie. No two sockets have had the same since the host was
// booted.
func placeholderKey(fd int) (uint64, error) {
	return unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
}

func setPlaceholder(fd int, w placeholderOptions) {
	_ = setTimeout(fd, false, w.rcvTimeout)
	_ = setTimeout(fd, true, w.sndTimeout)
	_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER,
		&unix.Linger{Onoff: int32(boolInt(w.linger)), Linger: int32(w.lingerTime / time.Second)})
	if w.class != 0 {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TOS, w.class)
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, w.class)
	}
	for send, n := range map[bool]int{false: w.rcvBuf, true: w.sndBuf} {
		if n != 0 {
			_ = setBuffer(fd, send, n/2)
		}
	}
}

func readPlaceholder(fd int) (w placeholderOptions) {
	w.rcvTimeout, w.sndTimeout = getTimeout(fd, unix.SO_RCVTIMEO), getTimeout(fd, unix.SO_SNDTIMEO)
	if l, err := unix.GetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER); err == nil {
		w.linger, w.lingerTime = l.Onoff != 0, time.Duration(l.Linger)*time.Second
	}
	w.rcvBuf, w.sndBuf = nonDefaultBuffer(fd, false), nonDefaultBuffer(fd, true)
	flags, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	w.nonblock = flags&unix.O_NONBLOCK != 0
	w.class, _ = unix.GetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TOS)
	if class, err := unix.GetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_TCLASS); err == nil && class > 0 {
		w.class = class
	}
	return w
}

// defaultBuffers are the buffer sizes of a socket if nobody has set them.
var defaultBuffers = sync.OnceValue(func() map[bool]int {
	d := make(map[bool]int)
	if fd, err := newPlaceholder(false, false); err == nil {
		defer closePlaceholder(fd)
		d[false], _ = getBuffer(fd, false)
		d[true], _ = getBuffer(fd, true)
	}
	return d
})

// nonDefaultBuffer returns the size of a buffer that was set, or else 0.
func nonDefaultBuffer(fd int, send bool) int {
	n, _ := getBuffer(fd, send)
	if n == defaultBuffers()[send] {
		return 0
	}
	return n
}

func getTimeout(fd, opt int) time.Duration {
	tv, _ := unix.GetsockoptTimeval(fd, unix.SOL_SOCKET, opt) // 0 where it fails
	return time.Duration(tv.Nano())
}

func setTimeout(fd int, send bool, d time.Duration) error {
	tv := unix.NsecToTimeval(d.Nanoseconds())
	return unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, pickInt(send, unix.SO_SNDTIMEO, unix.SO_RCVTIMEO), &tv)
}

func setBuffer(fd int, send bool, octets int) error {
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, pickInt(send, unix.SO_SNDBUF, unix.SO_RCVBUF), octets)
}

func getBuffer(fd int, send bool) (int, error) {
	return unix.GetsockoptInt(fd, unix.SOL_SOCKET, pickInt(send, unix.SO_SNDBUF, unix.SO_RCVBUF))
}

func setNonblock(fd int, on bool) error { return unix.SetNonblock(fd, on) }
