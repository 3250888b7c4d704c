package cc

import (
	"testing"
	"time"
)

// rounds gives c one full window of acknowledgements a round trip, each round with one measurement.
func rounds(c Controller, rtts ...time.Duration) {
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
	rounds(c, 100*ms, 100*ms, 101*ms)
	doubled := c.Window()
	if doubled < 7*4000 {
		t.Fatalf("cwnd %d after three rounds of slow start", doubled)
	}
	rounds(c, 115*ms) // more than an eighth longer
	rounds(c, 130*ms)
	if w := c.Window(); w > doubled*9/5 {
		t.Errorf("cwnd grew from %d to %d in two careful rounds, want a quarter each", doubled, w)
	}
	rounds(c, 140*ms, 150*ms, 160*ms, 170*ms)
	if c.Ssthresh() > c.Window() {
		t.Errorf("still in slow start with cwnd %d after five careful rounds", c.Window())
	}
}

func TestSlowStartGoesOnAfterAFalseAlarm(t *testing.T) {
	c := NewReno(1000, false)
	rounds(c, 100*ms, 120*ms, 100*ms)
	before := c.Window()
	rounds(c, 100*ms)
	if c.Window() < before*19/10 {
		t.Errorf("cwnd grew from %d to %d, want slow start to have gone on", before, c.Window())
	}
}

// A round is judged by the shortest of its samples: SACKs that were delayed say nothing of a queue.
func TestDelayedSacksAreNoQueue(t *testing.T) {
	c := NewReno(1000, false)
	rounds(c, 100*ms, 100*ms)
	before := c.Window()
	for i := range before / 1000 {
		a := Ack{Octets: 1000, Flight: c.Window(), Trip: 200 * ms}
		switch i {
		case 0:
			a.RTT = 200 * ms
		case 4:
			a.Trip = 100 * ms
		}
		c.OnAck(0, a)
	}
	rounds(c, 100*ms)
	if c.Window() < before*39/10 || c.Ssthresh() < c.Window() {
		t.Errorf("cwnd grew from %d to %d, ssthresh %d, want slow start to have gone on", before, c.Window(), c.Ssthresh())
	}
}

// A queue that is a quarter of the round trip long after one round leaves no time for careful ones.
func TestSlowStartEndsAtOnceWhenTheQueueIsLong(t *testing.T) {
	for name, make := range map[string]Factory{"NewReno": NewReno, "CUBIC": NewCubic} {
		c := make(1000, false)
		rounds(c, 300*ms, 300*ms, 300*ms)
		before := c.Window()
		rounds(c, 385*ms)
		if c.Ssthresh() > before*3/2 || c.Window() > before*3/2 {
			t.Errorf("%s: cwnd %d, ssthresh %d after a round with a long queue that began with %d", name, c.Window(), c.Ssthresh(), before)
		}
	}
}
