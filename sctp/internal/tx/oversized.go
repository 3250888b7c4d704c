package tx

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/pack"
	"github.com/rddp-go/rddp/sctp/internal/seal"
	"github.com/rddp-go/rddp/sctp/wire"
)

// What has become too long for a path. A chunk that has its TSN stays as it is. After a fall of the
// path MTU it takes IP fragments (RFC 9260 section 6.9). Not every link makes them of every packet:
// see Path.CutFrom.

// maxFragmentedPacket bounds the packet that is made long enough to be cut, in octets: an IP packet
// has 65535.
const maxFragmentedPacket = 60 << 10

// longestCutPacket returns that bound, which a packet that is sealed has below it: a record holds
// no more (draft-ietf-tsvwg-sctp-dtls-chunk section 3.1).
func longestCutPacket(b *pack.Batch) int {
	if b.IsSealed() {
		return wire.CommonHeaderLen + seal.MaxContent
	}
	return maxFragmentedPacket
}

// fitsChunk reports whether a chunk can leave for p by itself. It is whole, or in fragments as the
// link makes them of anything.
func (p *Path) fitsChunk(r *chunkRecord) bool { return r.chunkLen() <= p.pmdcs || p.CutFrom == 0 }

// longestNewChunk returns the octets of a DATA chunk that is cut now, so that it leaves room for a
// SACK. With SafePMTU several chunks go into a packet that is longer. When the path MTU falls again
// they go into several packets, and none is stuck.
func (p *Path) longestNewChunk() int {
	sack := wire.SackLen(0, 0)
	room, safe := p.pmdcs-sack, int(p.SafePMTU)-wire.CommonHeaderLen-sack
	if p.SafePMTU == 0 || room <= safe {
		return p.pmdcs
	}
	parts := (room + safe - 1) / safe
	return room/parts&^3 + sack
}

// waitsToFragment reports whether a chunk that does not fit waits. Another has then gone to p in
// such a packet less than an RTO ago.
func (p *Path) waitsToFragment(now rawio.Time, r *chunkRecord) bool {
	return !p.fitsChunk(r) && p.CutFrom > 0 && now.Before(p.fragmentAgainAt)
}

// noteFragmented notes that a packet with chunks that do not fit has gone to p.
func (p *Path) noteFragmented(now rawio.Time) {
	if p.CutFrom > 0 {
		p.fragmentAgainAt = now.Add(p.rttEst.rto)
	}
}

// nextRetransmitPath returns where the first marked chunk goes that need not wait to be cut, nil if
// there is none.
func (s *Sender) nextRetransmitPath(now rawio.Time) *Path {
	g := &s.outstanding
	t, ok := g.toRetransmit.Next(g.firstUnacked, g.len())
	for passed := 0; ok && passed <= maxSkipped; t, ok = g.nextInSet(&g.toRetransmit, t) {
		r := g.recordOf(t)
		p := s.retransmitPath(r)
		if !p.waitsToFragment(now, r) {
			return p
		}
		s.burst.paceAt = min(s.burst.paceAt, p.fragmentAgainAt)
		*s.work.steps++
		passed++
	}
	return nil
}

// widerPath returns a path that carries a chunk which does not fit p. That is one that it fits,
// else one whose link can cut it where that of p cannot. Else it returns p.
func (s *Sender) widerPath(r *chunkRecord, p *Path) *Path {
	best := p
	for _, q := range s.paths {
		switch {
		case !q.isUsable():
		case q.fitsChunk(r):
			return q
		case q.CutFrom > 0 && best.CutFrom < 0:
			best = q
		}
	}
	return best
}

// OversizedChunk looks at the earliest outstanding chunk. If a path takes it as it is, all results
// are 0. Else packet is the length of its packet, and mtu the largest packet that a path to the
// peer takes whole. ago is how long ago the chunk last went.
func (s *Sender) OversizedChunk(now rawio.Time) (packet, mtu int, ago time.Duration) {
	if s.outstanding.len() == 0 {
		return 0, 0, 0
	}
	r := s.outstanding.recordOf(s.outstanding.firstUnacked)
	if r.state == stateAbandoned {
		return 0, 0, 0
	}
	for _, p := range s.paths {
		if p.State == Unconfirmed {
			continue
		}
		if p.fitsChunk(r) {
			return 0, 0, 0
		}
		mtu = max(mtu, p.mtu)
	}
	return wire.CommonHeaderLen + r.chunkLen(), mtu, time.Duration(stampOf(now)-r.sentStamp) * time.Microsecond
}
