package wait

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// These calls never wait, so the runtime is not informed of them (RawSyscall6). Otherwise the first
// one after a pause would wake the runtime's monitor. That costs as much as the packet that has
// ended the pause.

// epollCtl is epoll_ctl(2) for the descriptor that the event tells of.
func epollCtl(epfd, op int, ev *unix.EpollEvent) syscall.Errno {
	_, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(epfd), uintptr(op), uintptr(ev.Fd),
		uintptr(unsafe.Pointer(ev)), 0, 0)
	return errno
}

// epollWaitNow is epoll_wait(2) that does not wait. evs is not empty.
func epollWaitNow(epfd int, evs []unix.EpollEvent) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd), uintptr(unsafe.Pointer(&evs[0])),
		uintptr(len(evs)), 0, 0, 0)
	return int(n), errno
}

// eventfdWrite is write(2) to an eventfd that does not block. It fails when that was set many times
// over, or is closed.
func eventfdWrite(fd int, b *[8]byte) {
	_, _, _ = syscall.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(b)), uintptr(len(b)))
}

// eventfdRead is read(2) of one.
func eventfdRead(fd int, b *[8]byte) {
	_, _, _ = syscall.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(b)), uintptr(len(b)))
}
