package pollpolicy

import (
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	measureRounds = 6                // so often a thread is woken after each rest
	roundTimeout  = time.Millisecond // of one round
	oneEvent      = "\x01\x00\x00\x00\x00\x00\x00\x00"
)

// sleepTimes are how long the other thread sleeps before it is woken. Its processor sleeps too: the
// longer, the deeper. A processor that watches for work wakes at once, on some machines until it
// has slept for long. So the sleep time with the longest median counts.
var sleepTimes = []time.Duration{30 * time.Microsecond, 100 * time.Microsecond, 300 * time.Microsecond}

// measureWake wakes a thread that blocks in the kernel, and measures how long it takes to respond.
// The waking thread stays busy, as a reader that looks for packets does, so that the other runs on
// another processor. It returns 0 if there is no other processor, or it fails.
func measureWake() time.Duration {
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
		for heard.Load() < int32(measureRounds*len(sleepTimes)) {
			if _, err := unix.Read(event, b[:]); err == nil {
				heard.Add(1)
			}
		}
	}()
	var most time.Duration
	sent := int32(0)
	for _, rest := range sleepTimes {
		var took []time.Duration
		for range measureRounds {
			spinFor(rest, func() bool { return false })
			start := time.Now()
			_, _ = unix.Write(event, []byte(oneEvent))
			sent++
			spinFor(roundTimeout, func() bool { return heard.Load() >= sent })
			if d := time.Since(start); d < roundTimeout { // else it was to go on on this very processor
				took = append(took, d)
			}
		}
		if slices.Sort(took); len(took) > 0 {
			most = max(most, took[len(took)/2])
		}
	}
	<-end
	unix.Close(event)
	return most
}

// spinFor waits for d at most, or until it is over.
func spinFor(d time.Duration, over func() bool) {
	for start := time.Now(); time.Since(start) < d && !over(); {
	}
}
