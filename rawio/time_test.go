package rawio

import (
	"math"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/must"
)

func TestTimeAdd(t *testing.T) {
	for _, row := range []struct {
		name string
		t    Time
		d    time.Duration
		want Time
	}{
		{"forward", 5, 7, 12},
		{"backward", 5, -7, -2},
		{"Never stays Never forward", Never, time.Second, Never},
		{"Never stays Never backward", Never, -time.Second, Never},
		{"an overflow is Never", Never - 1, 2, Never},
		{"an underflow is the earliest time", math.MinInt64 + 1, -2, math.MinInt64},
	} {
		t.Run(row.name, func(t *testing.T) {
			must.Equal(t, "Add", row.t.Add(row.d), row.want)
		})
	}
}

func TestTimeSub(t *testing.T) {
	for _, row := range []struct {
		name string
		t, u Time
		want time.Duration
	}{
		{"later minus earlier", 12, 5, 7},
		{"earlier minus later", 5, 12, -7},
		{"Never is far from a negative time", Never, -1, math.MaxInt64},
		{"a negative time is far before Never", -2, Never, math.MinInt64},
	} {
		t.Run(row.name, func(t *testing.T) {
			must.Equal(t, "Sub", row.t.Sub(row.u), row.want)
		})
	}
}

func TestTimeBefore(t *testing.T) {
	must.That(t, Time(1).Before(2) && !Time(2).Before(2) && !Time(3).Before(2) && Time(2).Before(Never) &&
		!Never.Before(Never),
		"Before is not the strict order of the numbers with Never last")
}
