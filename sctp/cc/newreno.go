package cc

import (
	"math"

	"github.com/rddp-go/rddp/rawio"
)

// The octet terms of the initial cwnd (RFC 9260 section 7.2.1).
const (
	initial4 = 4404
	initial6 = 4344
)

type newReno struct {
	cwnd     int
	ssthresh int
	partial  int // partial_bytes_acked
	pmdcs    int
	ipv6     bool
	hystart  hystart
}

// NewReno returns the controller that RFC 9260 section 7.2 specifies, which leaves slow start when the
// round trip time grows (RFC 9406). It is the default Factory.
func NewReno(pmdcs int, ipv6 bool) Controller {
	r := &newReno{pmdcs: pmdcs, ipv6: ipv6}
	r.Reset()
	return r
}

// Reset sets the initial parameters (section 7.2.1).
func (r *newReno) Reset() {
	n := initial4
	if r.ipv6 {
		n = initial6
	}
	r.cwnd = min(4*r.pmdcs, max(2*r.pmdcs, n))
	r.ssthresh = math.MaxInt32
	r.partial = 0
	r.hystart = hystart{}
}

func (r *newReno) Window() int   { return r.cwnd }
func (r *newReno) Ssthresh() int { return r.ssthresh }

func (r *newReno) OnSent(rawio.Time, int, int) {}

func (r *newReno) OnAck(_ rawio.Time, a Ack) {
	if r.cwnd <= r.ssthresh {
		r.slowStart(a)
	} else {
		r.avoidance(a)
	}
	if a.AllAcked {
		r.partial = 0
	}
}

// slowStart is section 7.2.1, where a SACK adds at most L*PMDCS to cwnd. L is 1 for a SACK of two packets,
// which is how often they should come (section 6.2), and as many as those would have given for one that
// stands for more. It is a quarter of that while hystart is careful.
func (r *newReno) slowStart(a Ack) {
	if a.Recovery || a.Flight < r.cwnd {
		return
	}
	if r.hystart.acked(a) {
		r.ssthresh = r.cwnd
	}
	n := min(a.Octets, r.pmdcs*max(1, a.Octets/(2*r.pmdcs)))
	if r.hystart.careful() {
		n = (n + 3) / 4
	}
	r.grow(n)
}

// avoidance is section 7.2.2. In Fast Recovery cwnd stays too: section 7.2.4 point 6 lets it change
// for no loss, and growing between two losses of one recovery would be more aggressive than TCP.
func (r *newReno) avoidance(a Ack) {
	r.partial += a.Octets + a.Dups
	if a.Flight < r.cwnd || a.Recovery {
		r.partial = min(r.partial, r.cwnd)
		return
	}
	if r.partial >= r.cwnd {
		r.partial -= r.cwnd
		r.grow(r.pmdcs)
	}
}

func (r *newReno) grow(n int) { r.cwnd = min(r.cwnd+n, math.MaxInt32) }

// OnLoss is section 7.2.3 for a loss that a SACK has revealed.
func (r *newReno) OnLoss(rawio.Time) {
	r.hystart = hystart{}
	r.ssthresh = max(r.cwnd/2, 4*r.pmdcs)
	r.cwnd = r.ssthresh
	r.partial = 0
}

// OnECN is OnLoss where that lowers cwnd: below 4*PMDCS, after a timeout, it would not.
func (r *newReno) OnECN(now rawio.Time) {
	cwnd := r.cwnd
	r.OnLoss(now)
	r.cwnd = min(r.cwnd, cwnd)
}

// OnTimeout is section 7.2.3 for T3-rtx.
func (r *newReno) OnTimeout(rawio.Time) {
	r.hystart = hystart{}
	r.ssthresh = max(r.cwnd/2, 4*r.pmdcs)
	r.cwnd = r.pmdcs
	r.partial = 0
}

// OnIdle is the adjustment of section 7.2.1 to max(cwnd/2, 4*PMDCS) for each RTO. It never raises
// cwnd: a window that is smaller, after a timeout, has not earned more by silence.
func (r *newReno) OnIdle(_ rawio.Time, rtos int) {
	if rtos <= 0 {
		return
	}
	r.ssthresh, r.cwnd = r.cwnd, min(r.cwnd, max(r.cwnd>>rtos, 4*r.pmdcs))
}

func (r *newReno) SetPMDCS(octets int) { r.pmdcs = octets }
