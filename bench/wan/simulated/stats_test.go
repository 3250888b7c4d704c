package simulated

import (
	"fmt"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
)

// Twice the times are twice the quantiles, and flows that differ leave the interval wide, however
// many transfers they have.
func TestRatioKnowsThatFlowsDiffer(t *testing.T) {
	sample := func(times time.Duration, spread int) *Sample {
		s := &Sample{Groups: make([]Group, 10)}
		for i := range 1000 {
			s.Groups[i%10] = append(s.Groups[i%10], times*time.Duration(1000+i/10+spread*(i%10)))
		}
		return s
	}
	a, b := sample(2, 0), sample(1, 0)
	r, narrow := Ratio(a, b, 0.5, 0, 1)
	same, wide := Ratio(sample(2, 100), sample(1, 100), 0.5, 0, 1)
	check.That(t, r == 2 && same == 2 && narrow == (Interval{2, 2}) && wide.Low <= 1.9 && wide.High >= 2.1 &&
		wide.Low >= 1.2,
		"ratios %v, %v and, of flows that differ, %v, %v, want 2", r, narrow, same, wide)
	m, tail, ok := Judge(a, []Named{{"slower", a}, {"better", b}}, 1)
	check.That(t, ok && m.Against == "better" && tail.Q == 0.9 && !tail.Met, "judged %+v and %+v, %v", m, tail, ok)
}

// Flows fill the processors, and no more: many where a transfer is mostly waiting, also for what is
// lost.
func TestFlows(t *testing.T) {
	for _, tt := range []struct {
		rtt, size int
		loss      float64
		by, other int // of stacks that take losses for congestion, of others
	}{{20, 0, 0, 1, 1}, {20, 0, 0.001, 2, 1}, {20, 0, 0.01, 5, 1}, {20, 14_000, 0, 7, 7}, {20, 1_000_000, 0, 1, 1},
		{20, 1_000_000, 0.01, 6, 1}, {300, 1_000_000, 0.03, 40, 4}, {300, 1400, 0, 40, 40}, {2, 100_000, 0, 1, 1}} {
		c := Cell{RTT: time.Duration(tt.rtt) * time.Millisecond, Size: tt.size, Loss: tt.loss, Rate: 12_500_000}
		check.Equal(t, fmt.Sprint(tt), fmt.Sprint(c.Flows(true), c.Flows(false)), fmt.Sprint(tt.by, tt.other))
	}
}
