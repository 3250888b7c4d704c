package tx

import (
	"github.com/rddp-go/rddp/internal/invariant"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/pack"
	"github.com/rddp-go/rddp/sctp/wire"
)

// HasNothingPending says that nothing is outstanding or to be sent, and a transmission opportunity
// has nothing to do.
func (s *Sender) HasNothingPending() bool {
	return s.paths[s.primaryIndex].rateSampler == nil && s.isDrained()
}

// isDrained is HasNothingPending without the needs of congestion control.
func (s *Sender) isDrained() bool {
	return s.outstanding.len() == 0 && s.queue.isEmpty() && !s.HasMoreWork() && !s.tailProbe.pending &&
		len(s.queue.holds()) == 0 &&
		s.burst.paceAt == rawio.Never && s.burst.coalesceEndAt == rawio.Never && s.window.probeAt == rawio.Never &&
		(s.upper.source == nil || s.upper.source.Idle())
}

// Poll returns the path to which a packet with DATA can go now, or nil. Fill into a packet without
// chunks then appends at least one. It may pull one message from the Source.
func (s *Sender) Poll(now rawio.Time) *Path {
	s.burst.paceAt = rawio.Never
	s.queue.setBundled(false)
	if s.sack.lostPaths != 0 {
		return nil // first it is to be known what is lost, and cwnd to be smaller
	}
	if s.tailProbe.pending && s.tailProbe.copyPath != nil {
		return s.tailProbe.copyPath
	}
	if s.outstanding.numToRetransmit > 0 {
		s.abandonSpentRetransmits(now)
	}
	if s.outstanding.numToRetransmit > 0 {
		// Section 6.1, C: what is marked goes before anything new.
		if p := s.nextRetransmitPath(now); p != nil &&
			(s.recovery.bypassCwnd || p.hasCwndRoom() && s.burstAllows(p) && !s.pacingBlocks(now, p)) {
			return p
		}
		p := s.DataPath()
		if s.queue.streams == nil || p.hasCwndRoom() {
			return nil
		}
		if s.resendsAhead(now, p) && s.burstAllows(p) && !s.pacingBlocks(now, p) {
			return p
		}
	}
	p := s.nextPath()
	open := p.hasCwndRoom()
	if (open || s.aheadRoom(now, p) > 0) && s.burstAllows(p) && s.canSendNew(now, p, s.MaxPayload()) &&
		!s.windowIsSilly() && (open || s.goesAhead(now, p, 0)) && !s.defersNewData(p) && !s.pacingBlocks(now, p) {
		return p
	}
	s.checkAppLimited(p)
	return nil
}

// Fill appends DATA chunks to the open packet, which is to go to p, and returns how many. First
// comes what is marked for retransmission to p, then new DATA, in TSN order (section 6.10). With 0
// the packet had no room left, or nothing may be sent.
func (s *Sender) Fill(now rawio.Time, b *pack.Batch, p *Path) int {
	s.forgetOldStamps(now)
	if s.tailProbe.pending && s.tailProbe.copyPath == p {
		return s.fillTailProbe(now, b, p)
	}
	n, octets, again := 0, 0, s.stats.Retransmits
	open := p.hasCwndRoom() && s.burstAllows(p)
	ahead := !open && !s.recovery.bypassCwnd && s.burstAllows(p) && s.aheadRoom(now, p) > 0
	if s.outstanding.numToRetransmit > 0 { // and Poll has let them go
		n, octets = s.fillRetransmits(now, b, p, ahead)
	}
	// The packet may exceed cwnd, so that only its beginning counts (section 6.1, B). In the packet
	// that ignores cwnd there is nothing new.
	if open && s.outstanding.numToRetransmit == 0 || ahead {
		fresh := true
		s.queue.setBundled(n > 0)
		for p == s.nextPath() && s.canSendNew(now, p, s.chunkRoom(b)) && (open || s.goesAhead(now, p, octets)) {
			size, alone := s.nextChunkSize(), s.queue.current.msg.NoBundle
			if n > 0 {
				size = s.fitPartialChunk(size, s.chunkRoom(b))
			}
			if s.dataHeaderLen()+wire.PaddedLen(size) > b.Room() || fresh && s.windowIsSilly() || alone && n > 0 {
				break
			}
			fresh = false
			if n == 0 && !alone && open && s.shouldWithhold(p, size) {
				s.withholdChunk(now, p, size)
				continue
			}
			octets += s.sendNewChunk(now, b, p, size)
			if n++; alone {
				break
			}
			s.queue.setBundled(true)
		}
	}
	if n == 0 && s.withheld.isChunk(s.outstanding.nextTSN-1) { // nothing came behind it
		s.outstanding.markLost(s.withheld.tsn, s.outstanding.recordOf(s.withheld.tsn), p)
		n, octets = s.fillRetransmits(now, b, p, false)
	}
	if ahead {
		s.queue.streams.ahead.left -= octets
	}
	if n > 0 {
		s.burst.left--
		p.cc.OnSent(now, octets, p.flight.octets)
		s.noteCwndFull(now, p)
		s.schedulePacing(now, p, octets)
		s.armPTO(now, p, false)
	}
	if s.ecn.enabled && n > 0 && s.stats.Retransmits == again && !s.window.probing {
		b.SetECN(rawio.ECT0)
	}
	return n
}

