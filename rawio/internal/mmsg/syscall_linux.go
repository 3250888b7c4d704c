package mmsg

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mmsghdr is struct mmsghdr of recvmmsg(2). Go pads it to the alignment of Msghdr, as C does.
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32 // octets received or sent
}

// These calls never wait, so the runtime is not informed of them (RawSyscall6). Otherwise the first
// one after a pause would wake the runtime's monitor. That costs as much as the call and takes a
// processor from the sender of the packet. In the longer calls this goroutine would lose its place.

// hasSingleCalls says whether the kernel has system calls for one message, which take less time.
// linux/386 and s390x had none of their own before Linux 4.3.
const hasSingleCalls = runtime.GOARCH != "386" && runtime.GOARCH != "s390x"

// sendmmsg is sendmmsg(2). h is not empty.
func sendmmsg(fd uintptr, h []mmsghdr) (int, syscall.Errno) {
	if m := &h[0].hdr; hasSingleCalls && len(h) == 1 && m.Iovlen == 1 && m.Controllen == 0 {
		_, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, fd,
			uintptr(unsafe.Pointer(m.Iov.Base)), uintptr(m.Iov.Len), unix.MSG_DONTWAIT,
			uintptr(unsafe.Pointer(m.Name)), uintptr(m.Namelen))
		return 1, errno
	}
	n, _, errno := syscall.RawSyscall6(unix.SYS_SENDMMSG, fd,
		uintptr(unsafe.Pointer(&h[0])), uintptr(len(h)), unix.MSG_DONTWAIT, 0, 0)
	return int(n), errno
}

// recvmmsg is recvmmsg(2). h is not empty.
func recvmmsg(fd uintptr, h []mmsghdr, flags uintptr) (int, syscall.Errno) {
	if hasSingleCalls && len(h) == 1 {
		n, _, errno := syscall.RawSyscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&h[0])), unix.MSG_DONTWAIT|flags)
		h[0].n = uint32(n)
		return 1, errno
	}
	n, _, errno := syscall.RawSyscall6(unix.SYS_RECVMMSG, fd,
		uintptr(unsafe.Pointer(&h[0])), uintptr(len(h)), unix.MSG_DONTWAIT|flags, 0, 0)
	return int(n), errno
}

// getsockopt reads an array of 32-bit integers, which stays as it is where that fails.
func getsockopt(fd, level, name uintptr, out []uint32) {
	n := uint32(len(out) * 4)
	_, _, _ = syscall.Syscall6(unix.SYS_GETSOCKOPT, fd, level, name, uintptr(unsafe.Pointer(&out[0])),
		uintptr(unsafe.Pointer(&n)), 0)
}
