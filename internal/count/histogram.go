package count

import (
	"math/bits"
	"time"
)

// Buckets is how many buckets a Histogram has.
const Buckets = 27

// Histogram counts durations. Bucket i has those of up to 2^i microseconds that the one before has not; the last has all that are longer. It is
// a plain struct: who may write it counts, without a lock and without allocating.
type Histogram struct {
	Sum   time.Duration
	Count [Buckets]uint64
}

// Observe counts one duration.
func (h *Histogram) Observe(d time.Duration) {
	d = max(d, 1)
	h.Count[min(bits.Len64(uint64(d-1)/1000), Buckets-1)]++
	h.Sum += d
}

// Add adds what another has counted.
func (h *Histogram) Add(other *Histogram) {
	for i, n := range other.Count {
		h.Count[i] += n
	}
	h.Sum += other.Sum
}

// Total returns how many durations were counted.
func (h *Histogram) Total() (n uint64) {
	for _, c := range h.Count {
		n += c
	}
	return n
}

// Bound returns the longest duration of bucket i, which is not the last.
func Bound(i int) time.Duration { return time.Microsecond << i }
