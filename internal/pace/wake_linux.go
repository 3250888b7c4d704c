package pace

import (
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// rounds is how often a thread is woken. The median counts.
const (
	rounds   = 16
	rest     = 50 * time.Microsecond // before each, so that the other thread sleeps, and its processor with it
	giveUp   = time.Millisecond      // of one round
	oneEvent = "\x01\x00\x00\x00\x00\x00\x00\x00"
)

// measure wakes a thread that blocks in the kernel, and looks how long it takes to say so. The one that wakes it stays busy, as a
// reader does that looks for packets, so that the other goes on on another processor. It returns 0 where there is none, or it fails.
func measure() time.Duration {
	if runtime.NumCPU() == 1 || runtime.GOMAXPROCS(0) == 1 {
		return 0
	}
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_SEMAPHORE)
	if err != nil {
		return 0
	}
	var heard atomic.Int32
	end := make(chan struct{})
	go func() {
		defer close(end)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var b [8]byte
		for heard.Load() < rounds {
			if _, err := unix.Read(event, b[:]); err == nil {
				heard.Add(1)
			}
		}
	}()
	var took []time.Duration
	for i := range int32(rounds) {
		spin(rest, func() bool { return false })
		start := time.Now()
		_, _ = unix.Write(event, []byte(oneEvent))
		spin(giveUp, func() bool { return heard.Load() > i })
		took = append(took, time.Since(start))
	}
	<-end
	unix.Close(event)
	slices.Sort(took)
	return took[rounds/2]
}

// spin waits for d at most, or until it is over.
func spin(d time.Duration, over func() bool) {
	for start := time.Now(); time.Since(start) < d && !over(); {
	}
}
