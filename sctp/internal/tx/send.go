package tx

import (
	"github.com/rddp-go/rddp/internal/invariant"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/pack"
	"github.com/rddp-go/rddp/sctp/wire"
)

// StartBurst begins a transmission opportunity: the packets of Max.Burst may go (section 6.1, D). An
// owner that handles many received packets before it transmits, or a peer that acknowledges many at
// once, makes one opportunity of several: there is one for every two full packets that have been
// acknowledged, as a SACK for every second packet would have given (section 6.2). Unless the letter is kept
// two trains may go in any case, all of a message of 64 KiB: links move a train as one.
func (s *Sender) StartBurst(now rawio.Time) {
	if s.paceAt != rawio.Never && s.acked == 0 {
		return // the one before goes on, packet by packet
	}
	p := s.DataPath()
	n := (s.acked + p.pmdcs) / (2 * p.pmdcs) // to the nearest: a full chunk leaves room for a SACK
	if s.saved += s.cfg.MaxBurst; s.waits != waitAll {
		s.saved = 0
	}
	s.saved = min(s.saved, train/p.pmdcs+1) // what opportunities that all had to wait in have left over
	s.burst = s.cfg.MaxBurst*max(n, 1) + s.saved
	s.await(now, p, s.acked > 0)
	s.acked = 0
	if !s.cfg.Letter {
		s.burst = max(s.burst, 2*train/p.pmdcs)
	}
}

// bursting reports whether Max.Burst lets a further packet to p go. Unless the letter is kept, it has no say where packets are spread, nor
// over the first ones of a path.
func (s *Sender) bursting(p *Path) bool {
	return s.burst > 0 || s.cfg.MaxBurst == 0 || !s.cfg.Letter && (s.spreads(p) || p.est.srtt == 0)
}

// Still says that nothing is outstanding, nor is there anything to send, nor to be done in a transmission opportunity.
func (s *Sender) Still() bool {
	return s.paths[s.primary].rates == nil && s.empty()
}

// empty is Still, whatever congestion control has to be told.
func (s *Sender) empty() bool {
	return s.ledger.len() == 0 && s.queue.n == 0 && !s.slot.full && !s.More() && !s.tail.due && s.paceAt == rawio.Never && s.probeAt == rawio.Never && s.moreAt == rawio.Never &&
		(s.src == nil || s.src.Idle())
}

// Poll returns the path to which a packet with DATA can go now, or nil. Fill into a packet without
// chunks then appends at least one. It may pull one message from the Source.
func (s *Sender) Poll(now rawio.Time) *Path {
	s.paceAt = rawio.Never
	if s.later.lost != 0 {
		return nil // first it is to be known what is lost, and cwnd to be smaller
	}
	if s.tail.due && s.tail.via != nil {
		return s.tail.via
	}
	if s.ledger.nmarked > 0 {
		// Section 6.1, C: what is marked goes before anything new.
		if p := s.markedPath(now); p != nil && (s.urgent || p.open() && s.bursting(p) && !s.paces(now, p)) {
			return p
		}
		return nil
	}
	p := s.nextPath()
	if p.open() && s.bursting(p) && s.ready(now, p, s.MaxPayload()) && !s.silly() && !s.defers(p) && !s.paces(now, p) {
		return p
	}
	s.dry(p)
	return nil
}

