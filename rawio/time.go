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

// Add returns t+d. Never stays Never, and the sum saturates instead of wrapping.
func (t Time) Add(d time.Duration) Time {
	s := t + Time(d)
	switch {
	case t == Never || (d > 0 && s < t):
		return Never
	case d < 0 && s > t:
		return math.MinInt64
	}
	return s
}

// Sub returns t-u, saturated at the longest durations.
func (t Time) Sub(u Time) time.Duration {
	d := time.Duration(t - u)
	switch {
	case t > u && d < 0:
		return math.MaxInt64
	case t < u && d > 0:
		return math.MinInt64
	}
	return d
}

// Before reports whether t is earlier than u.
func (t Time) Before(u Time) bool { return t < u }
