package cc

import (
	"math"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
)

// ackFullWindows acknowledges full windows, one a round trip, for a time, or until they are absurd.
func ackFullWindows(c Controller, now rawio.Time, rtt, length time.Duration) rawio.Time {
	for end := now.Add(length); now < end && c.Window() < 1<<27; now = now.Add(rtt) {
		for left := c.Window(); left > 0; left -= 2 * 1000 {
			c.OnAck(now, Ack{Octets: 2000, Flight: c.Window(), RTT: rtt})
		}
	}
	return now
}

// After a loss cwnd falls to 0.7 and is back at its old value after K = cbrt(W_max*(1-beta)/C)
// seconds, whatever the round trip time (RFC 9438 section 4.2).
func TestCubicReturnsAfterK(t *testing.T) {
	for _, rtt := range []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond} {
		c := NewCubic(1000, false).(*cubic)
		c.cwnd, c.ssthresh = 1_000_000, 500_000 // 1000 segments
		c.OnLoss(0)
		must.That(t, c.Window() == 700_000 && c.Ssthresh() == 700_000,
			"cwnd %d, ssthresh %d after a loss at 1000000", c.Window(), c.Ssthresh())
		c.cwnd++ // into congestion avoidance
		k := math.Cbrt(1000 * 0.3 / 0.4)
		at := ackFullWindows(c, 0, rtt, time.Duration(k*0.5*float64(time.Second)))
		half := c.Window()
		ackFullWindows(c, at, rtt, time.Duration(k*0.5*float64(time.Second)))
		check.That(t, c.Window() >= 970_000 && c.Window() <= 1_030_000, "rtt %v: cwnd %d after K, want about 1000000",
			rtt, c.Window())
		want := 1_000_000 - 300_000/8
		check.That(t, math.Abs(float64(half-want)) <= 30_000,
			"rtt %v: cwnd %d after K/2, want about %d: the curve is steep first and flat at W_max", rtt, half, want)
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
	ackFullWindows(c, 0, 2*time.Millisecond, 200*time.Millisecond)
	ackFullWindows(r, 0, 2*time.Millisecond, 200*time.Millisecond)
	check.That(t, float64(c.Window()) >= 0.8*float64(r.Window()), "cwnd %d after 100 round trips, Reno has %d",
		c.Window(), r.Window())
}

func TestCubicFastConvergence(t *testing.T) {
	c := NewCubic(1000, false).(*cubic)
	c.cwnd, c.ssthresh = 1_000_000, 1
	c.OnLoss(0)
	c.OnLoss(0) // again, below the old W_max: somebody else wants a share
	want := 700_000 * 0.85
	check.That(t, math.Abs(c.wMax-want) <= 1, "W_max %v, want %v", c.wMax, want)
	c.cwnd = int(want)
	c.wMax = float64(c.cwnd)
	c.OnLoss(0)
	check.That(t, c.wMax == float64(int(want)), "W_max %v after a loss right there", c.wMax)
	c.cwnd = 5000
	c.OnLoss(0)
	check.That(t, c.Window() == 4000 && c.Ssthresh() == 4000, "cwnd %d, ssthresh %d, want no less than four chunks",
		c.Window(), c.Ssthresh())
}

func TestWindowFitsThirtyOneBits(t *testing.T) {
	huge := newReno{cwnd: math.MaxInt32 - 1, ssthresh: 1, pmdcs: 1 << 30}
	for _, c := range []Controller{&huge, &cubic{newReno: huge, epochStartAt: rawio.Never}} {
		c.OnAck(0, Ack{Octets: 1 << 33, Flight: 1 << 33, RTT: time.Hour})
		check.That(t, c.Window() == math.MaxInt32, "%T: cwnd %d", c, c.Window())
	}
}

func TestCubicTimeout(t *testing.T) {
	c := NewCubic(1000, false)
	c.(*cubic).cwnd = 100_000
	c.OnTimeout(0)
	check.That(t, c.Window() == 1000 && c.Ssthresh() == 70_000, "cwnd %d, ssthresh %d, want one PMDCS and 70000",
		c.Window(), c.Ssthresh())
	for range 100 { // slow start again
		c.OnAck(0, Ack{Octets: 1000, Flight: c.Window()})
	}
	check.That(t, c.Window() >= 70_000, "cwnd %d after 100 acknowledgements in slow start", c.Window())
}

// However far the curve is ahead, cwnd grows by no more than half of what a window of
// acknowledgements says, and a curve that falls back because the round trip has become shorter does
// not shrink it (RFC 9438 section 4.2).
func TestCubicTargetIsBounded(t *testing.T) {
	c := NewCubic(1000, false).(*cubic)
	c.cwnd, c.ssthresh = 100_000, 50_000
	ack := func(at, rtt time.Duration) int {
		c.OnAck(rawio.Time(at), Ack{Octets: 2000, Flight: c.Window(), RTT: rtt})
		return c.Window()
	}
	check.Equal(t, "cwnd after one of fifty acknowledgements: a fiftieth of 50000 more", ack(0, time.Minute), 101_000)
	w := ack(time.Second, time.Millisecond)
	check.That(t, w >= 101_000 && w <= 101_100, "cwnd %d after a round trip that is shorter", w)
	c = NewCubic(1000, false).(*cubic)
	c.cwnd, c.ssthresh, c.priorCwnd = 100_000, 50_000, 100_000
	check.Equal(t, "cwnd that Reno would have where the window was when it was last reduced (section 4.3)", ack(0, 0),
		100_020)
}

