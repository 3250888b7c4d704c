package tx

import (
	"cmp"
	"fmt"
	"unsafe"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/tsnset"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Audit recounts from the states of the chunks everything that the Sender keeps count of, and says what does not
// agree: the accounts of the ledger, the order of sending, the timer of each path, and what Enqueue has taken. It costs
// a walk over all that is outstanding or queued, and is for simulators and tests.
func (s *Sender) Audit() error {
	g, held := &s.ledger, 0
	if err := g.audit(s.paths); err != nil {
		return err
	}
	for t := g.base; t != g.next; t++ {
		r := g.rec(t)
		// A chunk that was sent again is found in the order of sending, which time alone does not tell.
		ago := int32(s.latest.stamp - r.stamp)
		late := r.is(inFlight) && (r.flags&fast == 0 || !s.cfg.Letter) && s.latest.after(r.stamp, t)
		switch {
		case r.flags&(resent|copied) == 0 && r.spare > 0:
			return fmt.Errorf("TSN %d: sent once, and %d times again", t, r.spare)
		case g.ripe.Has(t) && !late, late && (r.flags&resent == 0 || ago > 0) && !g.ripe.Has(t) && !s.later.on:
			return fmt.Errorf("TSN %d: ripe %v", t, g.ripe.Has(t))
		case s.withheld.is(t) != (r.state == withheld || r.state == released):
			return fmt.Errorf("TSN %d is %v; TSN %d is withheld: %v", t, r.state, s.withheld.tsn, s.withheld.on)
		}
		if r.flags&queued != 0 {
			held += int(r.size)
		}
	}
	for i, p := range s.paths {
		if (p.flight > 0) != (p.t3 != rawio.Never) && !s.marking.Has(i) {
			return fmt.Errorf("path %d: flight %d, T3 %d", i, p.flight, p.t3)
		}
	}
	if s.urgent && (!s.recovery && !s.tail.due || g.nmarked == 0) {
		return fmt.Errorf("a packet is urgent in Fast Recovery: %v, with %d marked", s.recovery, g.nmarked)
	}
	return s.auditQueue(held)
}

// audit recounts the accounts: flight sizes (RFC 9260 section 7.2), the earliest TSN of each path, and all that has a set.
func (g *ledger) audit(paths []*Path) error {
	var flight [MaxPaths]int
	var first [MaxPaths]wire.TSN
	sum := ledger{}
	for t := g.base; t != g.next; t++ {
		r, in := g.rec(t), accounts(0)
		for i, p := range paths {
			if uint32(t-g.base) < uint32(p.inflight.Cap()) && p.inflight.Has(t) {
				if in |= inFlight; i != int(r.path) {
					return fmt.Errorf("TSN %d is in flight to path %d, and was sent to path %d", t, i, r.path)
				}
			}
		}
		for i, set := range []*tsnset.Set{&g.marked, &g.gapped, &g.paid, &g.owed} {
			if set.Has(t) {
				in |= inQueue << i
			}
		}
		if in != books[r.state] || in == 0 {
			return fmt.Errorf("TSN %d is %v, and in the accounts %05b", t, r.state, in)
		}
		if sum.count(in, 1); in&inFlight != 0 {
			if flight[r.path] == 0 {
				first[r.path] = t
			}
			flight[r.path] += r.chunkLen()
			sum.flight += r.chunkLen()
			sum.data += int(r.size)
		}
	}
	for i, p := range paths {
		if p.flight != flight[i] || p.flight > 0 && p.first != first[i] {
			return fmt.Errorf("path %d: flight %d, first %d; counted are %d and %d", i, p.flight, p.first, flight[i], first[i])
		}
	}
	if g.flight != sum.flight || g.data != sum.data || g.nmarked != sum.nmarked || g.ngapped != sum.ngapped || g.nowed != sum.nowed {
		return fmt.Errorf("flight %d, data %d, marked %d, gap-acknowledged %d, owed %d; counted are %d, %d, %d, %d, %d",
			g.flight, g.data, g.nmarked, g.ngapped, g.nowed, sum.flight, sum.data, sum.nmarked, sum.ngapped, sum.nowed)
	}
	octets := 0
	if len(g.recs) > len(g.own) {
		octets = len(g.recs) * int(unsafe.Sizeof(record{}))
	}
	for _, set := range g.sets() {
		octets += set.Held()
	}
	if g.len() > maxOutstanding || octets != g.octets {
		return fmt.Errorf("%d TSNs outstanding, %d octets of records and sets; counted are %d", g.len(), octets, g.octets)
	}
	return nil
}

// auditQueue adds what waits to be sent to the octets of Enqueue that are outstanding.
func (s *Sender) auditQueue(held int) error {
	unsent := 0
	for i := range s.queue.n {
		unsent += s.queue.at(i).Len()
	}
	held += unsent
	if s.slot.full && s.slot.queued {
		held += s.slot.msg.Len() - s.slot.off
	}
	if most := cmp.Or(s.cfg.SendBuffer, MaxBuffer); s.unsent != unsent || s.held != held || s.held > most {
		return fmt.Errorf("%d octets unsent, %d held of %d; counted are %d and %d", s.unsent, s.held, most, unsent, held)
	}
	return nil
}

// Tell returns all that the Sender counts and has measured, for tests that compare it with what it was.
func (s *Sender) Tell() string {
	g, b := &s.ledger, []byte(nil)
	b = fmt.Append(b, s.Stats(), *s.steps, g.base, g.next, g.flight, g.data, g.rwnd, s.maxRwnd, s.Queued(), s.NextTimeout(),
		s.recovery, s.urgent, s.burst, s.saved, s.acked, s.waits, s.fed, s.more, s.moreAt, s.credit, s.probing, s.probeHeard, s.shortening, s.latest, g.ripeTo,
		s.tail.due, s.tail.out, s.tail.tsn, s.later.on, g.nmarked, g.ngapped, g.nowed)
	for _, p := range s.paths {
		b = fmt.Append(b, " ", p.State, p.mtu, p.est, p.flight, p.cc.Window(), p.cc.Ssthresh(), p.t3, p.pto, p.due, p.lastSent, p.awake,
			p.holes, p.single, p.reduced, p.timing, p.timed, p.timedAt, p.latest, p.doubt,
			p.patience(), p.waits.longest(), p.debt, p.early.n, p.BlackHole(), p.Vague())
		if c := p.rates; c != nil {
			b = fmt.Append(b, c.delivered, c.lost, c.limited)
		}
	}
	for t := g.base; t != g.next; t++ {
		c := g.rec(t)
		b = append(b, c.flags, c.misses, c.spare, c.path)
	}
	return string(b)
}

// Inside is what a model of the Sender compares beside all that others see: of one TSN that is outstanding.
type Inside struct {
	Arrived bool // a gap block has named it
	Owed    bool // SACKs have not paid yet for its being looked at
	Misses  int
}

// Inside is for tests.
func (s *Sender) Inside(t wire.TSN) Inside {
	r := s.ledger.rec(t)
	return Inside{Arrived: r.state == gapped, Owed: r.is(inOwed), Misses: int(r.misses)}
}
