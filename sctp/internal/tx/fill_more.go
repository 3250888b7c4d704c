package tx

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/pack"
	"github.com/rddp-go/rddp/sctp/wire"
)

// FillMore adds packets like the last one of b, which Fill has filled for p. Each has one new
// chunk, as long as a chunk may be. They are the packets that Poll and Fill would make one by one,
// at a lower price. It stops before what needs a decision. That is a chunk that leaves no room in a
// window, one to send again, or the short rest of a message.
func (s *Sender) FillMore(now rawio.Time, b *pack.Batch, p *Path) {
	size := s.MaxPayload()
	chunk := s.dataHeaderLen() + wire.PaddedLen(size)
	s.queue.setBundled(false)
	first, n := s.outstanding.nextTSN, 0
	for most := s.fastPathChunks(p, size, chunk); n < most && !b.Full(); {
		if k := s.sendSourceRun(now, b, p, size, most-n); k > 0 {
			n += k
			continue
		}
		if !s.nextChunkIsFull(now, size) {
			break
		}
		if k := s.sendMessageRun(now, b, p, size, most-n); k > 0 {
			n += k
			continue
		}
		s.sendFullChunk(now, b, p, size)
		n++
	}
	if n == 0 {
		return
	}
	s.outstanding.recordNewSends(first, size, p)
	s.burst.left -= n
	s.withheld.packetsUntilNext = max(s.withheld.packetsUntilNext-n, min(s.withheld.packetsUntilNext, 1))
	s.stats.Chunks += uint64(n)
	s.stats.Octets += uint64(n * size)
	p.cc.OnSent(now, n*chunk, p.flight.octets)
}

// fastPathChunks returns how many new chunks may go to p, to which one went just now, without any
// other check.
func (s *Sender) fastPathChunks(p *Path, size, chunk int) int {
	l := &s.queue.current
	if l.loaded && !l.fromQueue || s.queue.hasChoice() || !s.queue.isEmpty() && s.burst.deferral > deferShort ||
		s.outstanding.numToRetransmit > 0 || s.window.probing || s.sackNow ||
		p.onePacketOnly || s.hasNarrowWindow(p) || s.isPaced(p) || !p.timing.active || p != s.DataPath() {
		return 0
	}
	n := min((p.sendWindow()-1-p.flight.octets)/chunk, s.outstanding.rwnd/size-1, maxOutstanding-s.outstanding.len())
	if s.cfg.MaxBurst > 0 {
		n = min(n, s.burst.left)
	}
	return n
}

// nextChunkIsFull loads the slot and reports whether the next chunk has size octets, wherever it
// may go. A message of the Source is one chunk then.
func (s *Sender) nextChunkIsFull(now rawio.Time, size int) bool {
	if !s.loadMessage(now, size) || s.isSSNAmbiguous() {
		return false
	}
	l := &s.queue.current
	rest := l.rest()
	return l.msg.Path == 0 && (rest == size || rest > size && l.fromQueue)
}

// sendFullChunk gives the next size octets of the slot a TSN and a packet. Its caller counts them
// as in flight.
func (s *Sender) sendFullChunk(now rawio.Time, b *pack.Batch, p *Path, size int) {
	var t wire.TSN
	var r *chunkRecord
	if s.queue.current.fromQueue {
		t, r = s.takeNextChunk(now, p, size)
	} else {
		t, r = s.takeSourceMessage(p)
	}
	r.sentStamp = stampOf(now)
	b.BeginAgain()
	if s.ecn.enabled {
		b.SetECN(rawio.ECT0)
	}
	if r.flags&flagEnqueued == 0 {
		r.head = s.queue.current.msg.Head // last, as the Source has only just written it, in pieces
	}
	s.appendChunk(b, t, r, p, r.wireFlags)
	b.End()
}

// takeSourceMessage gives the message in the slot, from the Source, a TSN. Its head is yet to be
// copied.
func (s *Sender) takeSourceMessage(p *Path) (wire.TSN, *chunkRecord) {
	m := &s.queue.current.msg
	s.queue.current.loaded = false
	t, r := s.outstanding.appendRecord()
	r.body, r.token, r.ppid = m.Body, m.Token, m.PPID
	r.stream, r.ssn, r.size, r.wireFlags, r.flags = m.Stream, 0, uint16(m.Len()), wire.FlagB|wire.FlagE, 0
	r.missCount, r.unreportedDups, r.path = 0, 0, p.index
	if s.outstanding.extras != nil {
		*s.outstanding.extraOf(t) = chunkExtra{}
	}
	s.streams.link(t, r)
	if m.Unordered {
		r.wireFlags |= wire.FlagU
	} else {
		r.ssn = s.streams.takeSSN(m.Stream, t)
	}
	if m.SackNow {
		r.wireFlags |= wire.FlagI
	}
	return t, r
}
