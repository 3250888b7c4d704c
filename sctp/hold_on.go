//go:build holds && linux

package sctp

import (
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// MeasuresHolds says that LongestHold measures: this package was built for Linux, with the tag holds.
const MeasuresHolds = true

// hold is one that goes on.
type hold struct {
	watched bool
	steps   uint64
	begun   time.Time
	cpu     time.Duration // that the thread had used
}

// longest is the longest of all associations.
type longest struct {
	watch       atomic.Bool
	steps, time atomic.Uint64
}

// WatchHolds begins, or ends, to measure: it takes two system calls for each hold.
func (t *Transport) WatchHolds(on bool) { t.longest.watch.Store(on) }

// holds begins a hold. The goroutine keeps its thread meanwhile: what that uses tells how long the hold took where others had the processor
// too. Owner only.
func (c *Conn) holds() {
	if !c.t.longest.watch.Load() {
		c.hold = hold{}
		return
	}
	runtime.LockOSThread()
	c.hold = hold{watched: true, steps: c.steps(), begun: time.Now(), cpu: threadTime()}
}

// hasHeld ends it. Owner only.
func (c *Conn) hasHeld() {
	h, most := &c.hold, &c.t.longest
	if !h.watched {
		return
	}
	raise(&most.steps, c.steps()-h.steps)
	d := time.Since(h.begun)
	if uint64(d) > most.time.Load() {
		d = min(d, threadTime()-h.cpu)
	}
	raise(&most.time, uint64(d))
	runtime.UnlockOSThread()
}

func raise(v *atomic.Uint64, to uint64) {
	for old := v.Load(); to > old && !v.CompareAndSwap(old, to); old = v.Load() {
	}
}

// threadTime returns what the thread has used.
func threadTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

// LongestHold returns the longest hold since it was asked last. Only under the build tag holds it is measured.
func (t *Transport) LongestHold() Hold {
	return Hold{Steps: t.longest.steps.Swap(0), Time: time.Duration(t.longest.time.Swap(0))}
}
