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
			c.OnAck(0, Ack{Octets: 1000, Flight: c.Window(), RTT: rtt})
			rtt = 0
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
	rounds(c, 100*ms, 150*ms, 100*ms) // one measurement with a delayed SACK in it
	before := c.Window()
	rounds(c, 100*ms)
	if c.Window() < before*19/10 {
		t.Errorf("cwnd grew from %d to %d, want slow start to have gone on", before, c.Window())
	}
}
