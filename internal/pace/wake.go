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

// often is how often it is measured at most.
const often = time.Second

// Wake returns how long it takes to wake a thread that blocks in the kernel.
func Wake() time.Duration {
	if d := wake.Load(); d != 0 {
		return time.Duration(d)
	}
	return usualWake
}

// Measure measures it, which takes some milliseconds, unless that was done a moment ago. A link does when it is opened.
func Measure() {
	measuring.Lock()
	defer measuring.Unlock()
	if !measured.IsZero() && time.Since(measured) < often {
		return
	}
	if d := measure(); d != 0 {
		wake.Store(int64(min(max(d, leastWake), mostWake)))
	}
	measured = time.Now()
}
