package compat

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// newHolder opens a placeholder.
func newHolder(v6, v6only bool) (int, error) {
	family := unix.AF_INET
	if v6 {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if v6 {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, boolInt(v6only))
	}
	if err == unix.EAFNOSUPPORT && v6 { // a host without IPv6
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	}
	return fd, err
}

func closeHolder(fd int) { unix.Close(fd) }

// holderKey is the cookie, which no two sockets have had since the host was booted.
func holderKey(fd int) (uint64, error) {
	return unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
}

func setHolder(fd int, w settings) {
	_ = setTimeout(fd, false, w.rcvTimeout)
	_ = setTimeout(fd, true, w.sndTimeout)
	_ = setNonblock(fd, w.nonblock)
	_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: int32(boolInt(w.linger)), Linger: int32(w.lingerTime / time.Second)})
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

func getHolder(fd int) (w settings) {
	w.rcvTimeout, w.sndTimeout = timeout(fd, unix.SO_RCVTIMEO), timeout(fd, unix.SO_SNDTIMEO)
	if l, err := unix.GetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER); err == nil {
		w.linger, w.lingerTime = l.Onoff != 0, time.Duration(l.Linger)*time.Second
	}
	w.rcvBuf, w.sndBuf = changed(fd, false), changed(fd, true)
	flags, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	w.nonblock = flags&unix.O_NONBLOCK != 0
	w.class, _ = unix.GetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TOS)
	if class, err := unix.GetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_TCLASS); err == nil && class > 0 {
		w.class = class
	}
	return w
}

// defaults are the buffers of a socket that nobody has set.
var defaults = sync.OnceValue(func() map[bool]int {
	d := make(map[bool]int)
	if fd, err := newHolder(false, false); err == nil {
		defer closeHolder(fd)
		d[false], _ = getBuffer(fd, false)
		d[true], _ = getBuffer(fd, true)
	}
	return d
})

// changed returns the size of a buffer that was set, else 0.
func changed(fd int, send bool) int {
	n, _ := getBuffer(fd, send)
	if n == defaults()[send] {
		return 0
	}
	return n
}

func timeout(fd, opt int) time.Duration {
	tv, _ := unix.GetsockoptTimeval(fd, unix.SOL_SOCKET, opt) // 0 where it fails
	return time.Duration(tv.Nano())
}

func setTimeout(fd int, send bool, d time.Duration) error {
	tv := unix.NsecToTimeval(d.Nanoseconds())
	return unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, pick(send, unix.SO_SNDTIMEO, unix.SO_RCVTIMEO), &tv)
}

func setBuffer(fd int, send bool, octets int) error {
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, pick(send, unix.SO_SNDBUF, unix.SO_RCVBUF), octets)
}

func getBuffer(fd int, send bool) (int, error) {
	return unix.GetsockoptInt(fd, unix.SOL_SOCKET, pick(send, unix.SO_SNDBUF, unix.SO_RCVBUF))
}

func setNonblock(fd int, on bool) error { return unix.SetNonblock(fd, on) }
