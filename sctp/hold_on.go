//go:build holds && linux

package sctp

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// MeasuresHolds says that LongestHold measures: this package was built for Linux, with the tag holds.
const MeasuresHolds = true

// hold is one that goes on.
type hold struct {
	steps  uint64
	begun  time.Time
	cpu    time.Duration // that the thread had used
	thread int
}

// longest is the longest of all associations.
type longest struct {
	watch       atomic.Bool
	steps, time atomic.Uint64
}

// WatchHolds begins, or ends, to measure: it takes two system calls for each hold.
func (t *Transport) WatchHolds(on bool) { t.longest.watch.Store(on) }

// holds begins a hold. Owner only.
func (c *Conn) holds() {
	if !c.t.longest.watch.Load() {
		c.hold = hold{}
		return
	}
	c.hold = hold{steps: c.steps(), begun: time.Now()}
	c.hold.thread, c.hold.cpu = threadTime()
}

// hasHeld ends it. What the thread has used tells how long it took where others had the processor too, unless the goroutine has
// gone to another thread. Owner only.
func (c *Conn) hasHeld() {
	h, most := &c.hold, &c.t.longest
	if h.thread == 0 {
		return
	}
	raise(&most.steps, c.steps()-h.steps)
	d := time.Since(h.begun)
	if uint64(d) > most.time.Load() {
		if thread, cpu := threadTime(); thread == h.thread {
			d = min(d, cpu-h.cpu)
		}
	}
	raise(&most.time, uint64(d))
}

func raise(v *atomic.Uint64, to uint64) {
	for old := v.Load(); to > old && !v.CompareAndSwap(old, to); old = v.Load() {
	}
}

// threadTime returns the thread that the goroutine is on, and what that has used.
func threadTime() (thread int, used time.Duration) {
	for {
		thread = unix.Gettid()
		var ts unix.Timespec
		if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) == nil && unix.Gettid() == thread {
			return thread, time.Duration(ts.Nano())
		}
	}
}

// LongestHold returns the longest hold since it was asked last. Only under the build tag holds it is measured.
func (t *Transport) LongestHold() Hold {
	return Hold{Steps: t.longest.steps.Swap(0), Time: time.Duration(t.longest.time.Swap(0))}
}
