package tx

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// What has become too long for a path. A chunk that has its TSN stays as it is, so that behind a fall of the path MTU it takes IP fragments (RFC 9260
// section 6.9). Not every link makes them of every packet: see Path.CutFrom.

// mostCut bounds the packet that is made long enough to be cut, in octets: an IP packet has 65535.
const mostCut = 60 << 10

// fits reports whether a chunk can leave for p by itself: whole, or in fragments as the link makes them of anything.
func (p *Path) fits(r *record) bool { return r.chunkLen() <= p.pmdcs || p.CutFrom == 0 }

// waitsToBeCut reports whether a chunk that does not fit waits, since another has gone to p in such a packet less than an RTO ago.
func (p *Path) waitsToBeCut(now rawio.Time, r *record) bool {
	return !p.fits(r) && p.CutFrom > 0 && now.Before(p.cutAt)
}

// cut takes that a packet with chunks that do not fit has gone to p.
func (p *Path) cut(now rawio.Time) {
	if p.CutFrom > 0 {
		p.cutAt = now.Add(p.est.rto)
	}
}

// markedPath returns where the first of what is marked goes that need not wait to be cut, nil if there is none.
func (s *Sender) markedPath(now rawio.Time) *Path {
	g := &s.ledger
	t, ok := g.marked.Next(g.base, g.len())
	for passed := 0; ok && passed <= maxPassed; t, ok = g.after(&g.marked, t) {
		r := g.rec(t)
		p := s.retransmitPath(r)
		if !p.waitsToBeCut(now, r) {
			return p
		}
		s.paceAt = min(s.paceAt, p.cutAt)
		*s.steps++
		passed++
	}
	return nil
}

// wider returns the path that carries a chunk better which does not fit p: one that it fits, else one whose link can cut it where that of p cannot; else p.
func (s *Sender) wider(r *record, p *Path) *Path {
	best := p
	for _, q := range s.paths {
		switch {
		case !q.usable():
		case q.fits(r):
			return q
		case q.CutFrom > 0 && best.CutFrom < 0:
			best = q
		}
	}
	return best
}

// Stuck returns the length of the packet with the earliest chunk that is outstanding, and the largest that a path to the peer takes whole, if none of them
// carries that chunk as it is; 0 otherwise. It went last so long ago.
func (s *Sender) Stuck(now rawio.Time) (packet, mtu int, ago time.Duration) {
	if s.ledger.len() == 0 {
		return 0, 0, 0
	}
	r := s.ledger.rec(s.ledger.base)
	for _, p := range s.paths {
		if p.State == Unconfirmed {
			continue
		}
		if p.fits(r) {
			return 0, 0, 0
		}
		mtu = max(mtu, p.mtu)
	}
	return wire.CommonHeaderLen + r.chunkLen(), mtu, time.Duration(stamp(now)-r.stamp) * time.Microsecond
}
