package counters

import (
	"fmt"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
)

type inner struct{ C, D uint64 }

type stats struct {
	A uint64
	inner
	Kinds  [2]uint64
	Below  inner
	Window int // no counter
}

// Each duration is in the bucket whose bound is the next above, a power of two, and counts in the
// sum.
func TestHistogramHasBucketsOfPowersOfTwo(t *testing.T) {
	var h, sum Histogram
	for _, row := range []struct {
		d      time.Duration
		bucket int
	}{{-1, 0}, {1, 0}, {BucketBound(0), 0}, {BucketBound(0) + 1, 1}, {BucketBound(1), 1}, {BucketBound(1) + 1, 2},
		{BucketBound(10), 10}, {BucketBound(10) + 1, 11},
		{BucketBound(NumBuckets - 2), NumBuckets - 2}, {BucketBound(NumBuckets-2) + 1, NumBuckets - 1},
		{100 * time.Hour, NumBuckets - 1}} {
		h = Histogram{}
		h.Observe(row.d)
		sum.Add(&h)
		check.That(t, h.Count[row.bucket] == 1 && h.Total() == 1 && h.Sum == max(row.d, 1), "%v: %+v", row.d, h)
	}
	check.Equal(t, "durations of all", sum.Total(), 11)
}

// A small one has what the other has, also when its buckets have run over.
func TestSmallHistogramIsAHistogram(t *testing.T) {
	var h Histogram
	var s CompactHistogram
	for _, d := range []time.Duration{-1, BucketBound(3), BucketBound(3), BucketBound(3) + 1, 100 * time.Hour} {
		h.Observe(d)
		s.Observe(d)
	}
	check.That(t, s.Histogram() == h, "%+v, want %+v", s.Histogram(), h)
	const most = 1<<16 - 1
	s.low[3], s.low[4] = most, most
	for range 2 {
		s.Observe(BucketBound(3))
	}
	s.Observe(BucketBound(4))
	h = s.Histogram()
	check.That(t, h.Count[3] == most+2 && h.Count[4] == most+1 && h.Count[0] == 1, "%+v", h)
}

func TestAddAndEach(t *testing.T) {
	a := stats{A: 1, inner: inner{2, 3}, Kinds: [2]uint64{4, 5}, Below: inner{6, 7}, Window: 8}
	b := a
	Add(&a, &b)
	check.Equal(t, "what is no counter", a.Window, 8)
	var got string
	Each(a, func(name string, v uint64) { got += fmt.Sprintf("%s=%d ", name, v) })
	check.Equal(t, "counters", got, "A=2 C=4 D=6 Kinds[0]=8 Kinds[1]=10 Below.C=12 Below.D=14 ")
}
