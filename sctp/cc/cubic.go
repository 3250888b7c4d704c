package cc

import (
	"math"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// Constants of RFC 9438 section 4 and 5.
const (
	cubicC    = 0.4  // segments per second cubed
	cubicBeta = 0.7  // what is left of cwnd after a loss
	cubicMark = 0.85 // and after a congestion mark behind slow start (RFC 8511)
)

// cubic is CUBIC (RFC 9438): in congestion avoidance cwnd is a cubic function of the time since the
// last loss, so it does not depend on the round trip time, and at least what Reno would have. Slow
// start, idle periods and the units are those of newReno: octets of DATA chunks.
type cubic struct {
	epoch  rawio.Time    // when the present growth began, rawio.Never before the first Ack of it
	latest rawio.Time    // the latest Ack of it
	rtt    time.Duration // latest measurement
	newReno

	wMax    float64       // cwnd before the last reduction, lowered by fast convergence
	prior   float64       // cwnd before the last reduction
	wBefore float64       // wMax before it
	k       time.Duration // from epoch until the curve reaches wMax
	est     float64       // what Reno's window would be (section 4.3)
	next    float64       // cwnd with its fraction
}

// NewCubic returns a CUBIC controller (RFC 9438), which suits paths with much delay and bandwidth better
// than NewReno. It is the default Factory, as it is TCP's and QUIC's.
func NewCubic(pmdcs int, ipv6 bool) Controller {
	c := &cubic{newReno: newReno{pmdcs: pmdcs, ipv6: ipv6}}
	c.Reset()
	return c
}

func (c *cubic) Reset() {
	c.newReno.Reset()
	c.wMax, c.prior, c.epoch = 0, 0, rawio.Never
}

func (c *cubic) OnAck(now rawio.Time, a Ack) {
	if a.RTT > 0 {
		c.rtt = a.RTT
	}
	if c.cwnd <= c.ssthresh {
		c.slowStart(&a)
		return
	}
	if a.Recovery {
		return
	}
	octets, used := c.used(&a)
	if c.latest = now; !used {
		c.epoch = rawio.Never // growth is a function of the time that cwnd was in use (section 5.8)
		return
	}
	if c.epoch == rawio.Never {
		c.begin(now)
	}
	c.avoid(now, float64(octets))
}

// OnSent takes the time in which nothing was in flight out of the curve's: cwnd was not in use (section 5.8).
func (c *cubic) OnSent(now rawio.Time, octets, flight int) {
	if flight == octets && c.epoch != rawio.Never {
		c.epoch = c.epoch.Add(now.Sub(c.latest))
	}
}

// begin starts the curve from the present cwnd (section 4.2).
func (c *cubic) begin(now rawio.Time) {
	c.epoch = now
	start := float64(c.cwnd)
	c.wMax = max(c.wMax, start)
	c.k = time.Duration(math.Cbrt((c.wMax-start)/float64(c.pmdcs)/cubicC) * float64(time.Second))
	c.est, c.next = start, start
}

// avoid is sections 4.2 to 4.5: follow the curve, but never fall behind Reno.
func (c *cubic) avoid(now rawio.Time, acked float64) {
	mss := float64(c.pmdcs)
	t := (now.Sub(c.epoch) + c.rtt - c.k).Seconds()
	target := c.wMax + cubicC*t*t*t*mss
	target = min(max(target, c.next), 1.5*c.next)
	c.next += (target - c.next) * acked / c.next

	alpha := 1.0
	if c.est < c.prior {
		alpha = 3 * (1 - cubicBeta) / (1 + cubicBeta)
	}
	c.est += alpha * mss * acked / float64(c.cwnd)
	c.next = max(c.next, c.est)
	c.cwnd = int(min(c.next, math.MaxInt32))
}

// OnLoss is sections 4.6 and 4.7, with the floor of RFC 9260 section 7.2.3.
func (c *cubic) OnLoss(rawio.Time) {
	c.reduce(cubicBeta)
	c.cwnd = c.ssthresh
}

// Undo is section 4.9.2: the curve begins anew with the window that there was.
func (c *cubic) Undo(now rawio.Time) {
	if c.before != nil && c.before.cwnd > c.cwnd {
		c.wMax, c.epoch = c.wBefore, rawio.Never
	}
	c.newReno.Undo(now)
}

// OnECN is OnLoss where that lowers cwnd, and a smaller step behind slow start.
func (c *cubic) OnECN(now rawio.Time) {
	cwnd, beta := c.cwnd, cubicBeta
	if c.cwnd >= c.ssthresh {
		beta = cubicMark
	}
	c.reduce(beta)
	c.cwnd, c.before = min(c.ssthresh, cwnd), nil
}

// OnTimeout is section 4.8.
func (c *cubic) OnTimeout(rawio.Time) {
	c.reduce(cubicBeta)
	c.cwnd = c.pmdcs
}

// reduce leaves a share beta of cwnd as ssthresh.
func (c *cubic) reduce(beta float64) {
	w := float64(c.cwnd)
	c.before, c.wBefore = &before{c.cwnd, c.ssthresh, c.hystart}, c.wMax
	c.prior = w
	if w < c.wMax {
		c.wMax = w * (1 + beta) / 2 // fast convergence: others want a share
	} else {
		c.wMax = w
	}
	c.ssthresh = max(int(w*beta), 4*c.pmdcs)
	c.epoch = rawio.Never
	c.hystart = hystart{}
}

func (c *cubic) OnIdle(now, since rawio.Time, rtos int) {
	c.newReno.OnIdle(now, since, rtos)
	c.epoch = rawio.Never
}
