package tx

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/pack"
	"github.com/rddp-go/rddp/sctp/wire"
)

// FillMore adds packets like the last one of b, which Fill has filled for p: of one new chunk each, as long as a chunk may be. They
// are the packets that Poll and Fill would make one by one, at a lower price. It ends where there is more to
// decide: in front of a chunk that a window has no more room after, of one to send again, of the short rest of a message.
func (s *Sender) FillMore(now rawio.Time, b *pack.Batch, p *Path) {
	size := s.MaxPayload()
	chunk := wire.DataHeaderLen + wire.PaddedLen(size)
	first, n := s.ledger.next, 0
	for most := s.plain(p, size, chunk); n < most && !b.Full(); {
		if k := s.sendRun(now, b, p, size, most-n); k > 0 {
			n += k
			continue
		}
		if !s.whole(now, size) {
			break
		}
		if k := s.cutRun(now, b, p, size, most-n); k > 0 {
			n += k
			continue
		}
		s.sendWhole(now, b, p, size)
		n++
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

// plain returns how many new chunks may go to p, to which one went just now, with nothing else to be thought of.
func (s *Sender) plain(p *Path, size, chunk int) int {
	l := &s.slot
	if l.full && !l.queued || (l.full || s.queue.n > 0) && s.waits > waitShort || s.ledger.nmarked > 0 || s.probing || s.sackNow ||
		p.single || s.narrow(p) || s.spreads(p) || !p.timing || p != s.DataPath() {
		return 0
	}
	n := min((p.window()-1-p.flight)/chunk, s.ledger.rwnd/size-1, maxOutstanding-s.ledger.len())
	if s.cfg.MaxBurst > 0 {
		n = min(n, s.burst)
	}
	return n
}

// whole loads the slot and reports whether the next chunk has size octets, wherever it may go. A message of the Source is one chunk then.
func (s *Sender) whole(now rawio.Time, size int) bool {
	if !s.load(now, size) || s.ambiguous() {
		return false
	}
	l := &s.slot
	rest := l.msg.Len() - l.off
	return l.msg.Path == 0 && (rest == size || rest > size && l.queued)
}

// sendWhole gives the next size octets of the slot a TSN and a packet. Its caller counts them as in flight.
func (s *Sender) sendWhole(now rawio.Time, b *pack.Batch, p *Path, size int) {
	var t wire.TSN
	var r *record
	if s.slot.queued {
		t, r = s.cutNext(now, p, size)
	} else {
		t, r = s.takeNext(p)
	}
	r.stamp = stamp(now)
	b.BeginAgain()
	if s.ecn {
		b.SetECN(rawio.ECT0)
	}
	if r.flags&queued == 0 {
		r.head = s.slot.msg.Head // last, as the Source has only just written it, in pieces
	}
	appendChunk(b, t, r, p, r.wire)
	b.End()
}

// takeNext gives the message in the slot, from the Source, a TSN. Its head is yet to be copied.
func (s *Sender) takeNext(p *Path) (wire.TSN, *record) {
	m := &s.slot.msg
	s.slot.full = false
	t, r := s.ledger.push()
	r.body, r.token, r.ppid = m.Body, m.Token, m.PPID
	r.stream, r.ssn, r.size, r.wire, r.flags = m.Stream, 0, uint16(m.Len()), wire.FlagB|wire.FlagE, 0
	r.misses, r.spare, r.path = 0, 0, p.index
	s.chain(t, r)
	if m.Unordered {
		r.wire |= wire.FlagU
	} else {
		r.ssn = s.takeSSN(m.Stream, t)
	}
	if m.SackNow {
		r.wire |= wire.FlagI
	}
	return t, r
}
