package pace

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// processor returns the number of the one that this runs on. It never waits.
func processor() int {
	var n uint32
	_, _, _ = unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&n)), 0, 0)
	return int(n)
}
