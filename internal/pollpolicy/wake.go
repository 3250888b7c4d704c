package pollpolicy

import (
	"sync"
	"sync/atomic"
	"time"
)

// defaultWakeCost is what a wake-up is taken to cost until it is measured, and where it cannot be.
const defaultWakeCost = 15 * time.Microsecond

// A measurement is not trusted beyond these. A disturbed one must not make readers look for ever.
// One of a host that happened to watch for work must not make them give up too early. The answer of
// a few system calls takes time.
const (
	minWakeCost = 8 * time.Microsecond
	maxWakeCost = 60 * time.Microsecond
)

var (
	wakeCost   atomic.Int64
	measureMu  sync.Mutex
	measuredAt time.Time // guarded by measureMu: when it was last
)

// measureInterval is the least time between measurements as links are opened, remeasureInterval as
// they are read.
const (
	measureInterval   = time.Second
	remeasureInterval = 10 * time.Second
)

// WakeCost returns how long it takes to wake a thread that blocks in the kernel.
func WakeCost() time.Duration {
	if d := wakeCost.Load(); d != 0 {
		return time.Duration(d)
	}
	return defaultWakeCost
}

// MeasureWake measures it, which takes some milliseconds, unless that was done a moment ago. A link
// calls it when it is opened.
func MeasureWake() { measureAfter(measureInterval, measureWake) }

// RemeasureWake is MeasureWake for a link that is read, which calls it now and then. A shared host,
// or one that changes its clock, is not always the same. It does not block the caller.
func RemeasureWake() { go measureAfter(remeasureInterval, measureWake) }

func measureAfter(least time.Duration, measure func() time.Duration) {
	measureMu.Lock()
	defer measureMu.Unlock()
	if !measuredAt.IsZero() && time.Since(measuredAt) < least {
		return
	}
	if d := measure(); d != 0 {
		wakeCost.Store(int64(smoothWake(time.Duration(wakeCost.Load()), d)))
	}
	measuredAt = time.Now()
}

// smoothWake goes half the way from the last measurement, if there was one: a single one may be
// disturbed.
func smoothWake(before, d time.Duration) time.Duration {
	d = min(max(d, minWakeCost), maxWakeCost)
	if before != 0 {
		d = (before + d) / 2
	}
	return d
}
