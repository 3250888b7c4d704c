package simulated

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Group are the times of the transfers of one flow, one after another. They are not independent of
// each other: flows are.
type Group []time.Duration

// Sample is what was seen of a stack on a cell.
type Sample struct {
	Groups []Group
	First  []time.Duration // of each flow, with the windows of a new connection
	Hit    int             // transfers during which a packet of theirs was dropped
	Cut    int             // transfers that were not over when the time was
	Bins   []int           // in bulk: octets in each tenth of a second
}

// N is how many transfers are in the sample.
func (s *Sample) N() (n int) {
	for _, g := range s.Groups {
		n += len(g)
	}
	return n
}

// Merge adds another sample.
func (s *Sample) Merge(o *Sample) {
	s.Groups = append(s.Groups, o.Groups...)
	s.First = append(s.First, o.First...)
	s.Hit += o.Hit
	s.Cut += o.Cut
}

func (s *Sample) allTimes() (list []time.Duration) {
	for _, g := range s.Groups {
		list = append(list, g...)
	}
	return list
}

// Quantile is the time that a share q of the transfers does not exceed.
func (s *Sample) Quantile(q float64) time.Duration {
	return quantileOf(slices.Sorted(slices.Values(s.allTimes())), q)
}

// quantileOf takes the nearest rank of sorted times; 0 if there are none.
func quantileOf(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// Interval is where a number lies, 95 times of 100.
type Interval struct{ Low, High float64 }

const resamples = 1000

// Ratio divides a's quantile by b's, and says between what it lies by drawing flows anew from both,
// with their transfers (a bootstrap of clusters). less is taken off a's: what it may be longer in
// any case.
func Ratio(a, b *Sample, q float64, less time.Duration, seed uint64) (ratio float64, in Interval) {
	of := func(x, y time.Duration) float64 { return float64(max(0, x-less)) / float64(max(1, y)) }
	rng := rand.New(rand.NewPCG(seed, seed))
	drawn := make([]float64, resamples)
	var buf []time.Duration
	draw := func(s *Sample) time.Duration {
		buf = buf[:0]
		for range s.Groups {
			buf = append(buf, s.Groups[rng.IntN(len(s.Groups))]...)
		}
		slices.Sort(buf)
		return quantileOf(buf, q)
	}
	for i := range drawn {
		drawn[i] = of(draw(a), draw(b))
	}
	slices.Sort(drawn)
	return of(a.Quantile(q), b.Quantile(q)), Interval{drawn[resamples*25/1000], drawn[resamples*975/1000-1]}
}

// Mbits is the throughput of bulk from the given time on, in 10^6 bit/s of user data.
func (s *Sample) Mbits(from, to time.Duration) float64 {
	first, last := int(from/BinTime), min(int(to/BinTime), len(s.Bins))
	if first >= int(to/BinTime) {
		return 0
	}
	sum := 0
	for _, n := range s.Bins[min(first, last):last] {
		sum += n
	}
	return float64(sum) * 8 / (float64(int(to/BinTime)-first) * BinTime.Seconds()) / 1e6
}

// BinTime is how finely bulk is counted.
const BinTime = 100 * time.Millisecond