// Time during which cwnd was not the limit does not count as growth (section 5.8).
func TestCubicDoesNotGrowUnused(t *testing.T) {
	c := NewCubic(1000, false).(*cubic)
	c.cwnd, c.ssthresh = 100_000, 50_000
	c.OnAck(0, Ack{Octets: 1, Flight: 100_000, RTT: time.Second}) // it is in use, and then no more
	before := c.Window()
	for i := range 100 {
		c.OnAck(rawio.Time(0).Add(time.Duration(i)*time.Second), Ack{Octets: 2000, Flight: 3000, RTT: time.Second})
	}
	check.Equal(t, "cwnd without being used", c.Window(), before)
	c.OnAck(rawio.Time(0).Add(101*time.Second), Ack{Octets: 2000, Flight: 200_000, RTT: time.Second})
	check.That(t, c.Window() <= before+50, "cwnd jumped to %d at the first acknowledgement after a quiet time",
		c.Window())
	c.OnSent(rawio.Time(200*time.Second), 3000, 3000) // nothing was in flight for 99 seconds
	c.OnAck(rawio.Time(201*time.Second), Ack{Octets: 3000, Full: 2000, Flight: 3000, RTT: time.Second})
	check.That(t, c.Window() > before && c.Window() <= before+100 && c.epochStartAt == rawio.Time(200*time.Second),
		"cwnd %d, and the curve began at %v: at the end of an answer, after silence", c.Window(), c.epochStartAt)
}

// cwnd follows the equations of RFC 9438 section 4, written down from there, through losses,
// silence and recovery.
func TestCubicIsThatOfTheRFC(t *testing.T) {
	const rtt, acked, mss = 100 * time.Millisecond, 2000, 1000.0
	for _, size := range []int{1_000_000, 20_000} { // where the cubic curve decides, and where Reno does
		c := NewCubic(mss, false).(*cubic)
		c.cwnd, c.ssthresh, c.latestRTT = size, size/2, rtt
		c.OnLoss(0)
		wMax, prior, began := float64(size), float64(size), time.Duration(-1)
		var start, next, reno float64
		for n, now := 0, time.Duration(0); n < 3000; n, now = n+1, now+5*time.Millisecond {
			if n == 0 || n == 1000 {
				c.cwnd++ // congestion avoidance begins above ssthresh
			}
			cwnd := float64(c.cwnd)
			switch {
			case n == 999: // equations 4.6 and 4.7
				c.OnLoss(rawio.Time(now))
				prior, began = cwnd, -1
				if wMax, cwnd = max(cwnd, wMax), 0.7*cwnd; prior < wMax {
					wMax = prior * 1.7 / 2
				}
				next = cwnd
			case n == 1500:
				c.OnAck(rawio.Time(now), Ack{Octets: acked, Flight: c.cwnd, RTT: rtt, Recovery: true})
				next = cwnd
			case n == 2000:
				c.OnIdle(rawio.Time(now), rawio.Time(now), 0)
				began = -1
			default:
				a := Ack{Octets: acked, Flight: c.cwnd}
				if n%10 == 1 {
					a.RTT = rtt
				}
				c.OnAck(rawio.Time(now), a)
				if began < 0 {
					began, start, next, reno, wMax = now, cwnd, cwnd, cwnd, max(wMax, cwnd)
				}
				k := math.Cbrt((wMax - start) / mss / 0.4)
				target := mss*0.4*math.Pow((now-began+rtt).Seconds()-k, 3) + wMax
				next += (min(max(target, next), 1.5*next) - next) * acked / next
				alpha := 3 * 0.3 / 1.7
				if reno >= prior {
					alpha = 1
				}
				reno += alpha * mss * acked / cwnd
				next = max(next, reno)
			}
			must.That(t, math.Abs(float64(c.Window())-next) <= 2, "from %d, after %v: cwnd %d, want %.0f", size, now,
				c.Window(), next)
		}
	}
	c := NewCubic(mss, false).(*cubic)
	c.cwnd = 20_000
	c.OnLoss(0)
	c.OnIdle(rawio.Time(cwndLifetime), -1, 1)
	check.That(t, c.Window() == 10_000 && c.Ssthresh() == 14_000, "after silence: cwnd %d, ssthresh %d", c.Window(),
		c.Ssthresh())
	c.Reset()
	check.That(t, c.wMax == 0 && c.priorCwnd == 0 && c.epochStartAt == rawio.Never && c.Window() == 10_000 &&
		c.Ssthresh() == math.MaxInt32, "after a reset: %+v", c)
}
