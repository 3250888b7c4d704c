package tx

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// RACK-TLP (RFC 8985), over the paths whose packets are spread. RACK: a chunk that was sent before one that has arrived is lost once a
// round trip and a little more have passed since, also when it was sent again. TLP: where nothing is heard for longer than round
// trips take, the last chunk in flight is sent again, so that its SACK tells what is missing long before T3-rtx.
const (
	// rackTick is how long the timer of RACK rests at least, and rackMost how many chunks it looks at.
	rackTick = time.Millisecond
	rackMost = atOnce
	// leastPTO keeps a probe from going out because a timer was late.
	leastPTO = 10 * time.Millisecond
)

// far reports whether p takes long enough for pacing, RACK and TLP: timers are finer than its round trip. By the letter of
// RFC 9260 Max.Burst, miss indications and T3-rtx are all there is.
func (s *Sender) far(p *Path) bool {
	return !s.cfg.Letter && p.Far()
}

// left returns how much of its patience a ripe chunk still has, if one that was sent later to the same path has arrived: paths differ in
// their round trips. What was acknowledged and taken back since is left to
// miss indications: nobody knows when it was in flight.
func (s *Sender) left(now rawio.Time, t wire.TSN, r *record) (left time.Duration, known bool) {
	p := s.paths[r.path]
	if !p.latest.after(r.stamp, t) || !s.far(p) || s.overspent() || r.state == back {
		return 0, false
	}
	return p.patience() - time.Duration(stamp(now)-r.stamp)*time.Microsecond, true
}

// armRACK starts the timer for the first of what is ripe.
func (s *Sender) armRACK(now rawio.Time) {
	s.rackAt = rawio.Never
	if t, ok := s.ledger.ripe.Next(s.ledger.base, s.ledger.len()); ok {
		if left, known := s.left(now, t, s.ledger.rec(t)); known {
			s.rackAt = now.Add(max(left, rackTick))
		}
	}
}

// timeoutRACK marks what has been missing for too long.
func (s *Sender) timeoutRACK(now rawio.Time) {
	var lost PathSet
	g, next := &s.ledger, rawio.Never
	t, ok := g.ripe.Next(g.base, g.len())
	for n := 0; ok && n < rackMost; n++ {
		*s.steps++
		r := g.rec(t)
		switch left, known := s.left(now, t, r); {
		case !known:
		case left <= 0:
			s.lost(now, t, r, &lost)
		default:
			next = min(next, now.Add(max(left, rackTick)))
		}
		t, ok = g.after(&g.ripe, t)
	}
	if s.rackAt = next; ok {
		s.rackAt = min(next, now.Add(rackTick))
	}
	s.lose(now, lost)
	for _, p := range s.paths {
		s.settleTimers(p)
	}
}

// armPTO starts the timer of the tail-loss probe: DATA was sent to p, or, anew, some was acknowledged (RFC 8985 section 7.2). What is sent to a silent
// path does not put it off. There is one probe at a time, and then T3-rtx, until a round trip has been measured again (section 7.3), as it may have become
// longer; none while one packet is all that may be in flight. In Fast Recovery there is one too, as by RFC 9002: what was sent again may be lost again, and
// nothing behind it would tell.
func (s *Sender) armPTO(now rawio.Time, p *Path, anew bool) {
	if p.doubt.trust == suspected {
		return // see moveOverdue
	}
	far, several := s.far(p), p.Asks && len(s.paths) > 1
	near := several && !s.cfg.Letter && p.within(nearTrip)
	if p.flight == 0 || s.tail.out || s.probing || p.single || p.unmeasured || !far && !near {
		p.pto = rawio.Never
		return
	}
	pto, from := p.est.overdue(), p.lastSent
	if several {
		pto, from = p.silence(), now
	}
	if near {
		pto = max(pto, leastT3)
	}
	if s.lone(p) {
		pto += p.waits.longest()
	}
	if at := max(from.Add(pto), now.Add(max(p.est.srtt/2, leastPTO))); anew || at < p.pto {
		p.pto = at
	}
}

// overdue is how long the SACK for DATA takes at most, but for chance: PTO. RFC 8985 section 7.2 has two round trips, for those that vary. RFC 9002 section 6.2.1
// counts how much they do; where that is little a probe can go sooner, but a quarter of a round trip is allowed for in any case.
func (e *estimator) overdue() time.Duration {
	return max(e.srtt+min(max(4*e.rttvar, e.srtt/4), e.srtt), leastPTO)
}

