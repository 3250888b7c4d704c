package wait

import (
	"time"

	"golang.org/x/sys/unix"
)

// maxWriteWait is how long WaitWritable may wait. Closing the descriptor waits no longer than this
// for its writer.
const maxWriteWait = 10 * time.Millisecond

// WaitWritable waits, though not for ever, until fd can be written to, and reports whether it can.
func WaitWritable(fd uintptr) bool {
	ts := unix.NsecToTimespec(int64(maxWriteWait))
	n, _ := unix.Ppoll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, &ts, nil)
	return n > 0
}
