package tx

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// T3-rtx may expire because packets are late and not lost, as behind a handover. What it has marked arrives nevertheless, and SACKs show it, in the spirit of
// F-RTO (RFC 5682) and Eifel (RFC 3522): a chunk is acknowledged that did not go again, or went less than half the shortest round trip ago. That is the
// shortest of all, and half of it, as the path has become empty: after a silence a round trip may well be shorter than any for long. It is taken for a false alarm when two SACKs, one
// after the other, show that and the earliest chunk, which goes again first, is acknowledged: one may stand for others that were lost. And at once when
// the earliest is such a chunk, or has come twice. Then what is still marked is in flight again, as of now, and the reduction is taken back.
//
// A peer that lies about it has had to be silent until T3-rtx expired, and gains the window of before.

// alarm is the last expiry of T3-rtx of a path.
type alarm struct {
	on        bool     // it may have been a false one
	shown     bool     // the SACK in processing shows it
	sure      bool     // and of the earliest chunk
	next, end wire.TSN // what is marked from one to before the other is to be in flight again
	first     wire.TSN // the earliest that was in flight
	sacks     int      // so many SACKs have shown it, one after another
}

// raise takes that T3-rtx has expired for what is in flight from p.markFrom on.
func (s *Sender) raise(p *Path) {
	p.alarm = alarm{on: !s.cfg.Letter, first: p.markFrom}
	p.disorder.undo = false
}

// cameLate takes the acknowledgement of a chunk that went to p: whether it is of its first transmission.
func (s *Sender) cameLate(now rawio.Time, t wire.TSN, r *record, p *Path) {
	a := &p.alarm
	if r.flags&timeout == 0 {
		return
	}
	first := false
	switch r.state {
	case marked:
		first = r.flags&vague == 0
	case sent:
		first = r.spare == 1 && stamp(now)-r.stamp < p.est.least/2
	}
	a.shown = a.shown || first
	a.sure = a.sure || first && t == a.first
}

// cameTwice takes that the peer has had a chunk twice, which went again.
func (s *Sender) cameTwice(t wire.TSN, r *record) {
	if a := &s.paths[r.path].alarm; t == a.first && r.spare == 1 {
		a.shown, a.sure = true, true
	}
}

// falseAlarms takes back what T3-rtx has done where the SACK in processing shows that it was early.
func (s *Sender) falseAlarms(now rawio.Time) {
	g := &s.ledger
	for _, p := range s.paths {
		a := &p.alarm
		if !a.on || p.sack.acked == 0 && !a.shown {
			continue
		}
		if a.sacks++; !a.shown || !a.first.Less(g.base) && g.rec(a.first).state != gapped {
			a.sacks = 0
		}
		a.shown = false
		if !a.sure && a.sacks < 2 {
			continue
		}
		a.on, a.next, a.end = false, a.first, p.markTo
		s.marking &^= 1 << p.index
		p.cc.Undo(now)
	}
}

// restore puts in flight what false alarms have marked, and says whether it came to the end.
func (s *Sender) restore(now rawio.Time) (all bool) {
	g, at := &s.ledger, stamp(now)
	if v := g.again.v; len(v) > 0 && int32(v[len(v)-1].stamp-at) > 0 {
		at = v[len(v)-1].stamp // something has gone since the SACK came
	}
	for _, p := range s.paths {
		a := &p.alarm
		if a.next == a.end {
			continue
		}
		if a.next.Less(g.base) {
			a.next = g.base
		}
		for {
			t, ok := g.marked.Next(a.next, int(int32(a.end-a.next)))
			if !ok {
				break
			}
			if a.next = t; s.spent() {
				return false
			}
			*s.steps++
			if r := g.rec(t); r.state == marked && r.flags&timeout != 0 && r.path == p.index {
				r.stamp, r.flags = at, r.flags&^timeout|resent // nobody knows any more what is acknowledged
				g.depart(onRestore, t, r, p)
				s.rare().Spurious++
			}
			a.next++
		}
		a.next = a.end
	}
	return true
}
