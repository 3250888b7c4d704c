package wait

import (
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long Writable may wait: whoever closes the descriptor waits no longer for its writer.
const patience = 10 * time.Millisecond

// Writable waits, though not for ever, until fd can be written to, and reports whether it can.
func Writable(fd uintptr) bool {
	ts := unix.NsecToTimespec(int64(patience))
	n, _ := unix.Ppoll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, &ts, nil)
	return n > 0
}