// Fill appends DATA chunks to the open packet, which is to go to p: first what is marked for
// retransmission to p, then new DATA, in TSN order (section 6.10). It returns how many. With 0 the
// packet had no room left, or nothing may be sent.
func (s *Sender) Fill(now rawio.Time, b *pack.Batch, p *Path) int {
	s.forget(now)
	if s.tail.due && s.tail.via == p {
		return s.fillProbe(now, b, p)
	}
	n, octets, again := 0, 0, s.stats.Retransmits
	open := p.open() && s.bursting(p)
	if s.ledger.nmarked > 0 { // and Poll has let them go
		n, octets = s.fillMarked(now, b, p)
	}
	// The packet may exceed cwnd, so that only its beginning counts (section 6.1, B). In the packet
	// that ignores cwnd there is nothing new.
	if open && s.ledger.nmarked == 0 {
		fresh := true
		for p == s.nextPath() && s.ready(now, p, s.spare(b)) {
			size, alone := s.nextSize(), s.slot.msg.NoBundle
			if n > 0 {
				size = s.cutShort(size, s.spare(b))
			}
			if wire.DataHeaderLen+wire.PaddedLen(size) > b.Room() || fresh && s.silly() || alone && n > 0 {
				break
			}
			fresh = false
			if n == 0 && !alone && s.withholds(p, size) {
				s.withhold(now, p, size)
				continue
			}
			octets += s.sendNew(now, b, p, size)
			n++
			if alone {
				break
			}
		}
	}
	if n == 0 && s.withheld.is(s.ledger.next-1) { // nothing came behind it
		s.ledger.mark(s.withheld.tsn, s.ledger.rec(s.withheld.tsn), p)
		n, octets = s.fillMarked(now, b, p)
	}
	if n > 0 {
		s.burst--
		p.cc.OnSent(now, octets, p.flight)
		s.filled(now, p)
		s.pace(now, p, octets)
		s.armPTO(now, p, false)
	}
	if s.ecn && n > 0 && s.stats.Retransmits == again && !s.probing {
		b.SetECN(rawio.ECT0)
	}
	return n
}

// maxPassed bounds the chunks for other paths that are looked at for the sake of one packet.
const maxPassed = 64

// fillMarked retransmits the earliest marked chunks to p that fit the packet. A chunk above a PMTU that has shrunk goes alone, to be fragmented by IP (6.9). Where a
// packet has to be long for that, once in an RTO, it takes others along, as many as cwnd lets go.
func (s *Sender) fillMarked(now rawio.Time, b *pack.Batch, p *Path) (n, octets int) {
	g := &s.ledger
	cut := false
	t, ok := g.marked.Next(g.base, g.len())
	for passed := 0; ok; t, ok = g.after(&g.marked, t) {
		*s.steps++
		r := g.rec(t)
		if s.retransmitPath(r) != p || p.waitsToBeCut(now, r) {
			if passed++; passed > maxPassed {
				break
			}
			continue
		}
		if r.chunkLen() > b.Room() {
			long := b.Empty() && r.chunkLen() > p.pmdcs
			if !long && !(cut && p.open() && b.Len()+r.chunkLen() <= mostCut) {
				break
			}
			cut = cut || !p.fits(r) && p.CutFrom > 0
		}
		s.resend(now, b, t, r, p)
		if cut || !p.fits(r) {
			r.flags &^= large // fragments say nothing about longer packets
		}
		octets += r.chunkLen()
		n++
	}
	if n > 0 {
		s.urgent, s.tail.due = false, false
	}
	if cut {
		p.cut(now)
	}
	return n, octets
}

// spare returns the octets of user data that a further chunk may have in a packet, so that the packet
// becomes as long as one with a single full chunk: packets of one length make long trains, which a link
// moves at once. The room that is kept for a SACK stays out of it.
func (s *Sender) spare(b *pack.Batch) int {
	n := s.MaxPayload()
	return min(n, n+wire.CommonHeaderLen-b.Len())
}

// cutShort returns the size of the next chunk in a packet that has DATA already and room octets to spare. A
// message that takes several chunks anyway begins with one that fills the packet.
func (s *Sender) cutShort(size, room int) int {
	if l := &s.slot; !l.queued || l.off > 0 || l.msg.Len() <= s.MaxPayload() || room < minRoom {
		return size
	}
	return min(size, room)
}

// ready reports whether a new DATA chunk may go to p as far as the peer's window and the supply are
// concerned; it loads the slot, with a message for room octets if the Source gives one.
func (s *Sender) ready(now rawio.Time, p *Path, room int) bool {
	idle := s.ledger.len() == 0
	if s.ledger.len() >= maxOutstanding || s.ledger.rwnd <= 0 && !idle || !s.load(now, room) || s.ambiguous() {
		return false
	}
	s.shorten = false
	size := s.nextSize()
	if size > s.ledger.rwnd {
		return idle && s.opens(now, p)
	}
	s.probeAt = rawio.Never
	return !s.outruns(now, p, size) && !s.clears(now, p, size)
}

