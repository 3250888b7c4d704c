package mmsg

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mmsghdr is struct mmsghdr of recvmmsg(2). Go pads it to the alignment of Msghdr, as C does.
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32 // octets received or sent
}

// These calls never wait, so the runtime hears nothing of them (RawSyscall6). If it did, the first one after a pause would wake its monitor, which costs as much as
// the call and takes a processor from who has sent the packet; and in the longer ones this goroutine would lose its place.

// sendmmsg is sendmmsg(2). h is not empty.
func sendmmsg(fd uintptr, h []mmsghdr) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_SENDMMSG, fd,
		uintptr(unsafe.Pointer(&h[0])), uintptr(len(h)), unix.MSG_DONTWAIT, 0, 0)
	return int(n), errno
}

// recvmmsg is recvmmsg(2). h is not empty.
func recvmmsg(fd uintptr, h []mmsghdr, flags uintptr) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_RECVMMSG, fd,
		uintptr(unsafe.Pointer(&h[0])), uintptr(len(h)), unix.MSG_DONTWAIT|flags, 0, 0)
	return int(n), errno
}

// getsockopt reads an array of 32-bit integers, which stays as it is where that fails.
func getsockopt(fd, level, name uintptr, out []uint32) {
	n := uint32(len(out) * 4)
	_, _, _ = syscall.Syscall6(unix.SYS_GETSOCKOPT, fd, level, name, uintptr(unsafe.Pointer(&out[0])), uintptr(unsafe.Pointer(&n)), 0)
}
