package tx

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// A SACK is the peer's word, and a peer that lies would have its data sooner than others behind the
// same bottleneck. Octets that are acknowledged, taken back and acknowledged again open the window
// once (Path.renegedOctets). Duplicates undo a few reductions (Path.undoReduction). What is
// reported missing goes again within bounds.
//
// A peer may acknowledge what has not arrived, so that nothing is ever lost, and no SACK shows it.
// So now and then a chunk gets its TSN, and all that goes with it, but does not leave. An honest
// peer reports it missing, and a round trip later it goes, for the first time. That does not count
// as a loss. A peer that acknowledges it lies.
const (
	// firstWithholdPackets and withholdEveryPackets are within how many packets one is withheld,
	// the first and after that. That is so seldom that it shows in no percentile of what a program
	// waits for.
	firstWithholdPackets = 1 << 10
	withholdEveryPackets = 1 << 15
	// withholdEveryNarrow is that where the window is narrow, so that one is withheld in each
	// 2,048.
	withholdEveryNarrow = 2000
	// withholdMinFlight is how many full packets are in flight then.
	withholdMinFlight = 4
	// maxRetransmitRatio is how many octets go again for each that went, because they are reported
	// missing, beyond freeRetransmitOctets. T3-rtx, which backs off, has no bound.
	maxRetransmitRatio   = 2
	freeRetransmitOctets = 16 << 10
)

// withheldChunk is of the chunk that is in state withheld or withheld-queued.
type withheldChunk struct {
	isActive         bool
	tsn              wire.TSN
	sendAt           rawio.Time // it goes then, whatever is reported, or Never
	packetsUntilNext int        // packets until the next one, 0: not drawn yet
	drainDeadlineAt  rawio.Time // until when a narrow window may drain, see waitsForNarrowWindow; 0: not now
}

// isChunk reports whether a chunk has never left.
func (w *withheldChunk) isChunk(t wire.TSN) bool { return w.isActive && w.tsn == t }

// markSent notes that it leaves now.
func (w *withheldChunk) markSent() { w.isActive, w.sendAt = false, rawio.Never }

// ObserveProvedRTT takes a round trip that the peer cannot make shorter than it is. The answer has
// a nonce of the question.
func (p *Path) ObserveProvedRTT(rtt time.Duration) {
	p.ObserveRTT(rtt)
	p.BoundProvedRTT(rtt)
}

// BoundProvedRTT bounds the proved round trip by trip. Something that the peer could not have known
// came back within it.
func (p *Path) BoundProvedRTT(trip time.Duration) {
	p.ackedTooSoon = false
	if p.provedRTT == 0 || trip < p.provedRTT {
		p.provedRTT = max(trip, 1)
	}
}

// shouldWithhold reports whether the next new chunk to p, of so many octets, is withheld. A peer
// that has proved to be near is spared: there is no bottleneck of others in between.
func (s *Sender) shouldWithhold(p *Path, size int) bool {
	w := &s.withheld
	if !s.mayWithhold(p) {
		return false
	}
	if s.queue.current.msg.Policy != AbandonNever {
		return false // it may not come to be sent again
	}
	room, every := s.hasRoomForTwo(p, size), uint32(withholdEveryPackets)
	switch {
	case s.hasNarrowWindow(p):
		if every = withholdEveryNarrow; !s.windowHoldsTwo(size) || !s.moreFollows(size) {
			return false
		}
		if w.packetsUntilNext > withholdEveryNarrow {
			w.packetsUntilNext = 1 + int(s.cfg.Rand()%withholdEveryNarrow)
		}
	case p.flight.octets < withholdMinFlight*p.pmdcs || !room:
		return false
	}
	if w.packetsUntilNext == 0 {
		w.packetsUntilNext = 1 + int(s.cfg.Rand()%firstWithholdPackets)
	}
	if w.packetsUntilNext > 1 || !room {
		w.packetsUntilNext = max(w.packetsUntilNext-1, 1)
		return false
	}
	w.packetsUntilNext = 1 + int(s.cfg.Rand()%every)
	return true
}

// mayWithhold reports whether anything may be withheld from p now.
func (s *Sender) mayWithhold(p *Path) bool {
	return s.cfg.Rand != nil && !s.cfg.StrictRFC && !s.withheld.isActive && !s.window.probing && !s.recovery.active &&
		p.isUsable() && (p.provedRTT == 0 || p.provedRTT >= nearRTT)
}

// isWithin reports whether the chunk is among the TSNs from one to another. A peer that
// acknowledges these lies.
func (w *withheldChunk) isWithin(from, to wire.TSN) bool {
	return w.isActive && from.LessEq(w.tsn) && w.tsn.LessEq(to)
}

// withholdChunk gives the next size octets of the slot a TSN, and no packet.
func (s *Sender) withholdChunk(now rawio.Time, p *Path, size int) {
	w := &s.withheld
	w.isActive, w.tsn, w.sendAt = true, s.outstanding.nextTSN, now.Add(max(2*p.rttEst.srtt, minPTO))
	timing := p.timing.active
	t, r := s.takeNextChunk(now, p, size)
	p.timing.active = timing // another measures the round trip
	s.recordChunkSent(now, onWithhold, t, r, p)
}

// queueWithheld queues the withheld chunk to be sent: the peer has reported nothing.
func (s *Sender) queueWithheld() {
	w := &s.withheld
	w.sendAt = rawio.Never
	if r := s.outstanding.recordOf(w.tsn); r.state == stateWithheld {
		p := s.paths[r.path]
		s.outstanding.markLost(w.tsn, r, p)
		s.updateTimers(p)
	}
}

// recordWithheldSent notes that what was withheld goes now. It counts as sent since it was
// withheld.
func (s *Sender) recordWithheldSent(r *chunkRecord) {
	s.withheld.markSent()
	s.stats.Chunks--
	s.stats.Octets -= uint64(r.size)
}

// overRetransmitBudget reports whether so much went again that reports of losses are not believed
// any more.
func (s *Sender) overRetransmitBudget() bool {
	went := s.stats.Octets - s.stats.retransmittedOctets
	return !s.cfg.StrictRFC && s.stats.retransmittedOctets > maxRetransmitRatio*went+freeRetransmitOctets
}
