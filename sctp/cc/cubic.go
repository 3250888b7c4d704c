package cc

import (
	"math"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// Constants of RFC 9438 section 4 and 5.
const (
	cubicC       = 0.4  // segments per second cubed
	cubicBeta    = 0.7  // what is left of cwnd after a loss
	cubicECNBeta = 0.85 // and after a congestion mark behind slow start (RFC 8511)
)

// cubic is CUBIC (RFC 9438). In congestion avoidance cwnd is a cubic function of the time since the
// last loss, and at least what Reno would have. So it does not depend on the round trip time. Slow
// start, idle periods and the units are those of newReno: octets of DATA chunks.
type cubic struct {
	epochStartAt rawio.Time    // when the present growth began, rawio.Never before the first Ack of it
	lastAckAt    rawio.Time    // the latest Ack of it
	latestRTT    time.Duration // latest measurement
	newReno

	wMax           float64       // cwnd before the last reduction, lowered by fast convergence
	priorCwnd      float64       // cwnd before the last reduction
	undoWMax       float64       // wMax before it
	k              time.Duration // from epoch until the curve reaches wMax
	wEst           float64       // what Reno's window would be (section 4.3)
	fractionalCwnd float64       // cwnd with its fraction
}

// NewCubic returns a CUBIC controller (RFC 9438). It suits paths with much delay and bandwidth
// better than NewReno. It is the default Factory, as it is TCP's and QUIC's.
func NewCubic(pmdcs int, ipv6 bool) Controller {
	c := &cubic{newReno: newReno{pmdcs: pmdcs, ipv6: ipv6}}
	c.Reset()
	return c
}

func (c *cubic) Reset() {
	c.newReno.Reset()
	c.wMax, c.priorCwnd, c.epochStartAt = 0, 0, rawio.Never
}

func (c *cubic) OnAck(now rawio.Time, a Ack) {
	if a.RTT > 0 {
		c.latestRTT = a.RTT
	}
	if c.cwnd <= c.ssthresh {
		c.slowStart(&a)
		return
	}
	if a.Recovery {
		return
	}
	octets, used := c.cwndLimitedOctets(&a)
	if c.lastAckAt = now; !used {
		c.epochStartAt = rawio.Never // growth is a function of the time that cwnd was in use (section 5.8)
		return
	}
	if c.epochStartAt == rawio.Never {
		c.startEpoch(now)
	}
	c.followCurve(now, float64(octets))
}

// OnSent leaves the time in which nothing was in flight out of the curve's: cwnd was not in use
// (section 5.8).
func (c *cubic) OnSent(now rawio.Time, octets, flight int) {
	if flight == octets && c.epochStartAt != rawio.Never {
		c.epochStartAt = c.epochStartAt.Add(now.Sub(c.lastAckAt))
	}
}

// startEpoch starts the curve from the present cwnd (section 4.2).
func (c *cubic) startEpoch(now rawio.Time) {
	c.epochStartAt = now
	start := float64(c.cwnd)
	c.wMax = max(c.wMax, start)
	c.k = time.Duration(math.Cbrt((c.wMax-start)/float64(c.pmdcs)/cubicC) * float64(time.Second))
	c.wEst, c.fractionalCwnd = start, start
}

// followCurve is sections 4.2 to 4.5: follow the curve, but never fall behind Reno.
func (c *cubic) followCurve(now rawio.Time, acked float64) {
	mss := float64(c.pmdcs)
	t := (now.Sub(c.epochStartAt) + c.latestRTT - c.k).Seconds()
	target := c.wMax + cubicC*t*t*t*mss
	target = min(max(target, c.fractionalCwnd), 1.5*c.fractionalCwnd)
	c.fractionalCwnd += (target - c.fractionalCwnd) * acked / c.fractionalCwnd

	alpha := 1.0
	if c.wEst < c.priorCwnd {
		alpha = 3 * (1 - cubicBeta) / (1 + cubicBeta)
	}
	c.wEst += alpha * mss * acked / float64(c.cwnd)
	c.fractionalCwnd = max(c.fractionalCwnd, c.wEst)
	c.cwnd = int(min(c.fractionalCwnd, math.MaxInt32))
}

// OnLoss is sections 4.6 and 4.7, with the floor of RFC 9260 section 7.2.3.
func (c *cubic) OnLoss(rawio.Time) {
	c.reduceCwnd(cubicBeta)
	c.cwnd = c.ssthresh
}

// Undo is section 4.9.2: the curve begins anew with the window that there was.
func (c *cubic) Undo(now rawio.Time) {
	if c.undoState != nil && c.undoState.cwnd > c.cwnd {
		c.wMax, c.epochStartAt = c.undoWMax, rawio.Never
	}
	c.newReno.Undo(now)
}

// OnECN is OnLoss where that lowers cwnd, and a smaller step behind slow start.
func (c *cubic) OnECN(now rawio.Time) {
	cwnd, beta := c.cwnd, cubicBeta
	if c.cwnd >= c.ssthresh {
		beta = cubicECNBeta
	}
	c.reduceCwnd(beta)
	c.cwnd, c.undoState = min(c.ssthresh, cwnd), nil
}

// OnTimeout is section 4.8.
func (c *cubic) OnTimeout(rawio.Time) {
	c.reduceCwnd(cubicBeta)
	c.cwnd = c.pmdcs
}

// reduceCwnd leaves a share beta of cwnd as ssthresh.
func (c *cubic) reduceCwnd(beta float64) {
	w := float64(c.cwnd)
	c.undoState, c.undoWMax = &cwndUndoState{c.cwnd, c.ssthresh, c.hystart}, c.wMax
	c.priorCwnd = w
	if w < c.wMax {
		c.wMax = w * (1 + beta) / 2 // fast convergence: others want a share
	} else {
		c.wMax = w
	}
	c.ssthresh = max(int(w*beta), 4*c.pmdcs)
	c.epochStartAt = rawio.Never
	c.hystart = hystart{}
}

func (c *cubic) OnIdle(now, since rawio.Time, rtos int) {
	c.newReno.OnIdle(now, since, rtos)
	c.epochStartAt = rawio.Never
}
