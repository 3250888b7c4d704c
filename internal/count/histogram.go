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
	h.Count[bucket(d)]++
	h.Sum += d
}

// bucket returns that of a duration, which is not 0.
func bucket(d time.Duration) int { return min(bits.Len64(uint64(d-1)/1000), Buckets-1) }

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

// Small is a Histogram that takes a third of the memory until a bucket has 65,536.
type Small struct {
	sum  time.Duration
	low  [Buckets]uint16
	high *[Buckets]uint64 // what has run over
}

// Observe counts one duration.
func (s *Small) Observe(d time.Duration) {
	d = max(d, 1)
	b := bucket(d)
	if s.low[b]++; s.low[b] == 0 {
		if s.high == nil {
			s.high = new([Buckets]uint64)
		}
		s.high[b] += 1 << 16
	}
	s.sum += d
}

// Histogram returns what it is.
func (s *Small) Histogram() Histogram {
	h := Histogram{Sum: s.sum}
	if s.high != nil {
		h.Count = *s.high
	}
	for i, n := range s.low {
		h.Count[i] += uint64(n)
	}
	return h
}
