package tx

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// pathTimers are the timers of a path.
type pathTimers struct {
	t3At             rawio.Time    // when T3-rtx expires, or Never
	ptoAt            rawio.Time    // when the tail-loss probe is due, or Never
	early            earlyTimeouts // of T3-rtx
	markFrom, markTo wire.TSN      // what T3-rtx, which is processed in parts, has yet to mark
}

// stop stops them.
func (m *pathTimers) stop() { m.t3At, m.ptoAt = rawio.Never, rawio.Never }

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
	if s.partial() != nil {
		if p, is := s.handleForwardTimeout(now); is {
			expired.add(p.Index())
		}
	}
	for _, p := range s.paths {
		if now.Before(p.timers.t3At) {
			if !now.Before(p.timers.ptoAt) {
				s.handlePTO(now, p)
			}
			continue
		}
		p.timers.stop()
		p.cwndFull, s.tailProbe, p.idleSince = sendOrder{}, tailProbe{}, now
		soon := now.Before(p.timers.early.rtoAt)
		if p.timers.early.expiries = min(p.timers.early.expiries+1, mostEarly); !soon {
			p.timers.early.expiries = 0
			p.rttEst.doubleRTO() // E2
		}
		p.timers.markFrom, p.timers.markTo = p.flight.first, s.outstanding.nextTSN
		s.startSpuriousCheck(p)
		if p.rateSampler != nil && !s.window.probing {
			p.rateSampler.onTimeout(now, s.outstanding.nextTSN)
		}
		suspect := s.markLostOnTimeout(now, p)
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
func (s *Sender) markLostOnTimeout(now rawio.Time, p *Path) (suspect bool) {
	g := &s.outstanding
	from := p.timers.markFrom
	if from.Less(g.firstUnacked) {
		from = g.firstUnacked
	}
	flight := s.work.walk(&p.flight.tsns, from, p.timers.markTo)
	for flight.next() {
		t, r := flight.tsn, g.recordOf(flight.tsn)
		if p.rateSampler != nil && !s.window.probing {
			s.rateLost(p.rateSampler.timeoutAt, t, r, p)
		}
		suspect = suspect || r.flags&flagLongPacket != 0
		r.flags |= flagTimedOut
		s.markLost(now, t, r, p) // no more in flight
	}
	if s.recovery.pathsToMark &^= 1 << p.index; flight.cut {
		p.timers.markFrom = flight.tsn
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
	if g.extras != nil {
		g.extraOf(t).resent--
	}
	g.markLost(t, g.recordOf(t), p)
	if p.timing.active && p.timing.tsn == t {
		p.timing.active = false
	}
	s.updateTimers(p)
}

// updateTimers finds what is the first in flight to p, when some of it has been marked.
func (s *Sender) updateTimers(p *Path) {
	if p.flight.octets == 0 {
		p.timers.stop()
	} else {
		s.updateFirstInFlight(p)
	}
}

// restartTimers applies rules R2, R3 and R4 of section 6.3.2.
func (s *Sender) restartTimers(now rawio.Time) {
	for _, p := range s.paths {
		switch {
		case p.flight.octets == 0:
			p.timers.stop()
			continue
		case p.sack.ackedFirst || p.timers.t3At == rawio.Never:
			s.startT3(now, p)
		}
		s.updateFirstInFlight(p)
		s.armPTO(now, p, p.sack.ackedOctets > 0)
	}
}

// updateFirstInFlight moves p.flight.first on to the earliest TSN that is still in flight to p.
func (s *Sender) updateFirstInFlight(p *Path) {
	*s.work.steps++
	p.flight.first, _ = p.flight.tsns.Next(s.outstanding.firstUnacked, s.outstanding.len())
}

// FailedMessage is a message that will not be acknowledged because the association has ended.
type FailedMessage struct {
	Stream wire.StreamID
	Token  uint64
	Sent   bool // at least a part of it was sent
	Pulled bool // it came from the Source, not through Enqueue
	Policy AbandonPolicy
}

// Stop says that the association has ended. Nothing is sent any more, and NextFailed says what was
// not acknowledged.
func (s *Sender) Stop() {
	s.sack, s.recovery.pathsToMark = sackInProgress{}, 0
	for _, p := range s.paths {
		p.timers.stop()
	}
	s.SetScheduler(nil) // what is left fails in the order in which it came
	for len(s.queue.holds()) > 0 {
		s.Release(s.queue.holds()[0].id)
	}
	if s.partial() != nil {
		s.partial().forward.due, s.partial().forward.againAt = false, rawio.Never
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
			return FailedMessage{Stream: r.stream, Token: r.token, Sent: true, Pulled: r.flags&flagEnqueued == 0}, true
		}
	}
	return s.queue.failNext()
}