// maxSkipped bounds the chunks for other paths that are looked at for the sake of one packet.
const maxSkipped = 64

// fillRetransmits retransmits the earliest marked chunks to p that fit the packet. A chunk above a
// PMTU that has shrunk goes alone, to be fragmented by IP (6.9). Where a packet has to be long for
// that, once in an RTO, other chunks go along, as many as cwnd allows. With ahead it is for streams
// that send little.
func (s *Sender) fillRetransmits(now rawio.Time, b *pack.Batch, p *Path, ahead bool) (n, octets int) {
	g := &s.outstanding
	cut := false
	t, ok := g.toRetransmit.Next(g.firstUnacked, g.len())
	for passed := 0; ok; t, ok = g.nextInSet(&g.toRetransmit, t) {
		*s.work.steps++
		r := g.recordOf(t)
		if s.isSpent(now, t) {
			s.abandonMessage(now, t)
			continue
		}
		if s.retransmitPath(r) != p || p.waitsToFragment(now, r) ||
			ahead && !(p.fitsChunk(r) && s.isLight(r.stream, p)) {
			if passed++; passed > maxSkipped {
				break
			}
			continue
		}
		if r.chunkLen() > b.Room() {
			long := b.Empty() && r.chunkLen() > p.pmdcs
			if !long && !(cut && p.hasCwndRoom() && b.Len()+r.chunkLen() <= longestCutPacket(b)) {
				break
			}
			cut = cut || !p.fitsChunk(r) && p.CutFrom > 0
		}
		s.retransmitChunk(now, b, t, r, p)
		if cut || !p.fitsChunk(r) {
			r.flags &^= flagLongPacket // fragments say nothing about longer packets
		}
		octets += r.chunkLen()
		n++
	}
	if n > 0 {
		s.recovery.bypassCwnd, s.tailProbe.pending = false, false
	}
	if cut {
		p.noteFragmented(now)
	}
	return n, octets
}

// chunkRoom returns the octets of user data that a further chunk may have in a packet. The packet
// then becomes as long as one with a single full chunk. Packets of one length make long trains,
// which a link moves at once. The room that is kept for a SACK stays out of it.
func (s *Sender) chunkRoom(b *pack.Batch) int {
	n := s.MaxPayload()
	return min(n, n+wire.CommonHeaderLen-b.Len())
}

// fitPartialChunk returns the size of the next chunk in a packet that has DATA already and room
// octets left. A message that takes several chunks anyway begins with one that fills the packet.
func (s *Sender) fitPartialChunk(size, room int) int {
	if l := &s.queue.current; !l.fromQueue || l.offset > 0 || l.msg.Len() <= s.MaxPayload() || room < minSourceRoom {
		return size
	}
	return min(size, room)
}

// canSendNew reports whether the peer's window and the supply allow a new DATA chunk to p. It loads
// the slot, with a message for room octets if the Source gives one.
func (s *Sender) canSendNew(now rawio.Time, p *Path, room int) bool {
	idle := s.outstanding.len() == 0
	if !idle {
		s.window.probeAt = rawio.Never // a SACK is due, that of a FORWARD TSN perhaps
	}
	if s.outstanding.len() >= maxOutstanding || s.outstanding.rwnd <= 0 && !idle || !s.loadMessage(now, room) ||
		s.isSSNAmbiguous() {
		return false
	}
	s.window.cutsNext = false
	size := s.nextChunkSize()
	if size > s.outstanding.rwnd {
		return idle && s.mayProbeWindow(now, p)
	}
	s.window.probeAt = rawio.Never
	return !s.outrunsNarrowWindow(now, p, size) && !s.waitsForNarrowWindow(now, p, size)
}

// minSourceRoom is the least room, in octets of user data, that a Source is asked to fill.
const minSourceRoom = 64

