package tx

import (
	"github.com/rddp-go/rddp/sctp/wire"
)

// retransmitLog holds chunks that were sent again, in that order: a FIFO in a slice. An entry is
// stale once its chunk was sent once more, or acknowledged for good.
type retransmitLog struct {
	entries []transmission
	head    int
}

// transmission is one transmission.
type transmission struct {
	tsn       wire.TSN
	sentStamp uint32
}

// minRetransmitLog is how many transmissions there is space for at least, once there was one.
const minRetransmitLog = 64

// push adds a transmission. Before it takes more memory it drops stale entries.
func (a *retransmitLog) push(g *outstanding, t wire.TSN, stamp uint32) {
	if len(a.entries) == cap(a.entries) {
		kept := a.entries[:0]
		for _, e := range a.entries[a.head:] {
			if g.isCurrentSend(e) {
				kept = append(kept, e)
			}
		}
		a.entries, a.head = kept, 0
		if n := len(kept); n == 0 || n > cap(kept)/2 {
			a.entries = append(make([]transmission, 0, max(2*n, minRetransmitLog)), kept...)
		}
	}
	a.entries = append(a.entries, transmission{t, stamp})
}

// isCurrentSend says whether a transmission is the last one of a chunk that is still outstanding.
func (g *outstanding) isCurrentSend(e transmission) bool {
	if uint32(e.tsn-g.firstUnacked) >= uint32(g.nextTSN-g.firstUnacked) {
		return false
	}
	return g.recordOf(e.tsn).sentStamp == e.sentStamp
}

// updateLossEligible finds the chunks that were sent before one that has arrived since the last
// time (sentBeforeDelivered). Those in flight take miss indications from now on, unless they were
// fast-retransmitted. Each transmission is looked at once, so that a SACK need not go through all
// that is outstanding.
func (s *Sender) updateLossEligible() (all bool) {
	g := &s.outstanding
	if g.lossEligibleTo.Less(g.firstUnacked) {
		g.lossEligibleTo = g.firstUnacked
	}
	first := s.work.walk(nil, g.lossEligibleTo, g.nextTSN)
	for first.next() {
		r := g.recordOf(first.tsn)
		if r.flags&flagResent != 0 || r.state == stateAbandoned {
			continue // in its turn, or never
		}
		if !s.delivered.overtook(first.tsn, r) {
			break
		}
		s.markLossEligible(first.tsn, r)
	}
	g.lossEligibleTo = first.tsn
	return !first.cut && s.updateRetransmitted()
}

// updateRetransmitted does the same for what was sent again, in that order.
func (s *Sender) updateRetransmitted() (all bool) {
	g := &s.outstanding
	a := &g.retransmitLog
	for ; a.head < len(a.entries) && s.work.takeStep(); a.head++ {
		e := a.entries[a.head]
		if !g.isCurrentSend(e) {
			continue
		}
		r := g.recordOf(e.tsn)
		if !s.delivered.overtook(e.tsn, r) {
			return true
		}
		s.markLossEligible(e.tsn, r)
	}
	if a.head < len(a.entries) {
		return false
	}
	a.clearAll()
	return true
}

// markLossEligible has a chunk that was sent before one that has arrived take miss indications, if
// it is in flight. In strict RFC mode one that was fast-retransmitted takes none.
func (s *Sender) markLossEligible(t wire.TSN, r *chunkRecord) {
	if r.flags&flagFastRetransmitted == 0 || !s.cfg.StrictRFC {
		s.outstanding.addLossEligible(t, r)
	}
}

// clearAll forgets everything, and gives back what was much.
func (a *retransmitLog) clearAll() {
	if a.entries, a.head = a.entries[:0], 0; cap(a.entries) > 16*minRetransmitLog {
		a.entries = nil
	}
}
