package tx

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// HandleTimeout handles the T3-rtx timers that have expired (section 6.3.3): back off, shrink cwnd,
// mark what was in flight there for retransmission. It returns the paths whose error counter is to
// be raised, and with each the association's: not those where it was early. The retransmission itself goes out with the next Poll,
// so that the owner first has its say about which paths are active.
func (s *Sender) HandleTimeout(now rawio.Time) PathSet {
	var expired PathSet
	s.forget(now)
	s.slice()
	if !now.Before(s.rackAt) {
		s.timeoutRACK(now)
	}
	if !now.Before(s.withheld.until) {
		s.withheldLong()
	}
	for _, p := range s.paths {
		if now.Before(p.t3) {
			if !now.Before(p.pto) {
				s.timeoutPTO(now, p)
			}
			continue
		}
		p.t3, p.pto, p.full, s.tail = rawio.Never, rawio.Never, sending{}, tail{}
		p.awake = now
		soon := now.Before(p.early.ends)
		if p.early.n = min(p.early.n+1, mostEarly); !soon {
			p.early.n = 0
			p.est.backoff() // E2
		}
		p.markFrom, p.markTo = p.first, s.ledger.next
		s.raise(p)
		if p.rates != nil && !s.probing {
			p.rates.timeout(now, s.ledger.next)
		}
		suspect := s.markAll(p)
		s.later.lost = 0 // there is no Fast Recovery to begin for what is marked already
		s.rare().Timeouts++
		if s.probing {
			// A probe says nothing about congestion, nor about failure while the peer answers
			// (section 6.1, A).
			if !s.probeHeard && !soon {
				expired.add(p.Index())
			}
			continue
		}
		if !soon {
			expired.add(p.Index())
		}
		if suspect && !soon {
			p.holes++
		}
		if !p.single || s.cfg.Letter { // once for what is lost (RFC 5681 section 3.1)
			p.cc.OnTimeout(now) // E1
		}
		p.reduced = s.Fresh()
		p.single = true
		s.recovery, s.urgent = false, false
	}
	return expired
}

// markAll marks what was in flight to p when T3-rtx expired for retransmission, or a part of it, see More, and reports whether
// some of that was in packets longer than Least.
func (s *Sender) markAll(p *Path) (suspect bool) {
	g := &s.ledger
	from := p.markFrom
	if from.Less(g.base) {
		from = g.base
	}
	t, ok := p.inflight.Next(from, int(int32(p.markTo-from)))
	for ; ok && !s.spent(); t, ok = p.inflight.Next(t, int(uint32(p.markTo-t))) {
		*s.steps++
		r := g.rec(t)
		if p.rates != nil && !s.probing {
			s.rateLost(p.rates.at, t, r, p)
		}
		g.mark(t, r, p) // no more in flight
		suspect = suspect || r.flags&large != 0
		r.flags |= timeout
	}
	if s.marking &^= 1 << p.index; ok {
		p.markFrom = t
		s.marking.add(p.Index())
	}
	s.settleTimers(p)
	return suspect
}

// Refused takes back that a chunk was sent to p: the link has refused its packet. It goes out again as if it had not been
// before, whatever cwnd is; that says nothing of the path.
func (s *Sender) Refused(p *Path, t wire.TSN) {
	g := &s.ledger
	if uint32(t-g.base) >= uint32(g.len()) || g.rec(t).path != p.index || !g.rec(t).is(inFlight) {
		return
	}
	g.mark(t, g.rec(t), p)
	if p.timing && p.timed == t {
		p.timing = false
	}
	s.settleTimers(p)
}

// settleTimers finds what is the first in flight to p, when some of it has been marked.
func (s *Sender) settleTimers(p *Path) {
	if p.flight == 0 {
		p.t3, p.pto = rawio.Never, rawio.Never
	} else {
		s.findFirst(p)
	}
}

// Failed is a message that will not be acknowledged because the association has ended.
type Failed struct {
	Stream wire.StreamID
	Token  uint64
	Sent   bool // at least a part of it was sent
	Pulled bool // it came from the Source, not through Enqueue
}

// Stop says that the association has ended: nothing is sent any more, and NextFailed says what was not acknowledged.
func (s *Sender) Stop() {
	s.later, s.marking = later{}, 0
	for _, p := range s.paths {
		p.t3, p.pto = rawio.Never, rawio.Never
	}
	s.ledger.abandon(s.paths)
	s.probeAt, s.paceAt, s.moreAt, s.rackAt, s.expiry = rawio.Never, rawio.Never, rawio.Never, rawio.Never, rawio.Never
	s.withheld.until = rawio.Never
}

// NextFailed takes the oldest message that is not acknowledged out of the sender. Call it after Stop.
func (s *Sender) NextFailed() (Failed, bool) {
	for g := &s.ledger; g.base != g.next; {
		r := g.pop()
		r.body = [2][]byte{}
		if r.wire&wire.FlagE != 0 {
			return Failed{r.stream, r.token, true, r.flags&queued == 0}, true
		}
	}
	if s.queue.n > 0 {
		s.load(0, s.MaxPayload())
	}
	if l := &s.slot; l.full {
		f := Failed{l.msg.Stream, l.msg.Token, l.off > 0, !l.queued}
		*l = slot{}
		return f, true
	}
	s.held, s.unsent = 0, 0
	return Failed{}, false
}
