package tx

import (
	"github.com/rddp-go/rddp/sctp/wire"
)

// again holds chunks that were sent again, in the order of that: a FIFO in a slice. One that was sent once more,
// or acknowledged for good, is in it for nothing.
type again struct {
	v    []sentAt
	head int
}

// sentAt is one transmission.
type sentAt struct {
	tsn   wire.TSN
	stamp uint32
}

// leastAgain is how many transmissions there is room for at least, once there was one.
const leastAgain = 64

// push adds a transmission. Before it takes more memory it drops what is there for nothing.
func (a *again) push(g *ledger, t wire.TSN, stamp uint32) {
	if len(a.v) == cap(a.v) {
		kept := a.v[:0]
		for _, e := range a.v[a.head:] {
			if g.live(e) {
				kept = append(kept, e)
			}
		}
		a.v, a.head = kept, 0
		if n := len(kept); n == 0 || n > cap(kept)/2 {
			a.v = append(make([]sentAt, 0, max(2*n, leastAgain)), kept...)
		}
	}
	a.v = append(a.v, sentAt{t, stamp})
}

// live says whether a transmission is the last one of a chunk that is still outstanding.
func (g *ledger) live(e sentAt) bool {
	if uint32(e.tsn-g.base) >= uint32(g.next-g.base) {
		return false
	}
	return g.rec(e.tsn).stamp == e.stamp
}

// ripen finds the chunks that were sent before one that has arrived since the last time (sentEarlier). Those in
// flight take miss indications from now on, unless they were fast-retransmitted. Each transmission is looked at once,
// so that a SACK does not have to go through all that is outstanding. It says whether it came to the end.
func (s *Sender) ripen() (all bool) {
	g := &s.ledger
	if g.ripeTo.Less(g.base) {
		g.ripeTo = g.base
	}
	for ; g.ripeTo != g.next; g.ripeTo++ {
		if s.spent() {
			return false
		}
		*s.steps++
		r := g.rec(g.ripeTo)
		if r.flags&resent != 0 {
			continue // in its turn
		}
		if !s.sentEarlier(g.ripeTo, r) {
			break
		}
		s.overtaken(g.ripeTo, r)
	}
	for a := &s.ledger.again; a.head < len(a.v); a.head++ {
		if s.spent() {
			return false
		}
		*s.steps++
		e := a.v[a.head]
		if !g.live(e) {
			continue
		}
		r := g.rec(e.tsn)
		if !s.sentEarlier(e.tsn, r) {
			return true
		}
		s.overtaken(e.tsn, r)
	}
	s.ledger.again.empty()
	return true
}

// overtaken has a chunk that was sent before one that has arrived take miss indications, if it is in flight. By the letter one that was
// fast-retransmitted takes none.
func (s *Sender) overtaken(t wire.TSN, r *record) {
	if r.flags&fast == 0 || !s.cfg.Letter {
		s.ledger.overtaken(t, r)
	}
}

// empty forgets everything, and gives back what was much.
func (a *again) empty() {
	if a.v, a.head = a.v[:0], 0; cap(a.v) > 16*leastAgain {
		a.v = nil
	}
}