// loadMessage fills the slot from the queue, or for room octets from the Source. It reports whether
// the slot holds a message.
func (s *Sender) loadMessage(now rawio.Time, room int) bool {
	l, u := &s.queue.current, &s.upper
	for l.loaded && s.queue.streams == nil || s.queue.pick() {
		if s.partial() == nil || !s.abandonExpiredRest(now) {
			return true
		}
	}
	if !s.queue.isEmpty() || s.queue.holdsAll() {
		return false // the scheduler begins a new packet, or no stream is to send
	}
	l.msg = Message{}
	if u.source == nil || u.fault != nil || room < minSourceRoom || !u.source.Next(now, room, &l.msg) {
		return false
	}
	l.msg.Expires, l.msg.Policy, l.msg.Path, l.msg.NoBundle = 0, AbandonNever, 0, false
	if l.msg.HeadLen > HeadCap || l.msg.Len() == 0 || int32(l.msg.Stream) >= s.streams.count {
		u.fault = invariant.Violation("tx.loadMessage",
			"the Source gave a message of %d octets, %d of them in its head, for stream %d of %d; next TSN %d",
			l.msg.Len(), l.msg.HeadLen, l.msg.Stream, s.streams.count, s.outstanding.nextTSN)
		return false
	}
	l.beginMessage(false)
	return true
}

// nextChunkSize returns the octets of user data of the next chunk of the slot (section 6.9). A
// message of a Source is cut only if IP would have to otherwise (RFC 5043 section 9). So it may
// take the room that is kept for a SACK.
func (s *Sender) nextChunkSize() int {
	n, most := s.queue.current.rest(), s.MaxPayload()
	if s.window.cutsNext {
		most = min(most, s.outstanding.rwnd)
	}
	if !s.queue.current.fromQueue && n == s.queue.current.msg.Len() && wire.PaddedLen(n) <= most+wire.SackLen(0, 0) {
		return n
	}
	return min(n, most)
}

// sendNewChunk gives the next size octets of the slot a TSN and appends them to the packet.
func (s *Sender) sendNewChunk(now rawio.Time, b *pack.Batch, p *Path, size int) int {
	t, r := s.takeNextChunk(now, p, size)
	s.sendChunk(now, b, t, r, p)
	return r.chunkLen()
}

// takeNextChunk gives the next size octets of the slot a TSN.
func (s *Sender) takeNextChunk(now rawio.Time, p *Path, size int) (wire.TSN, *chunkRecord) {
	l := &s.queue.current
	m := &l.msg
	if s.window.probing = size > s.outstanding.rwnd; s.window.probing {
		s.window.probeAt, s.window.probeAnswered = rawio.Never, false
		s.stats.rare().Probes++
	}
	if s.window.cutsNext {
		s.window.cutsNext, s.window.probeAt = false, rawio.Never
	}
	t, r := s.outstanding.appendRecord()
	*r = chunkRecord{}
	r.token, r.ppid, r.stream, r.size, r.path = m.Token, m.PPID, m.Stream, uint16(size), p.index
	if s.outstanding.extras != nil {
		s.setExtra(t, r)
	}
	s.streams.link(t, r)
	if l.fromQueue {
		r.flags = flagEnqueued
	}
	if m.Unordered {
		r.wireFlags |= wire.FlagU
	}
	if l.offset == 0 {
		r.wireFlags |= wire.FlagB
		if !m.Unordered && !s.Interleaves() {
			l.ssn = s.streams.takeSSN(m.Stream, t)
		}
	}
	r.ssn = l.ssn
	if m.Unordered {
		r.ssn = 0
	}
	r.sliceMessage(m, l.offset, size)
	if l.offset += size; l.offset == m.Len() {
		r.wireFlags |= wire.FlagE
		if m.SackNow {
			r.wireFlags |= wire.FlagI
		}
		l.loaded = false
		l.msg.Body = [2][]byte{}
	}
	if s.queue.streams != nil && l.fromQueue && !l.isOwn {
		s.queue.noteSent(r.stream, size, !l.loaded)
	}
	s.recordNarrowSend(now, p, size)
	if !p.timing.active {
		p.timing.active, p.timing.tsn, p.timing.startedAt = true, t, now
	}
	if s.fillsWindow(p, r) {
		r.wireFlags |= wire.FlagI
	}
	return t, r
}

