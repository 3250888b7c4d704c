// Package bucket bounds how often something is done that the peer, or a forger, can ask for.
//
//   - In: the time, and what is asked for.
//   - Out: whether it may be done.
//   - Invariant: at once no more than Rate.Burst, in the long run one each Rate.Interval.
//   - Read first: this file.
package bucket

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// Rate is how often something may be done.
type Rate struct {
	Burst    int           // so often at once
	Interval time.Duration // and once more each time
}

// Bucket is how much of a Rate is used. The zero value has used nothing.
type Bucket struct {
	filledAt rawio.Time
	used     int
}

// Has reports whether something may be done.
func (b *Bucket) Has(now rawio.Time, r Rate) bool {
	if n := now.Sub(b.filledAt) / r.Interval; n > 0 {
		b.used -= int(min(n, time.Duration(b.used)))
		b.filledAt = b.filledAt.Add(n * r.Interval)
	}
	return b.used < r.Burst
}

// Take notes that it is done.
func (b *Bucket) Take() { b.used++ }

// Allow reports whether something may be done, which is then done.
func (b *Bucket) Allow(now rawio.Time, r Rate) bool {
	if !b.Has(now, r) {
		return false
	}
	b.Take()
	return true
}
