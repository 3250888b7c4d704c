package tx

import (
	"fmt"
	"unsafe"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Audit recounts from the records and sets everything that the Sender keeps count of, and says what does not
// agree: flight sizes (RFC 9260 section 7.2), the earliest TSN and the timer of each path, marked and gap-acknowledged
// TSNs, and what Enqueue has taken. It costs a walk over all that is outstanding or queued, and is for simulators
// and tests.
func (s *Sender) Audit() error {
	g := &s.ring
	flying := func(p *Path, t wire.TSN) bool {
		return uint32(t-g.base) < uint32(p.inflight.Cap()) && p.inflight.Has(t)
	}
	var flight [MaxPaths]int
	var first [MaxPaths]wire.TSN
	total, data, marked, gapped, owed, held := 0, 0, 0, 0, 0, 0
	for t := g.base; t != g.next; t++ {
		r := g.rec(t)
		in, mark, gap := flying(s.paths[r.path], t), g.marked.Has(t), g.gapped.Has(t)
		for _, p := range s.paths {
			if p.index != int(r.path) && flying(p, t) {
				return fmt.Errorf("TSN %d is in flight to path %d and to path %d", t, r.path, p.index)
			}
		}
		if g.owed.Has(t) {
			owed++
		}
		// A chunk that was sent again is found in the order of sending, which time alone does not tell.
		ago := int32(s.latest.stamp - r.stamp)
		late := in && (r.state&fast == 0 || !s.cfg.Letter) && s.latest.after(r.stamp, t)
		switch {
		case in == mark && in == gap, in && mark, in && gap, mark && gap:
			return fmt.Errorf("TSN %d: in flight %v, marked %v, gap-acknowledged %v", t, in, mark, gap)
		case gap && (g.paid.Has(t) || g.owed.Has(t)), !gap && g.paid.Has(t) == g.owed.Has(t):
			return fmt.Errorf("TSN %d: gap-acknowledged %v, paid %v, owed %v", t, gap, g.paid.Has(t), g.owed.Has(t))
		case r.state&(resent|copied) == 0 && r.spare > 0:
			return fmt.Errorf("TSN %d: sent once, and %d times again", t, r.spare)
		case g.ripe.Has(t) && !late, late && (r.state&resent == 0 || ago > 0) && !g.ripe.Has(t) && !s.later.on:
			return fmt.Errorf("TSN %d: ripe %v", t, g.ripe.Has(t))
		case in:
			if flight[r.path] == 0 {
				first[r.path] = t
			}
			flight[r.path] += r.chunkLen()
			total += r.chunkLen()
			data += int(r.size)
		case mark:
			marked++
		default:
			gapped++
		}
		if r.state&queued != 0 {
			held += int(r.size)
		}
	}
	for i, p := range s.paths {
		if p.flight != flight[i] || p.flight > 0 && p.first != first[i] || (p.flight > 0) != (p.t3 != rawio.Never) && !s.marking.Has(i) {
			return fmt.Errorf("path %d: flight %d, first %d, T3 %d; counted are %d and %d", i, p.flight, p.first, p.t3, flight[i], first[i])
		}
	}
	if s.flight != total || s.data != data || g.nmarked != marked || g.ngapped != gapped || g.nowed != owed {
		return fmt.Errorf("flight %d, data %d, marked %d, gap-acknowledged %d, owed %d; counted are %d, %d, %d, %d, %d",
			s.flight, s.data, g.nmarked, g.ngapped, g.nowed, total, data, marked, gapped, owed)
	}
	if s.urgent && (!s.recovery && !s.tail.due || marked == 0) {
		return fmt.Errorf("a packet is urgent in Fast Recovery: %v, with %d marked", s.recovery, marked)
	}
	if g.len() > maxOutstanding {
		return fmt.Errorf("%d TSNs outstanding", g.len())
	}
	octets := len(g.recs) * int(unsafe.Sizeof(record{}))
	for _, set := range g.sets() {
		octets += set.Held()
	}
	if octets != g.octets {
		return fmt.Errorf("%d octets of records and sets; counted are %d", g.octets, octets)
	}
	return s.auditQueue(held)
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
	if s.unsent != unsent || s.held != held || s.held > s.cfg.SendBuffer {
		return fmt.Errorf("%d octets unsent, %d held of %d; counted are %d and %d", s.unsent, s.held, s.cfg.SendBuffer, unsent, held)
	}
	return nil
}

// Tell returns all that the Sender counts and has measured, for tests that compare it with what it was.
func (s *Sender) Tell() string {
	r, b := &s.ring, []byte(nil)
	b = fmt.Append(b, s.stats, s.steps, s.Held(), r.base, r.next, s.flight, s.data, s.rwnd, s.maxRwnd, s.Queued(), s.NextTimeout(),
		s.recovery, s.urgent, s.burst, s.saved, s.acked, s.waits, s.fed, s.more, s.moreAt, s.credit, s.probing, s.probeHeard, s.latest, s.ripeTo,
		s.tail.due, s.tail.out, s.tail.tsn, s.later.on, r.nmarked, r.ngapped, r.nowed)
	for _, p := range s.paths {
		b = fmt.Append(b, " ", p.State, p.mtu, p.est, p.flight, p.cc.Window(), p.cc.Ssthresh(), p.t3, p.pto, p.due, p.lastSent, p.awake,
			p.holes, p.single, p.reduced, p.timing, p.timed, p.timedAt, p.latest, p.doubt)
	}
	for t := r.base; t != r.next; t++ {
		c := r.rec(t)
		b = append(b, c.state, c.misses, c.spare, c.path)
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
	g := &s.ring
	return Inside{Arrived: g.gapped.Has(t), Owed: g.owed.Has(t), Misses: int(g.rec(t).misses)}
}