// silly reports whether the window is too small to be worth a packet of new DATA while there is DATA
// in flight, whose SACK will say more (silly window syndrome, section 6.1, A; RFC 1122 section
// 4.2.3.4).
func (s *Sender) silly() bool {
	if s.ledger.flight == 0 || s.ledger.rwnd >= s.MaxPayload() || s.ledger.rwnd >= s.maxRwnd/2 {
		return false
	}
	// All that is queued would fit; of a Source it is not known what else it has.
	return s.src != nil || s.unsent+s.slot.msg.Len()-s.slot.off > s.ledger.rwnd
}

// minRoom is the least room, in octets of user data, that a Source is asked to fill.
const minRoom = 64

// load fills the slot from the queue, or for room octets from the Source, and reports whether it holds
// a message.
func (s *Sender) load(now rawio.Time, room int) bool {
	l := &s.slot
	if l.full {
		return true
	}
	queued := s.queue.n > 0
	if queued {
		s.queue.pop(&l.msg)
		s.unsent -= l.msg.Len()
	} else {
		l.msg = Message{}
		if s.src == nil || s.fault != nil || room < minRoom || !s.src.Next(now, room, &l.msg) {
			return false
		}
		l.msg.Expires, l.msg.Path, l.msg.NoBundle = 0, 0, false
		if l.msg.HeadLen > HeadCap || l.msg.Len() == 0 || int32(l.msg.Stream) >= s.outStreams {
			s.fault = invariant.Broken("tx.load", "the Source gave a message of %d octets, %d of them in its head, for stream %d of %d; next TSN %d",
				l.msg.Len(), l.msg.HeadLen, l.msg.Stream, s.outStreams, s.ledger.next)
			return false
		}
	}
	l.take(queued)
	return true
}

// nextSize returns the octets of user data of the next chunk of the slot (section 6.9). What a Source gives is cut only if IP
// would have to otherwise (RFC 5043 section 9), so that it may take the room that is kept for a SACK.
func (s *Sender) nextSize() int {
	n, most := s.slot.msg.Len()-s.slot.off, s.MaxPayload()
	if s.shorten {
		most = min(most, s.ledger.rwnd)
	}
	if !s.slot.queued && n == s.slot.msg.Len() && wire.PaddedLen(n) <= most+wire.SackLen(0, 0) {
		return n
	}
	return min(n, most)
}

// sendNew gives the next size octets of the slot a TSN and appends them to the packet.
func (s *Sender) sendNew(now rawio.Time, b *pack.Batch, p *Path, size int) int {
	t, r := s.cutNext(now, p, size)
	s.emit(now, b, t, r, p)
	return r.chunkLen()
}

// cutNext gives the next size octets of the slot a TSN.
func (s *Sender) cutNext(now rawio.Time, p *Path, size int) (wire.TSN, *record) {
	l := &s.slot
	m := &l.msg
	if s.probing = size > s.ledger.rwnd; s.probing {
		s.probeAt, s.probeHeard = rawio.Never, false
		s.rare().Probes++
	}
	if s.shorten {
		s.shorten, s.probeAt = false, rawio.Never
	}
	t, r := s.ledger.push()
	*r = record{}
	r.token, r.ppid, r.stream, r.size, r.path = m.Token, m.PPID, m.Stream, uint16(size), p.index
	s.chain(t, r)
	if l.queued {
		r.flags = queued
	}
	if m.Unordered {
		r.wire = wire.FlagU
	}
	if l.off == 0 {
		r.wire |= wire.FlagB
		if !m.Unordered {
			l.ssn = s.takeSSN(m.Stream, t)
		}
	}
	r.ssn = l.ssn
	if m.Unordered {
		r.ssn = 0
	}
	r.cut(m, l.off, size)
	if l.off += size; l.off == m.Len() {
		r.wire |= wire.FlagE
		if m.SackNow {
			r.wire |= wire.FlagI
		}
		l.full = false
		l.msg.Body = [2][]byte{}
	}
	s.spend(now, p, size)
	if !p.timing {
		p.timing, p.timed, p.timedAt = true, t, now
	}
	if s.fills(p, r) {
		r.wire |= wire.FlagI
	}
	return t, r
}

