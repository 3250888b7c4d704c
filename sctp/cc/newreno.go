package cc

import (
	"math"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// The octet terms of the initial cwnd: of RFC 9260 section 7.2.1, and of RFC 6928 section 2, which
// takes ten packets.
const (
	initialCwndIPv4    = 4404
	initialCwndIPv6    = 4344
	initialCwndRFC6928 = 14600
)

// cwndLifetime is how long a window stays what it was in silence (RFC 7661 section 4.4.2).
const cwndLifetime = 5 * time.Minute

type newReno struct {
	cwnd              int
	ssthresh          int
	partialBytesAcked int // partial_bytes_acked
	pmdcs             int
	ipv6              bool
	strictRFC         bool // of RFC 9260
	hystart           hystart
	undoState         *cwndUndoState // nil: nothing that can be taken back
}

// cwndUndoState is what there was before the last loss or timeout.
type cwndUndoState struct {
	cwnd, ssthresh int
	hystart        hystart
}

// NewReno returns the controller of RFC 9260 section 7.2 as TCP has it by now: it begins with ten
// packets (RFC 6928), leaves slow start when the round trip time grows (RFC 9406), counts all
// octets that are acknowledged in it where packets are spread over the round trip, and after
// silence goes on with the window that it had, for minutes.
func NewReno(pmdcs int, ipv6 bool) Controller {
	r := &newReno{pmdcs: pmdcs, ipv6: ipv6}
	r.Reset()
	return r
}

// RFC9260 returns NewReno by the letter of section 7.2.1: it begins with three packets of 1500
// octets, grows by one packet for each two that are acknowledged, and halves its window with each
// RTO of silence.
func RFC9260(pmdcs int, ipv6 bool) Controller {
	r := &newReno{pmdcs: pmdcs, ipv6: ipv6, strictRFC: true}
	r.Reset()
	return r
}

// Reset sets the initial parameters.
func (r *newReno) Reset() {
	r.cwnd = r.initialCwnd()
	r.ssthresh = math.MaxInt32
	r.partialBytesAcked = 0
	r.hystart = hystart{}
	r.undoState = nil
}

func (r *newReno) initialCwnd() int {
	switch {
	case !r.strictRFC:
		return min(10*r.pmdcs, max(2*r.pmdcs, initialCwndRFC6928))
	case r.ipv6:
		return min(4*r.pmdcs, max(2*r.pmdcs, initialCwndIPv6))
	}
	return min(4*r.pmdcs, max(2*r.pmdcs, initialCwndIPv4))
}

func (r *newReno) Window() int   { return r.cwnd }
func (r *newReno) Ssthresh() int { return r.ssthresh }

func (r *newReno) OnSent(rawio.Time, int, int) {}

func (r *newReno) OnAck(_ rawio.Time, a Ack) {
	if r.cwnd <= r.ssthresh {
		r.slowStart(&a)
	} else {
		r.avoidCongestion(&a)
	}
	if a.AllAcked {
		r.partialBytesAcked = 0
	}
}

// cwndLimitedOctets says of what a SACK acknowledges whether cwnd was fully utilized by it, and how
// much of it that is. By the letter of sections 7.2.1 and 7.2.2 that is so while cwnd octets or
// more are outstanding when the SACK comes; else also if they were when it was sent (RFC 9002
// section 7.8).
func (r *newReno) cwndLimitedOctets(a *Ack) (octets int, used bool) {
	switch {
	case a.Flight >= r.cwnd:
		return a.Octets, true
	case r.strictRFC:
		return 0, false
	}
	return a.Full, a.Full > 0
}

// slowStart is section 7.2.1, where a SACK adds at most L*PMDCS to cwnd. L is 1 for a SACK of two
// packets, which is how often they should come (section 6.2), and as many as those would have given
// for one that stands for more; where packets are spread there is no burst to bound, and all that
// is acknowledged counts. It is a quarter of that while hystart is careful.
func (r *newReno) slowStart(a *Ack) {
	n, used := r.cwndLimitedOctets(a)
	spread := a.Spread && !r.strictRFC
	if spread && 2*a.Flight > r.cwnd { // the pace may hold back as much again
		n, used = a.Octets, true
	}
	if a.Recovery || !used {
		return
	}
	if r.hystart.addSack(a) {
		r.ssthresh = r.cwnd
	}
	if !spread {
		n = min(n, r.pmdcs*max(1, n/(2*r.pmdcs)))
	}
	if r.hystart.inCSS() {
		n = (n + 3) / 4
	}
	r.growCwnd(n)
}

// avoidCongestion is section 7.2.2. In Fast Recovery cwnd stays too: section 7.2.4 point 6 lets it
// change for no loss, and growing between two losses of one recovery would be more aggressive than
// TCP.
func (r *newReno) avoidCongestion(a *Ack) {
	r.partialBytesAcked += a.Octets + a.Dups
	if _, used := r.cwndLimitedOctets(a); !used || a.Recovery {
		r.partialBytesAcked = min(r.partialBytesAcked, r.cwnd)
		return
	}
	if r.partialBytesAcked >= r.cwnd {
		r.partialBytesAcked -= r.cwnd
		r.growCwnd(r.pmdcs)
	}
}

func (r *newReno) growCwnd(n int) { r.cwnd = min(r.cwnd+n, math.MaxInt32) }

// OnLoss is section 7.2.3 for a loss that a SACK has revealed.
func (r *newReno) OnLoss(rawio.Time) {
	r.undoState = &cwndUndoState{r.cwnd, r.ssthresh, r.hystart}
	r.hystart = hystart{}
	r.ssthresh = max(r.cwnd/2, 4*r.pmdcs)
	r.cwnd = r.ssthresh
	r.partialBytesAcked = 0
}

// Undo gives back the window that there was, if it is more than what has grown since, and what slow
// start knew of the round trip: who can have reductions undone is not to stay in it for longer.
func (r *newReno) Undo(rawio.Time) {
	if b := r.undoState; b != nil {
		r.hystart = b.hystart
		r.cwnd = max(r.cwnd, b.cwnd)
		r.ssthresh = max(r.ssthresh, b.ssthresh)
		r.undoState = nil
	}
}

// OnECN is OnLoss where that lowers cwnd: below 4*PMDCS, after a timeout, it would not. Behind slow
// start four fifths of cwnd stay, unless the letter is kept: a queue that is marked is a short one,
// which a smaller step empties (RFC 8511).
func (r *newReno) OnECN(now rawio.Time) {
	cwnd, kept := r.cwnd, 0
	if r.cwnd >= r.ssthresh && !r.strictRFC {
		kept = r.cwnd / 5 * 4
	}
	r.OnLoss(now)
	r.ssthresh = max(r.ssthresh, kept)
	r.cwnd, r.undoState = min(r.ssthresh, cwnd), nil
}

// OnTimeout is section 7.2.3 for T3-rtx.
func (r *newReno) OnTimeout(now rawio.Time) {
	r.OnLoss(now)
	r.cwnd = r.pmdcs
}

// OnIdle is, by the letter, the adjustment of section 7.2.1 to max(cwnd/2, 4*PMDCS) for each RTO;
// else what was a fit window lately still is one, and an older one is forgotten. It never raises
// cwnd: a window that is smaller, after a timeout, has not earned more by silence.
func (r *newReno) OnIdle(now, since rawio.Time, rtos int) {
	switch {
	case rtos <= 0:
	case r.strictRFC:
		r.ssthresh, r.cwnd = r.cwnd, min(r.cwnd, max(r.cwnd>>rtos, 4*r.pmdcs))
	case now.Sub(since) > cwndLifetime:
		r.ssthresh, r.cwnd = r.cwnd, min(r.cwnd, r.initialCwnd())
	}
}

func (r *newReno) SetPMDCS(octets int) { r.pmdcs = octets }
