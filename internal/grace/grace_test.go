package grace

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
)

// Calls that wait for nothing share one period, and each has four round trips, from 2 ms to a
// second, when it is over.
func TestCallsShareThePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Period
		wait := func(what string, trip, want time.Duration) {
			t.Helper()
			got := p.WaitLeft(10*time.Second, trip)
			check.Equal(t, what, got, want)
			time.Sleep(got)
			p.RecordVainWait()
		}
		wait("the first", time.Millisecond, 10*time.Second)
		wait("the next, on a near path", 0, 2*time.Millisecond)
		wait("the next, on a path of 50 ms", 50*time.Millisecond, 200*time.Millisecond)
		wait("the next, on a path of a minute", time.Minute, time.Second)
		time.Sleep(9 * time.Second)
		wait("one that comes while the last was recent", 0, 2*time.Millisecond)
		time.Sleep(10 * time.Second)
		wait("one that comes later", 0, 10*time.Second)
		p = Period{}
		p.WaitLeft(time.Second, 0)
		time.Sleep(400 * time.Millisecond)
		check.Equal(t, "one beside the first", p.WaitLeft(time.Second, 0), 600*time.Millisecond)
		time.Sleep(600 * time.Millisecond)
		check.Equal(t, "one after calls that were answered", p.WaitLeft(time.Second, 0), time.Second)
	})
}
