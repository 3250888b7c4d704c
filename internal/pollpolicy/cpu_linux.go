package pollpolicy

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// YieldCPU lets other threads of the host go first.
func YieldCPU() { _, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// currentProcessor returns the number of the one that this runs on. It never waits.
func currentProcessor() int {
	var n uint32
	_, _, _ = unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&n)), 0, 0)
	return int(n)
}
