package rawio

import (
	"math"
	"time"
)

// Time is a point on a monotonic clock, in nanoseconds from an arbitrary start. Protocol code takes
// it as a parameter and never reads a clock.
type Time int64

// Never is later than every other Time: no timer is set.
const Never Time = math.MaxInt64

// Add returns t+d. Never stays Never, and the sum does not wrap.
func (t Time) Add(d time.Duration) Time {
	s := t + Time(d)
	if t == Never || (d > 0 && s < t) {
		return Never
	}
	return s
}

// Sub returns t-u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Before reports whether t is earlier than u.
func (t Time) Before(u Time) bool { return t < u }
