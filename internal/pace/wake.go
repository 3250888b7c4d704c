package pace

import (
	"sync"
	"sync/atomic"
	"time"
)

// usualWake is what a wake-up is taken to cost until it is measured, and where it cannot be.
const usualWake = 15 * time.Microsecond

// A measurement is not trusted beyond these: one that was disturbed must not make readers look for ever, and one of a host that happened to watch for work, as
// it will not always do, must not make them give up before the answer of a few system calls can be there.
const (
	leastWake = 8 * time.Microsecond
	mostWake  = 60 * time.Microsecond
)

var (
	wake      atomic.Int64
	measuring sync.Mutex
	measured  time.Time // guarded by measuring: when it was last
)

// often is how often it is measured at most as links are opened, seldom as they are read.
const (
	often  = time.Second
	seldom = 10 * time.Second
)

// Wake returns how long it takes to wake a thread that blocks in the kernel.
func Wake() time.Duration {
	if d := wake.Load(); d != 0 {
		return time.Duration(d)
	}
	return usualWake
}

// Measure measures it, which takes some milliseconds, unless that was done a moment ago. A link does when it is opened.
func Measure() { measureAfter(often, measure) }

// Again is Measure for a link that is read, which calls it now and then: a host that others share, or that changes its clock, is not always the same. It does not
// keep the caller waiting.
func Again() { go measureAfter(seldom, measure) }

func measureAfter(least time.Duration, measure func() time.Duration) {
	measuring.Lock()
	defer measuring.Unlock()
	if !measured.IsZero() && time.Since(measured) < least {
		return
	}
	if d := measure(); d != 0 {
		wake.Store(int64(smooth(time.Duration(wake.Load()), d)))
	}
	measured = time.Now()
}

// smooth goes half the way from what was measured before, if anything was: one measurement may be disturbed.
func smooth(before, d time.Duration) time.Duration {
	d = min(max(d, leastWake), mostWake)
	if before != 0 {
		d = (before + d) / 2
	}
	return d
}
