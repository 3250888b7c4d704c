package bucket

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/rawio"
)

// After any rest a burst is let through, and no more. In the long run there is one an interval, and
// no part of an interval is lost.
func TestBurstsAndTheLongRun(t *testing.T) {
	r := Rate{Burst: 5, Interval: 10 * time.Millisecond}
	var b Bucket
	burst := func(now rawio.Time) (n int) {
		for b.Allow(now, r) {
			n++
		}
		return n
	}
	now := rawio.Time(time.Hour)
	check.Equal(t, "at first", burst(now), 5)
	check.Equal(t, "at once", burst(now), 0)
	check.Equal(t, "an interval later, nearly", burst(now.Add(r.Interval-1)), 0)
	check.Equal(t, "an interval later", burst(now.Add(r.Interval)), 1)
	check.Equal(t, "a rest later", burst(now.Add(time.Minute)), 5)
	n, since := 0, now.Add(time.Minute)
	for at := since; at < since.Add(time.Second); at = at.Add(3 * time.Millisecond) {
		n += burst(at)
	}
	check.That(t, n == 99 || n == 100, "%d in a second", n)
	check.Equal(t, "room that is looked at and not used", b.Has(since.Add(time.Hour), r) && burst(since.Add(time.Hour)) == 5, true)
}
