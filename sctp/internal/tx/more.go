package tx

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/pack"
	"github.com/rddp-go/rddp/sctp/wire"
)

// FillMore adds packets like the last one of b, which Fill has filled for p: of one new chunk each, as long as a chunk may be. They
// are the packets that Poll and Fill would make one by one, at a lower price. It ends where there is more to
// decide: in front of a chunk that a window has no more room after, of one to send again, of a message of another length.
func (s *Sender) FillMore(now rawio.Time, b *pack.Batch, p *Path) {
	size := s.MaxPayload()
	chunk := wire.DataHeaderLen + wire.PaddedLen(size)
	first, n := s.ledger.next, 0
	for most := s.plain(p, size, chunk); n < most && !b.Full() && s.load(now, size) && s.slot.msg.Len() == size; n++ {
		s.sendWhole(now, b, p)
	}
	if n == 0 {
		return
	}
	s.ledger.departAll(first, size, p)
	s.burst -= n
	s.withheld.after = max(s.withheld.after-n, min(s.withheld.after, 1))
	s.stats.Chunks += uint64(n)
	s.stats.Octets += uint64(n * size)
	p.cc.OnSent(now, n*chunk, p.flight)
}

// plain returns how many new chunks from the Source may go to p, to which one went just now, with nothing else to
// be thought of.
func (s *Sender) plain(p *Path, size, chunk int) int {
	if s.src == nil || s.slot.full || s.queue.n > 0 || s.ledger.nmarked > 0 || s.probing || s.sackNow ||
		p.single || s.spreads(p) || !p.timing || p != s.DataPath() {
		return 0
	}
	n := min((p.window()-1-p.flight)/chunk, s.ledger.rwnd/size-1, maxOutstanding-s.ledger.len())
	if s.cfg.MaxBurst > 0 {
		n = min(n, s.burst)
	}
	return n
}

// sendWhole gives the message in the slot, from the Source, a TSN and a packet. Its caller counts it as in flight.
func (s *Sender) sendWhole(now rawio.Time, b *pack.Batch, p *Path) {
	m := &s.slot.msg
	s.slot.full = false
	t, r := s.ledger.push()
	r.body, r.token, r.ppid, r.stamp = m.Body, m.Token, m.PPID, stamp(now)
	r.stream, r.ssn, r.size, r.wire, r.flags = m.Stream, 0, uint16(m.Len()), wire.FlagB|wire.FlagE, 0
	r.misses, r.spare, r.path = 0, 0, p.index
	s.chain(t, r)
	if m.Unordered {
		r.wire |= wire.FlagU
	} else {
		r.ssn = s.takeSSN(m.Stream)
	}
	if m.SackNow {
		r.wire |= wire.FlagI
	}
	b.BeginAgain()
	if s.ecn {
		b.SetECN(rawio.ECT0)
	}
	r.head = m.Head // last, as the Source has only just written it, in pieces
	appendChunk(b, t, r, p, r.wire)
	b.End()
}
