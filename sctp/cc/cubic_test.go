package cc

import (
	"math"
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// drive acknowledges full windows, one a round trip, for a time.
func drive(c Controller, now rawio.Time, rtt, length time.Duration) rawio.Time {
	for end := now.Add(length); now < end; now = now.Add(rtt) {
		for left := c.Window(); left > 0; left -= 2 * 1000 {
			c.OnAck(now, Ack{Octets: 2000, Flight: c.Window(), RTT: rtt})
		}
	}
	return now
}

// After a loss cwnd falls to 0.7 and is back at its old value after K = cbrt(W_max*(1-beta)/C) seconds,
// whatever the round trip time (RFC 9438 section 4.2).
func TestCubicReturnsAfterK(t *testing.T) {
	for _, rtt := range []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond} {
		c := NewCubic(1000, false).(*cubic)
		c.cwnd, c.ssthresh = 1_000_000, 500_000 // 1000 segments
		c.OnLoss(0)
		if c.Window() != 700_000 || c.Ssthresh() != 700_000 {
			t.Fatalf("cwnd %d, ssthresh %d after a loss at 1000000", c.Window(), c.Ssthresh())
		}
		c.cwnd++ // into congestion avoidance
		k := math.Cbrt(1000 * 0.3 / 0.4)
		at := drive(c, 0, rtt, time.Duration(k*0.5*float64(time.Second)))
		half := c.Window()
		drive(c, at, rtt, time.Duration(k*0.5*float64(time.Second)))
		if w := c.Window(); w < 970_000 || w > 1_030_000 {
			t.Errorf("rtt %v: cwnd %d after K, want about 1000000", rtt, w)
		}
		if want := 1_000_000 - 300_000/8; math.Abs(float64(half-want)) > 30_000 {
			t.Errorf("rtt %v: cwnd %d after K/2, want about %d: the curve is steep first and flat at W_max", rtt, half, want)
		}
	}
}

// On short paths with small windows CUBIC is no slower than Reno (section 4.3).
func TestCubicKeepsUpWithReno(t *testing.T) {
	c, r := NewCubic(1000, false).(*cubic), NewReno(1000, false).(*newReno)
	for _, x := range []*newReno{&c.newReno, r} {
		x.cwnd, x.ssthresh = 20_000, 10_000
	}
	c.OnLoss(0)
	r.OnLoss(0)
	c.cwnd++
	r.cwnd++
	drive(c, 0, 2*time.Millisecond, 200*time.Millisecond)
	drive(r, 0, 2*time.Millisecond, 200*time.Millisecond)
	if float64(c.Window()) < 0.8*float64(r.Window()) {
		t.Errorf("cwnd %d after 100 round trips, Reno has %d", c.Window(), r.Window())
	}
}

func TestCubicFastConvergence(t *testing.T) {
	c := NewCubic(1000, false).(*cubic)
	c.cwnd, c.ssthresh = 1_000_000, 1
	c.OnLoss(0)
	c.OnLoss(0) // again, below the old W_max: somebody else wants a share
	if want := 700_000 * 0.85; math.Abs(c.wMax-want) > 1 {
		t.Errorf("W_max %v, want %v", c.wMax, want)
	}
}

func TestCubicTimeout(t *testing.T) {
	c := NewCubic(1000, false)
	c.(*cubic).cwnd = 100_000
	c.OnTimeout(0)
	if c.Window() != 1000 || c.Ssthresh() != 70_000 {
		t.Errorf("cwnd %d, ssthresh %d, want one PMDCS and 70000", c.Window(), c.Ssthresh())
	}
	for range 100 { // slow start again
		c.OnAck(0, Ack{Octets: 1000, Flight: c.Window()})
	}
	if c.Window() < 70_000 {
		t.Errorf("cwnd %d after 100 acknowledgements in slow start", c.Window())
	}
}

// Time during which cwnd was not the limit does not count as growth (section 5.8).
func TestCubicDoesNotGrowUnused(t *testing.T) {
	c := NewCubic(1000, false).(*cubic)
	c.cwnd, c.ssthresh = 100_000, 50_000
	before := c.Window()
	for i := range 100 {
		c.OnAck(rawio.Time(0).Add(time.Duration(i)*time.Second), Ack{Octets: 2000, Flight: 3000, RTT: time.Second})
	}
	if c.Window() != before {
		t.Errorf("cwnd grew from %d to %d without being used", before, c.Window())
	}
	c.OnAck(rawio.Time(0).Add(101*time.Second), Ack{Octets: 2000, Flight: 200_000, RTT: time.Second})
	if c.Window() > before+2000 {
		t.Errorf("cwnd jumped to %d at the first acknowledgement after a quiet time", c.Window())
	}
}