// silence is how long one has to last for a probe where a path may be left: two round trips, or longer where they vary, as behind a spike.
func (p *Path) silence() time.Duration {
	return max(2*p.est.srtt, p.est.srtt+4*p.est.rttvar, leastPTO)
}

// lone reports whether all that is in flight to p is one packet, whose SACK may be delayed.
func (s *Sender) lone(p *Path) bool {
	return p.flight <= p.pmdcs && stamp(p.lastSent) == s.ledger.rec(p.first).stamp
}

// tail is the tail-loss probe.
type tail struct {
	tsn     wire.TSN
	due     bool  // it goes whatever cwnd is; over the same path it is marked
	out     bool  // it has been sent, or is about to be, and is not acknowledged
	twin    bool  // the SACK in processing lists it as duplicate
	repairs bool  // it has repaired a loss
	over    *Path // it was about this one, and is answered by the SACK in processing

	via         *Path  // the other path that a copy takes, or nil
	first, sent uint32 // then: stamps of the chunk and of its copy

	lone   *Path         // else, if it was about a lone packet, where that went,
	after  time.Duration // and how long before the probe
	long   bool          // with via: the chunk was in a packet longer than Path.Least
	beside bool          // and more than the chunk was in flight
}

// timeoutPTO sends a probe: the earliest chunk in flight to p, for which the peer waits, over another path if there is one; else the last.
func (s *Sender) timeoutPTO(now rawio.Time, p *Path) {
	if p.doubt.trust == suspected {
		s.moveOverdue(now, p)
		return
	}
	p.pto = rawio.Never
	if s.tail.out || p.flight == 0 {
		return
	}
	if q := s.other(p); q != nil && !q.waitsToBeCut(now, s.ledger.rec(p.first)) {
		r := s.ledger.rec(p.first)
		s.tail = tail{tsn: p.first, due: true, out: true, via: q, first: r.stamp, beside: p.flight > r.chunkLen()}
		s.rare().TailProbes++
		return
	}
	if s.ledger.nmarked > 0 {
		return
	}
	n := min(s.ledger.len(), p.inflight.Cap()) // what is in flight is among so many
	t, _ := p.inflight.Last(s.ledger.base+wire.TSN(n)-1, n)
	r := s.ledger.rec(t)
	if p.waitsToBeCut(now, r) {
		return // T3-rtx comes no later
	}
	s.tail = tail{tsn: t, due: true, out: r.state != withheld}
	if s.lone(p) {
		s.tail.lone, s.tail.after = p, now.Sub(p.lastSent)
	}
	p.unmeasured = true
	s.ledger.mark(t, r, p)
	r.flags |= fast
	s.urgent = true
	s.rare().TailProbes++
	s.settleTimers(p)
}

// heardTail takes that the chunk of the probe is acknowledged. If that answers the probe and not what was sent before, and the peer has
// not had it twice, the probe has repaired a loss (section 7.4).
func (s *Sender) heardTail(now rawio.Time, t wire.TSN, r *record, p *Path) {
	if !s.tail.out || t != s.tail.tsn {
		return
	}
	by, at, went := p, r.stamp, r.flags&resent != 0
	if q := s.tail.via; q != nil {
		by, at, went = q, s.tail.sent, !s.tail.due
	}
	s.tail.out, s.tail.due = false, false
	if went && stamp(now)-at >= uint32(by.est.trip.get().Microseconds()) {
		s.tail.over, s.tail.repairs = p, !s.tail.twin
	}
}

// repaired is the reaction to a loss that nobody saw, which is that to any other, and to a path that is silent although another answers: it is left.
func (s *Sender) repaired(now rawio.Time, res *Result) {
	p := s.tail.over
	s.tail.over = nil
	switch {
	case p == nil:
	case s.tail.via != nil && s.silent(now, p):
		if s.tail.repairs {
			s.suspect(s.tail.tsn, p)
		}
		if s.tail.long {
			p.holes++
		}
		s.leave(now, p)
		res.Suspected.add(p.Index())
	case s.tail.repairs && !s.recovery:
		s.reduce(now, p)
	}
}
