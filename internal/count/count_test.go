package count

import (
	"fmt"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/check"
)

type inner struct{ C, D uint64 }

type stats struct {
	A uint64
	inner
	Kinds  [2]uint64
	Below  inner
	Window int // no counter
}

// Each duration is in the bucket whose bound is the next above, a power of two, and counts in the sum.
func TestHistogramHasBucketsOfPowersOfTwo(t *testing.T) {
	var h, sum Histogram
	for _, row := range []struct {
		d      time.Duration
		bucket int
	}{{-1, 0}, {1, 0}, {Bound(0), 0}, {Bound(0) + 1, 1}, {Bound(1), 1}, {Bound(1) + 1, 2}, {Bound(10), 10}, {Bound(10) + 1, 11},
		{Bound(Buckets - 2), Buckets - 2}, {Bound(Buckets-2) + 1, Buckets - 1}, {100 * time.Hour, Buckets - 1}} {
		h = Histogram{}
		h.Observe(row.d)
		sum.Add(&h)
		check.That(t, h.Count[row.bucket] == 1 && h.Total() == 1 && h.Sum == max(row.d, 1), "%v: %+v", row.d, h)
	}
	check.Equal(t, "durations of all", sum.Total(), 11)
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
