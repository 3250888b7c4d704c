package tx

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// HandleTimeout handles the T3-rtx timers that have expired (section 6.3.3). It backs off, shrinks
// cwnd, and marks what was in flight there for retransmission. It returns the paths whose error
// counter is to be raised, and with each the association's: not those where it was early. The
// retransmission itself goes out with the next Poll. So the owner first decides which paths are
// active.
func (s *Sender) HandleTimeout(now rawio.Time) PathSet {
	var expired PathSet
	s.forgetOldStamps(now)
	s.work.startSlice(s.outstanding.len())
	if !now.Before(s.recovery.rackAt) {
		s.handleRACKTimeout(now)
	}
	if !now.Before(s.withheld.sendAt) {
		s.queueWithheld()
	}
	for _, p := range s.paths {
		if now.Before(p.t3At) {
			if !now.Before(p.ptoAt) {
				s.handlePTO(now, p)
			}
			continue
		}
		p.t3At, p.ptoAt, p.cwndFull, s.tailProbe = rawio.Never, rawio.Never, sendOrder{}, tailProbe{}
		p.idleSince = now
		soon := now.Before(p.earlyT3.rtoAt)
		if p.earlyT3.expiries = min(p.earlyT3.expiries+1, mostEarly); !soon {
			p.earlyT3.expiries = 0
			p.rttEst.doubleRTO() // E2
		}
		p.timeoutMarkFrom, p.timeoutMarkTo = p.firstInFlight, s.outstanding.nextTSN
		s.startSpuriousCheck(p)
		if p.rateSampler != nil && !s.window.probing {
			p.rateSampler.onTimeout(now, s.outstanding.nextTSN)
		}
		suspect := s.markLostOnTimeout(p)
		s.sack.lostPaths = 0 // there is no Fast Recovery to begin for what is marked already
		s.stats.rare().Timeouts++
		if s.window.probing {
			// A probe says nothing about congestion, nor about failure while the peer answers
			// (section 6.1, A).
			if !s.window.probeAnswered && !soon {
				expired.add(p.Index())
			}
			continue
		}
		if !soon {
			expired.add(p.Index())
		}
		if suspect && !soon {
			p.blackHoleTimeouts++
		}
		if !p.onePacketOnly || s.cfg.StrictRFC { // once for what is lost (RFC 5681 section 3.1)
			p.cc.OnTimeout(now) // E1
		}
		p.tsnsSentAtReduction = s.SentTSNs()
		p.onePacketOnly = true
		s.recovery.active, s.recovery.bypassCwnd = false, false
	}
	return expired
}

// markLostOnTimeout marks what was in flight to p when T3-rtx expired for retransmission, or a part
// of it, see HasMoreWork. It reports whether some of that was in packets longer than BasePMTU.
func (s *Sender) markLostOnTimeout(p *Path) (suspect bool) {
	g := &s.outstanding
	from := p.timeoutMarkFrom
	if from.Less(g.firstUnacked) {
		from = g.firstUnacked
	}
	flight := s.work.walk(&p.inFlightTSNs, from, p.timeoutMarkTo)
	for flight.next() {
		t, r := flight.tsn, g.recordOf(flight.tsn)
		if p.rateSampler != nil && !s.window.probing {
			s.rateLost(p.rateSampler.timeoutAt, t, r, p)
		}
		g.markLost(t, r, p) // no more in flight
		suspect = suspect || r.flags&flagLongPacket != 0
		r.flags |= flagTimedOut
	}
	if s.recovery.pathsToMark &^= 1 << p.index; flight.cut {
		p.timeoutMarkFrom = flight.tsn
		s.recovery.pathsToMark.add(p.Index())
	}
	s.updateTimers(p)
	return suspect
}

// OnSendRefused takes back that a chunk was sent to p: the link has refused its packet. It goes out
// again as if it had not been before, whatever cwnd is. That says nothing of the path.
func (s *Sender) OnSendRefused(p *Path, t wire.TSN) {
	g := &s.outstanding
	if uint32(t-g.firstUnacked) >= uint32(g.len()) || g.recordOf(t).path != p.index || !g.recordOf(t).isIn(inFlight) {
		return
	}
	g.markLost(t, g.recordOf(t), p)
	if p.rttTiming && p.rttTSN == t {
		p.rttTiming = false
	}
	s.updateTimers(p)
}

// updateTimers finds what is the first in flight to p, when some of it has been marked.
func (s *Sender) updateTimers(p *Path) {
	if p.flightSize == 0 {
		p.t3At, p.ptoAt = rawio.Never, rawio.Never
	} else {
		s.updateFirstInFlight(p)
	}
}

// restartTimers applies rules R2, R3 and R4 of section 6.3.2.
func (s *Sender) restartTimers(now rawio.Time) {
	for _, p := range s.paths {
		switch {
		case p.flightSize == 0:
			p.t3At, p.ptoAt = rawio.Never, rawio.Never
			continue
		case p.sack.ackedFirst || p.t3At == rawio.Never:
			s.startT3(now, p)
		}
		s.updateFirstInFlight(p)
		s.armPTO(now, p, p.sack.ackedOctets > 0)
	}
}

// updateFirstInFlight moves p.firstInFlight on to the earliest TSN that is still in flight to p.
func (s *Sender) updateFirstInFlight(p *Path) {
	*s.work.steps++
	p.firstInFlight, _ = p.inFlightTSNs.Next(s.outstanding.firstUnacked, s.outstanding.len())
}

// FailedMessage is a message that will not be acknowledged because the association has ended.
type FailedMessage struct {
	Stream wire.StreamID
	Token  uint64
	Sent   bool // at least a part of it was sent
	Pulled bool // it came from the Source, not through Enqueue
}

// Stop says that the association has ended. Nothing is sent any more, and NextFailed says what was
// not acknowledged.
func (s *Sender) Stop() {
	s.sack, s.recovery.pathsToMark = sackInProgress{}, 0
	for _, p := range s.paths {
		p.t3At, p.ptoAt = rawio.Never, rawio.Never
	}
	s.outstanding.clearFlight(s.paths)
	s.queue.earliestExpiryAt, s.window.probeAt, s.withheld.sendAt = rawio.Never, rawio.Never, rawio.Never
	s.burst.paceAt, s.burst.coalesceEndAt, s.recovery.rackAt = rawio.Never, rawio.Never, rawio.Never
}

// NextFailed takes the oldest message that is not acknowledged out of the sender. Call it after
// Stop.
func (s *Sender) NextFailed() (FailedMessage, bool) {
	for g := &s.outstanding; g.firstUnacked != g.nextTSN; {
		r := g.popFirst()
		r.body = [2][]byte{}
		if r.wireFlags&wire.FlagE != 0 {
			return FailedMessage{r.stream, r.token, true, r.flags&flagEnqueued == 0}, true
		}
	}
	return s.queue.failNext()
}
