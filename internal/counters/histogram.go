package counters

import (
	"math/bits"
	"time"
)

// NumBuckets is how many buckets a Histogram has.
const NumBuckets = 27

// Histogram counts durations. Bucket i has those of up to 2^i microseconds that the one before does
// not have; the last has all longer ones. It is a plain struct: its owner counts without a lock and
// without allocating.
type Histogram struct {
	Sum   time.Duration
	Count [NumBuckets]uint64
}

// Observe counts one duration.
func (h *Histogram) Observe(d time.Duration) {
	d = max(d, 1)
	h.Count[bucketOf(d)]++
	h.Sum += d
}

// bucketOf returns that of a duration, which is not 0.
func bucketOf(d time.Duration) int { return min(bits.Len64(uint64(d-1)/1000), NumBuckets-1) }

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

// BucketBound returns the longest duration of bucket i, which is not the last.
func BucketBound(i int) time.Duration { return time.Microsecond << i }

// CompactHistogram is a Histogram that takes a third of the memory until a bucket counts 65,536.
type CompactHistogram struct {
	sum      time.Duration
	low      [NumBuckets]uint16
	overflow *[NumBuckets]uint64 // what has run over
}

// Observe counts one duration.
func (s *CompactHistogram) Observe(d time.Duration) {
	d = max(d, 1)
	b := bucketOf(d)
	if s.low[b]++; s.low[b] == 0 {
		if s.overflow == nil {
			s.overflow = new([NumBuckets]uint64)
		}
		s.overflow[b] += 1 << 16
	}
	s.sum += d
}

// Histogram returns it as a Histogram.
func (s *CompactHistogram) Histogram() Histogram {
	h := Histogram{Sum: s.sum}
	if s.overflow != nil {
		h.Count = *s.overflow
	}
	for i, n := range s.low {
		h.Count[i] += uint64(n)
	}
	return h
}