// fillsWindow reports whether a new chunk to p fills its window, or leaves no room for another in
// the peer's. Sending then waits for the SACK, so it should not be delayed (section 6.1, the I
// bit).
func (s *Sender) fillsWindow(p *Path, r *chunkRecord) bool {
	return p.flight.octets+r.chunkLen() >= p.sendWindow() || s.outstanding.rwnd-int(r.size) < s.MaxPayload()
}

// sliceMessage takes size octets of m from off on into the record.
func (r *chunkRecord) sliceMessage(m *Message, off, size int) {
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

// retransmitChunk sends a marked chunk again (sections 6.3.3 and 7.2.4).
func (s *Sender) retransmitChunk(now rawio.Time, b *pack.Batch, t wire.TSN, r *chunkRecord, p *Path) {
	if r.path != p.index {
		s.paths[r.path].timers.early.expiries = 0
		r.path = p.index
		r.flags |= flagMultiPath
	}
	r.flags = r.flags&^flagProbeCopied | flagResent
	r.missCount = 0
	if s.outstanding.len() == 1 && int64(r.size) > int64(s.window.last) {
		s.window.probing = true // the peer had no room for it, and has none yet
	}
	if s.window.probing {
		s.window.probeAnswered = false
		s.stats.rare().Probes++
	}
	if r.state == stateWithheldQueued {
		s.recordWithheldSent(r)
	} else {
		s.cancelRTTMeasurement(t)
		s.countRetransmit(t, r)
	}
	if p.flight.octets > 0 && t.Less(p.flight.first) {
		p.timers.t3At = rawio.Never // the earliest is sent again: restart (section 6.1)
	}
	s.sendChunk(now, b, t, r, p)
}

// countRetransmit counts a chunk that goes once more. The peer may then report one duplicate more.
func (s *Sender) countRetransmit(t wire.TSN, r *chunkRecord) {
	if s.outstanding.extras != nil {
		s.outstanding.extraOf(t).resent++
	}
	r.unreportedDups = min(r.unreportedDups, 254) + 1
	s.outstanding.keepHistory = true
	s.stats.Retransmits++
	s.stats.retransmittedOctets += uint64(r.size)
}

// cancelRTTMeasurement drops measurements of round trips that a chunk sent again makes ambiguous
// (Karn: section 6.3.1, rule C5).
func (s *Sender) cancelRTTMeasurement(t wire.TSN) {
	for _, q := range s.paths {
		if q.timing.active && t.LessEq(q.timing.tsn) {
			q.timing.active = false
		}
	}
}

// sendChunk appends the chunk to the packet and accounts for it.
func (s *Sender) sendChunk(now rawio.Time, b *pack.Batch, t wire.TSN, r *chunkRecord, p *Path) {
	flags := r.wireFlags
	if s.sackNow || s.tailProbe.unacked && t == s.tailProbe.tsn || r.flags&flagTimedOut != 0 {
		flags |= wire.FlagI
	}
	s.appendChunk(b, t, r, p, flags)
	s.recordChunkSent(now, onSend, t, r, p)
}

// recordChunkSent accounts for a chunk that is sent to p, or withheld.
func (s *Sender) recordChunkSent(now rawio.Time, what chunkEvent, t wire.TSN, r *chunkRecord, p *Path) {
	p.endIdle(now)
	p.idleSince, p.lastSentAt = now, now
	r.sentStamp = stampOf(now)
	if s.outstanding.recordSend(what, t, r, p); p.rateSampler != nil {
		s.rateSent(now, what, t, r, p)
	}
	if p.timers.t3At == rawio.Never {
		s.startT3(now, p) // section 6.3.2, R1
	}
	s.stats.Chunks++
	s.stats.Octets += uint64(r.size)
}

// appendChunk appends the chunk to the packet, which goes to p. It notes whether that has become a
// long one.
func (s *Sender) appendChunk(b *pack.Batch, t wire.TSN, r *chunkRecord, p *Path, flags uint8) {
	var tail []byte
	if s.Interleaves() {
		tail = s.appendIDataHeader(b.Tail(), t, r, flags)
	} else {
		tail = wire.AppendDataHeader(b.Tail(), wire.DataFields{
			Flags: flags, TSN: t, Stream: r.stream, SSN: r.ssn, PPID: r.ppid, PayloadLen: int(r.size),
		})
	}
	tail = append(tail, r.head[:r.headLen()]...)
	tail = b.Append(tail, r.body[0])
	tail = b.Append(tail, r.body[1])
	b.Commit(append(tail, wire.Padding(int(r.size))...))

	if r.flags &^= flagLongPacket; p.BasePMTU > 0 && b.Len() > p.BasePMTU {
		r.flags |= flagLongPacket
	}
}
