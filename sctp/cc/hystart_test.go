package cc

import (
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// playRounds gives c one full window of acknowledgements a round trip, each round with one
// measurement.
func playRounds(c Controller, rtts ...time.Duration) {
	for _, rtt := range rtts {
		w := c.Window()
		for left := w; left > 0; left -= 1000 {
			measured := rtt
			if left < w {
				measured = 0
			}
			c.OnAck(0, Ack{Octets: 1000, Flight: c.Window(), RTT: measured, Trip: rtt})
		}
	}
}

const ms = time.Millisecond

func TestSlowStartEndsWhenAQueueBuilds(t *testing.T) {
	c := NewReno(1000, false)
	playRounds(c, 100*ms, 100*ms, 101*ms)
	doubled := c.Window()
	must.That(t, doubled >= 7*4000, "cwnd %d after three rounds of slow start", doubled)
	playRounds(c, 115*ms) // more than an eighth longer
	playRounds(c, 130*ms)
	check.That(t, c.Window() <= doubled*9/5, "cwnd grew from %d to %d in two careful rounds, want a quarter each",
		doubled, c.Window())
	playRounds(c, 140*ms, 150*ms, 160*ms, 170*ms)
	check.That(t, c.Ssthresh() <= c.Window(), "still in slow start with cwnd %d after five careful rounds", c.Window())
}

// A queue that is a quarter of the round trip long after one round leaves no time for careful ones.
func TestSlowStartEndsAtOnceWhenTheQueueIsLong(t *testing.T) {
	for name, make := range map[string]Factory{"NewReno": NewReno, "CUBIC": NewCubic} {
		c := make(1000, false)
		playRounds(c, 300*ms, 300*ms, 300*ms)
		before := c.Window()
		playRounds(c, 385*ms)
		check.That(t, c.Ssthresh() <= before*3/2 && c.Window() <= before*3/2,
			"%s: cwnd %d, ssthresh %d after a round with a long queue that began with %d", name, c.Window(),
			c.Ssthresh(), before)
	}
}

// What HyStart++ makes of rounds (RFC 9406 section 4.2). A round is its samples, 0 for a SACK
// without one.
func TestHystartLeavesSlowStartWhenTripsGrow(t *testing.T) {
	full := func(trip time.Duration) []time.Duration { return slices.Repeat([]time.Duration{trip}, minRTTSamples) }
	for _, tt := range []struct {
		name    string
		rounds  [][]time.Duration
		careful bool
		over    int // in which round slow start ends, 0 in none
	}{
		{"the first round says nothing", [][]time.Duration{full(500 * ms)}, false, 0},
		{"4 ms more, of 20: careful", [][]time.Duration{full(20 * ms), full(24 * ms)}, true, 0},
		{"less", [][]time.Duration{full(20 * ms), full(24*ms - 1)}, false, 0},
		{"an eighth more, of 80 ms", [][]time.Duration{full(80 * ms), full(90 * ms)}, true, 0},
		{"less", [][]time.Duration{full(80 * ms), full(90*ms - 1)}, false, 0},
		{"16 ms more, of 200", [][]time.Duration{full(200 * ms), full(216 * ms)}, true, 0},
		{"less", [][]time.Duration{full(200 * ms), full(216*ms - 1)}, false, 0},
		{"a quarter more, of 200 ms: over", [][]time.Duration{full(200 * ms), full(250 * ms)}, false, 2},
		{"less: careful", [][]time.Duration{full(200 * ms), full(250*ms - 1)}, true, 0},
		{"8 ms more, of 20: over", [][]time.Duration{full(20 * ms), full(28 * ms)}, false, 2},
		{"behind the first eight too", [][]time.Duration{full(20 * ms), append(full(20*ms), full(28*ms)...)}, false, 2},
		{"seven samples judge nothing", [][]time.Duration{full(20 * ms), full(24 * ms)[1:]}, false, 0},
		{"nor does none", [][]time.Duration{full(30 * ms), append(full(20*ms), full(24*ms)...), {0}, {0}}, false, 0},
		{"one judges when the next round begins", [][]time.Duration{full(20 * ms), {24 * ms}, {20 * ms}}, true, 0},
		{"it was none: the first of the next round say so", [][]time.Duration{full(20 * ms), append(full(20*ms), full(24*ms)...), full(20 * ms)}, false, 0},
		{"and end slow start then", [][]time.Duration{full(20 * ms), full(28 * ms)[1:], {20 * ms}}, false, 3},
		{"whether or not that has a sample", [][]time.Duration{full(20 * ms), full(28 * ms)[1:], {0}}, false, 3},
		{"a SACK without a sample is none", [][]time.Duration{full(20 * ms), append([]time.Duration{24 * ms, 0}, full(24 * ms)[1:]...)}, true, 0},
		{"the shortest sample counts", [][]time.Duration{full(20 * ms), append([]time.Duration{28 * ms, 20 * ms}, full(28 * ms)[2:]...)}, false, 0},
		{"a queue behind the first eight: careful", [][]time.Duration{full(20 * ms), append(full(20*ms), full(24*ms)...)}, true, 0},
		{"of every round", [][]time.Duration{append([]time.Duration{20 * ms}, full(90 * ms)[1:]...), full(24 * ms)}, true, 0},
		{"no shorter than the first careful round", [][]time.Duration{full(20 * ms), full(24 * ms), full(24 * ms)}, true, 0},
		{"shorter: it was no queue", [][]time.Duration{full(20 * ms), full(24 * ms), full(24*ms - 1)}, false, 0},
		{"a queue after a false alarm", [][]time.Duration{full(20 * ms), full(24 * ms), full(16 * ms), full(20 * ms)}, true, 0},
		{"rounds without samples say nothing", [][]time.Duration{full(20 * ms), full(24 * ms), {0}, {0}}, true, 0},
		{"four careful rounds", append([][]time.Duration{full(20 * ms)}, slices.Repeat([][]time.Duration{full(24 * ms)}, 5)...), true, 0},
		{"five: over", append([][]time.Duration{full(20 * ms)}, slices.Repeat([][]time.Duration{full(24 * ms)}, 6)...), false, 7},
	} {
		var h hystart
		over := 0
		for i, round := range tt.rounds {
			for k, trip := range round {
				a := Ack{Trip: trip}
				if k == 0 {
					a.RTT = time.Second // a measurement, whatever it says
				}
				if h.addSack(&a) {
					over = i + 1
				}
			}
		}
		check.That(t, (h.inCSS() == tt.careful || tt.over != 0) && over == tt.over,
			"%s: careful %v, over in round %d, want %v and %d", tt.name, h.inCSS(), over, tt.careful, tt.over)
	}
}

// In careful rounds cwnd grows by a quarter, rounded up, until a loss, a timeout or another route
// begins anew.
func TestCarefulGrowth(t *testing.T) {
	for name, make := range map[string]Factory{"NewReno": NewReno, "CUBIC": NewCubic} {
		for event, do := range map[string]func(Controller){
			"none": func(Controller) {}, "loss": func(c Controller) { c.OnLoss(0) },
			"timeout": func(c Controller) { c.OnTimeout(0) }, "route": Controller.Reset,
		} {
			for acked, careful := range map[int]int{1000: 250, 5: 2, 4: 1} {
				c := make(1000, false)
				playRounds(c, 100*ms, 100*ms, 115*ms)
				do(c)
				want := acked
				if event == "none" {
					want = careful
				}
				before := c.Window()
				c.OnAck(0, Ack{Octets: acked, Flight: 2 * before})
				check.That(t, c.Window() == before+want, "%s after %s: %d octets let cwnd grow by %d, want %d", name,
					event, acked, c.Window()-before, want)
			}
		}
	}
}
