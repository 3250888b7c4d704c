package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
)

// A run counts unless the road was later than a fiftieth of the round trip beyond what it always
// takes, and where it always takes long that is late too.
func TestRunsCount(t *testing.T) {
	const us = time.Microsecond
	canaries := func(median, most time.Duration) (o outcome) {
		for i := range 100 {
			d := median
			if i > 97 {
				d = most
			}
			o.Canary.Add(d)
			o.Late.Add(0)
		}
		return o
	}
	for _, tt := range []struct {
		median, most, alone time.Duration
		counts              bool
	}{{10 * us, 48 * us, 10 * us, true}, {10 * us, 60 * us, 10 * us, false}, {10 * us, 60 * us, 100 * us, false},
		{100 * us, 100 * us, 10 * us, false}} {
		o := canaries(tt.median, tt.most)
		check.Equal(t, fmt.Sprint(tt), o.checkInTime(2*time.Millisecond, tt.alone) == nil, tt.counts)
	}
	o := canaries(0, 0)
	o.Late.Add(time.Second)
	o.Late.Add(time.Second)
	check.That(t, o.checkInTime(2*time.Millisecond, 0) != nil, "a relay that was late counts")
	o = canaries(0, 0)
	o.Missing = 1
	check.That(t, o.checkInTime(2*time.Millisecond, 0) != nil, "a road that loses canaries counts")
}