// fills reports whether a new chunk to p fills its window, or leaves no room for another in the peer's window:
// its SACK is waited for, so it should not be delayed (section 6.1, the I bit).
func (s *Sender) fills(p *Path, r *record) bool {
	return p.flight+r.chunkLen() >= p.window() || s.ledger.rwnd-int(r.size) < s.MaxPayload()
}

// cut takes size octets of m from off on into the record.
func (r *record) cut(m *Message, off, size int) {
	if h := int(m.HeadLen); off < h {
		off, size = 0, size-copy(r.head[:min(size, h-off)], m.Head[off:h])
	} else {
		off -= h
	}
	for i, b := range m.Body {
		if off >= len(b) {
			off -= len(b)
			continue
		}
		n := min(size, len(b)-off)
		r.body[i] = b[off : off+n]
		off, size = 0, size-n
	}
}

// resend sends a marked chunk again (sections 6.3.3 and 7.2.4).
func (s *Sender) resend(now rawio.Time, b *pack.Batch, t wire.TSN, r *record, p *Path) {
	if r.path != p.index {
		s.paths[r.path].early.n = 0
		r.path = p.index
		r.flags |= moved
	}
	r.flags = r.flags&^copied | resent
	r.misses = 0
	if s.probing {
		s.probeHeard = false
		s.rare().Probes++
	}
	if r.state == released {
		s.release(r)
	} else {
		s.unmeasure(t)
		s.countAgain(r)
	}
	if p.flight > 0 && t.Less(p.first) {
		p.t3 = rawio.Never // the earliest is sent again: restart (section 6.1)
	}
	s.emit(now, b, t, r, p)
}

// countAgain counts a chunk that goes once more: the peer may say as often that it had it before.
func (s *Sender) countAgain(r *record) {
	r.spare = min(r.spare, 254) + 1
	s.ledger.lasting = true
	s.stats.Retransmits++
	s.resentOctets += uint64(r.size)
}

// unmeasure drops measurements of round trips that a chunk sent again makes ambiguous (Karn: section 6.3.1, rule C5).
func (s *Sender) unmeasure(t wire.TSN) {
	for _, q := range s.paths {
		if q.timing && t.LessEq(q.timed) {
			q.timing = false
		}
	}
}

// emit appends the chunk to the packet and accounts for it.
func (s *Sender) emit(now rawio.Time, b *pack.Batch, t wire.TSN, r *record, p *Path) {
	flags := r.wire
	if s.sackNow || s.tail.out && t == s.tail.tsn || r.flags&timeout != 0 {
		flags |= wire.FlagI
	}
	appendChunk(b, t, r, p, flags)
	s.depart(now, onSend, t, r, p)
}

// depart accounts for a chunk that is sent to p, or withheld.
func (s *Sender) depart(now rawio.Time, what trigger, t wire.TSN, r *record, p *Path) {
	p.wake(now)
	p.awake, p.lastSent = now, now
	r.stamp = stamp(now)
	if s.ledger.depart(what, t, r, p); p.rates != nil {
		s.rateSent(now, what, t, r, p)
	}
	if p.t3 == rawio.Never {
		s.startT3(now, p) // section 6.3.2, R1
	}
	s.stats.Chunks++
	s.stats.Octets += uint64(r.size)
}

// appendChunk appends the chunk to the packet, which goes to p, and notes whether that has become a long one.
func appendChunk(b *pack.Batch, t wire.TSN, r *record, p *Path, flags uint8) {
	tail := wire.AppendDataHeader(b.Tail(), wire.DataFields{
		Flags: flags, TSN: t, Stream: r.stream, SSN: r.ssn, PPID: r.ppid, PayloadLen: int(r.size),
	})
	tail = append(tail, r.head[:r.headLen()]...)
	tail = b.Append(tail, r.body[0])
	tail = b.Append(tail, r.body[1])
	b.Commit(append(tail, wire.Padding(int(r.size))...))

	if r.flags &^= large; p.Least > 0 && b.Len() > p.Least {
		r.flags |= large
	}
}
