package cc

import (
	"math"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// The octet terms of the initial cwnd. One is of RFC 9260 section 7.2.1, the other of RFC 6928
// section 2, which takes ten packets.
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

// NewReno returns the controller of RFC 9260 section 7.2 with what TCP has changed since. It begins
// with ten packets (RFC 6928), and leaves slow start when the round trip time grows (RFC 9406). In
// slow start it counts all octets acknowledged where packets are spread over the round trip. After
// silence it keeps its window for minutes.
func NewReno(pmdcs int, ipv6 bool) Controller {
	r := &newReno{pmdcs: pmdcs, ipv6: ipv6}
	r.Reset()
	return r
}

// RFC9260 returns NewReno as section 7.2.1 has it. It begins with three packets of 1500
// octets, and grows by one packet for each two that are acknowledged. It halves its window with
// each RTO of silence.
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

// cwndLimitedOctets says whether cwnd was fully utilized by what a SACK acknowledges, and by how
// much of it. In strict RFC mode that is so while cwnd octets or more are outstanding when the SACK
// comes (sections 7.2.1 and 7.2.2). Else it is also so if they were when the data was sent (RFC
// 9002 section 7.8).
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
// packets, which is how often they should come (section 6.2). For a SACK that stands for more, L is
// as many as those would have given. Where packets are spread there is no burst to bound, and all
// that is acknowledged counts. While hystart is careful it is a quarter of that.
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
// change for no loss. Growing between two losses of one recovery would be more aggressive than TCP.
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

// Undo restores the earlier window, if that is more than what has grown since. It also restores
// what slow start knew of the round trip. So a peer that can have reductions undone does not stay
// in slow start for longer.
func (r *newReno) Undo(rawio.Time) {
	if b := r.undoState; b != nil {
		r.hystart = b.hystart
		r.cwnd = max(r.cwnd, b.cwnd)
		r.ssthresh = max(r.ssthresh, b.ssthresh)
		r.undoState = nil
	}
}

// OnECN is OnLoss where that lowers cwnd: below 4*PMDCS, after a timeout, it would not. After slow
// start four fifths of cwnd stay, unless in strict RFC mode. A queue that is marked is a short one,
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

// OnIdle is, in strict RFC mode, the adjustment of section 7.2.1 to max(cwnd/2, 4*PMDCS) for each
// RTO. Else a window that was fit lately still is, and an older one is forgotten. It never raises
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
