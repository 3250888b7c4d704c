//go:build holds && linux

package sctp

import (
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// MeasuresHolds says that LongestHold measures: this package was built for Linux, with the tag
// holds.
const MeasuresHolds = true

// assocLock.hold is one that goes on.
type lockHold struct {
	isWatched  bool
	steps      uint64
	begunAt    time.Time
	cpuAtBegin time.Duration // that the thread had used
}

// longestHold is the longest of all associations.
type longestHold struct {
	watch       atomic.Bool
	steps, time atomic.Uint64
}

// WatchHolds begins, or ends, to measure: it takes two system calls for each hold.
func (t *Transport) WatchHolds(on bool) { t.longestHold.watch.Store(on) }

// beginHold begins a hold. The goroutine keeps its thread meanwhile. The CPU time of the thread is
// the length of the hold even if others had the processor too. Owner only.
func (c *Conn) beginHold() {
	if !c.t.longestHold.watch.Load() {
		c.assocLock.hold = lockHold{}
		return
	}
	runtime.LockOSThread()
	c.assocLock.hold = lockHold{isWatched: true, steps: c.workSteps(), begunAt: time.Now(), cpuAtBegin: threadCPUTime()}
}

// endHold ends it. Owner only.
func (c *Conn) endHold() {
	h, most := &c.assocLock.hold, &c.t.longestHold
	if !h.isWatched {
		return
	}
	raiseMax(&most.steps, c.workSteps()-h.steps)
	d := time.Since(h.begunAt)
	if uint64(d) > most.time.Load() {
		d = min(d, threadCPUTime()-h.cpuAtBegin)
	}
	raiseMax(&most.time, uint64(d))
	runtime.UnlockOSThread()
}

func raiseMax(v *atomic.Uint64, to uint64) {
	for old := v.Load(); to > old && !v.CompareAndSwap(old, to); old = v.Load() {
	}
}

// threadCPUTime returns what the thread has used.
func threadCPUTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

// LongestHold returns the longest hold since it was asked last. Only under the build tag holds it
// is measured.
func (t *Transport) LongestHold() Hold {
	return Hold{Steps: t.longestHold.steps.Swap(0), Time: time.Duration(t.longestHold.time.Swap(0))}
}
