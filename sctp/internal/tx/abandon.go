package tx

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/rddp-go/rddp/internal/sparse"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// AbandonPolicy says when a message is given up that may have been sent (RFC 3758, RFC 7496).
type AbandonPolicy uint8

const (
	// AbandonNever sends it until it arrives.
	AbandonNever AbandonPolicy = iota
	// AbandonExpired gives it up when Message.Expires is over.
	AbandonExpired
	// AbandonResent gives it up when a chunk of it would be sent again more than Message.Limit
	// times.
	AbandonResent
	// AbandonForRoom gives it up for a message with a lower Message.Limit that finds the send
	// buffer full. So a lower Limit is a higher priority.
	AbandonForRoom

	numPolicies
)

// AbandonCounts counts abandoned messages by their policy.
type AbandonCounts struct {
	Sent   [numPolicies]uint64 // a part of which was sent
	Unsent [numPolicies]uint64
}

// partialReliability is what a Sender has of PR-SCTP, once it is negotiated.
type partialReliability struct {
	forward  forwardTSN
	failed   []FailedMessage // abandoned, and not reported yet
	counts   AbandonCounts
	byStream sparse.Table[*AbandonCounts]
	forRoom  int // messages of AbandonForRoom that are queued or outstanding, at most
}

// held returns the octets of memory behind it.
func (a *partialReliability) held() int {
	if a == nil {
		return 0
	}
	n := int(unsafe.Sizeof(*a)) + a.byStream.Held() + cap(a.failed)*int(unsafe.Sizeof(FailedMessage{}))
	for _, c := range a.byStream.All {
		if *c != nil {
			n += int(unsafe.Sizeof(**c))
		}
	}
	return n
}

// isSpent reports whether a chunk may not be sent again: its message is to be abandoned.
func (s *Sender) isSpent(now rawio.Time, t wire.TSN) bool {
	if s.partial() == nil {
		return false
	}
	switch x := s.outstanding.extraOf(t); x.policy {
	case AbandonExpired:
		return !now.Before(x.expiresAt) // RFC 3758 section 4.1, TR4
	case AbandonResent:
		return int64(x.resent) >= int64(x.limit)
	}
	return false
}

// markLost takes a chunk out of flight, to be sent again, or abandons its message if that may not
// be. In both cases it counts as lost for congestion control (RFC 3758 section 3.5, F5).
func (s *Sender) markLost(now rawio.Time, t wire.TSN, r *chunkRecord, p *Path) {
	if s.outstanding.markLost(t, r, p); s.isSpent(now, t) {
		s.abandonMessage(now, t)
	}
}

// abandonSpentRetransmits abandons what waits to be sent again and has expired meanwhile.
func (s *Sender) abandonSpentRetransmits(now rawio.Time) {
	if s.partial() == nil {
		return
	}
	g := &s.outstanding
	t, ok := g.toRetransmit.Next(g.firstUnacked, g.len())
	for passed := 0; ok && passed <= maxSkipped; t, ok = g.nextInSet(&g.toRetransmit, t) {
		*s.work.steps++
		if s.isSpent(now, t) {
			s.abandonMessage(now, t)
		} else {
			passed++
		}
	}
}

// abandonMessage abandons all chunks of the message that TSN t is of, and what is not sent of it
// (RFC 3758 section 3.5, A3).
func (s *Sender) abandonMessage(now rawio.Time, t wire.TSN) {
	g := &s.outstanding
	r := g.recordOf(t)
	f := FailedMessage{Stream: r.stream, Token: r.token, Sent: true, Pulled: r.flags&flagEnqueued == 0,
		Policy: g.extraOf(t).policy}
	var touched PathSet
	complete := s.abandonFragments(t, &touched)
	if !complete {
		s.abandonRest(f.Stream)
	}
	for _, p := range s.paths {
		if touched.Has(p.Index()) {
			s.updateTimers(p)
		}
	}
	if g.numToRetransmit == 0 {
		s.recovery.bypassCwnd = false
	}
	s.partial().noteAbandoned(f)
	s.advanceAckPoint(now)
}

// abandonFragments abandons the chunks of a message that have a TSN, and says whether the last one
// is among them.
func (s *Sender) abandonFragments(t wire.TSN, touched *PathSet) (complete bool) {
	g := &s.outstanding
	r := g.recordOf(t)
	first, u, mid := t, r.wireFlags&wire.FlagU, g.extraOf(t).mid
	for prev, ok := t, true; ok && g.recordOf(first).wireFlags&wire.FlagB == 0; { // back to the first
		*s.work.steps++
		if prev, ok = s.prevFragment(first); ok {
			first = prev
		}
	}
	for c := first; c != g.nextTSN; c++ {
		*s.work.steps++
		q := g.recordOf(c)
		if s.Interleaves() && (q.stream != r.stream || q.wireFlags&wire.FlagU != u || g.extraOf(c).mid != mid) {
			continue // another message that goes in between
		}
		complete = q.wireFlags&wire.FlagE != 0
		touched.add(int(q.path))
		if s.abandonChunk(c, q); complete {
			return true
		}
	}
	return false
}

// prevFragment returns the chunk before t of the same message, if that is outstanding.
func (s *Sender) prevFragment(t wire.TSN) (wire.TSN, bool) {
	if s.Interleaves() {
		return s.outstanding.prevInStream(t)
	}
	return t - 1, t != s.outstanding.firstUnacked
}

// abandonChunk abandons one chunk. It is not outstanding any more (RFC 3758 section 3.5, A2).
func (s *Sender) abandonChunk(t wire.TSN, r *chunkRecord) {
	g, p := &s.outstanding, s.paths[r.path]
	if r.isIn(inFlight) {
		g.rwnd += int(r.size)
	}
	g.applyEvent(onAbandon, t, r, p)
	if r.flags&flagEnqueued != 0 {
		s.queue.release(r.stream, int(r.size))
	}
	r.body, r.flags, r.wireFlags = [2][]byte{}, r.flags&^flagEnqueued, r.wireFlags&^wire.FlagE
	for _, q := range s.paths {
		if q.timing.active && q.timing.tsn == t {
			q.timing.active = false
		}
	}
	if (s.tailProbe.pending || s.tailProbe.unacked) && s.tailProbe.tsn == t {
		s.tailProbe = tailProbe{}
	}
	s.window.probing = false // it was the only one outstanding
}

// abandonRest drops what is not sent of the message that a stream has begun. A last TSN is left
// out, so that the peer sees the end of the message before another one begins.
func (s *Sender) abandonRest(stream wire.StreamID) {
	l := s.queue.begunOf(stream)
	if l == nil {
		return
	}
	if s.queue.release(stream, l.rest()); s.outstanding.len() < maxOutstanding {
		t, r := s.outstanding.appendRecord()
		*r = chunkRecord{stream: stream, ssn: l.ssn, path: s.DataPath().index}
		if l.msg.Unordered {
			r.wireFlags, r.ssn = wire.FlagU, 0
		}
		*s.outstanding.extraOf(t) = chunkExtra{}
		if s.Interleaves() {
			s.outstanding.extraOf(t).mid = s.queue.streams.numbers.Use(uint16(stream)).current(l.msg.Unordered)
		}
		s.streams.link(t, r)
		s.outstanding.applyEvent(onAbandon, t, r, s.paths[r.path])
	}
	s.queue.dropBegun(stream)
}

// abandonExpiredRest abandons the message in the slot if a part of it was sent and its life has
// ended (RFC 3758 section 4.1, TR4). It says whether it has.
func (s *Sender) abandonExpiredRest(now rawio.Time) bool {
	l := &s.queue.current
	if l.offset == 0 || l.msg.Policy != AbandonExpired || now.Before(l.msg.Expires) {
		return false
	}
	f := l.failedMessage()
	if t, ok := s.lastInStream(f.Stream); ok && s.outstanding.recordOf(t).state != stateAbandoned {
		s.abandonMessage(now, t)
		return true
	}
	s.abandonRest(f.Stream) // all that was sent has arrived
	s.partial().noteAbandoned(f)
	s.advanceAckPoint(now)
	return true
}

// noteAbandoned counts an abandoned message, and keeps it until TakeAbandoned.
func (a *partialReliability) noteAbandoned(f FailedMessage) {
	a.failed = append(a.failed, f)
	a.count(f)
}

// count counts an abandoned message, if it has a policy.
func (a *partialReliability) count(f FailedMessage) {
	if a == nil || f.Policy == AbandonNever {
		return
	}
	of := a.byStream.Use(uint16(f.Stream))
	if *of == nil {
		*of = new(AbandonCounts)
	}
	for _, c := range []*AbandonCounts{&a.counts, *of} {
		if f.Sent {
			c.Sent[f.Policy]++
		} else {
			c.Unsent[f.Policy]++
		}
	}
}

// TakeAbandoned returns the messages that were abandoned since the last call.
func (s *Sender) TakeAbandoned() []FailedMessage {
	if s.partial() == nil || len(s.partial().failed) == 0 {
		return nil
	}
	list := s.partial().failed
	s.partial().failed = nil
	return list
}

// Abandoned returns how many messages were abandoned, of all streams.
func (s *Sender) Abandoned() AbandonCounts {
	if s.partial() == nil {
		return AbandonCounts{}
	}
	return s.partial().counts
}

// AbandonedOf returns how many messages of a stream were abandoned.
func (s *Sender) AbandonedOf(stream wire.StreamID) AbandonCounts {
	if s.partial() == nil {
		return AbandonCounts{}
	}
	if c := s.partial().byStream.At(uint16(stream)); c != nil && *c != nil {
		return **c
	}
	return AbandonCounts{}
}

// roomCandidate is a chunk of a message of AbandonForRoom, or such a message that was not sent.
type roomCandidate struct {
	limit  uint32
	octets int
	tsn    wire.TSN // if isSent
	isSent bool
	msg    *Message // if not
}

// MakeRoom abandons messages of AbandonForRoom whose limit is above the one given, until octets are
// free in the send buffer. The highest limit goes first, of one limit the oldest. If all of them
// are not enough it abandons none.
func (s *Sender) MakeRoom(now rawio.Time, octets int, limit uint32) bool {
	short := octets - s.freeRoom()
	if short <= 0 {
		return true
	}
	if s.partial() == nil || s.partial().forRoom == 0 {
		return false
	}
	list, sum := s.roomCandidates(limit), 0
	slices.SortStableFunc(list, func(a, b roomCandidate) int {
		if a.limit == b.limit && !a.isSent && !b.isSent {
			return int(int32(a.msg.arrival - b.msg.arrival))
		}
		return cmp.Compare(b.limit, a.limit)
	})
	n := 0
	for ; n < len(list) && sum < short; n++ {
		sum += list[n].octets
	}
	if sum < short {
		return false
	}
	drop := map[*Message]bool{}
	for _, c := range list[:n] {
		switch {
		case !c.isSent:
			drop[c.msg] = true
		case s.outstanding.recordOf(c.tsn).state != stateAbandoned: // not with another chunk of its message
			s.abandonMessage(now, c.tsn)
		}
	}
	for _, f := range s.queue.dropWhere(func(m *Message) bool { return drop[m] }) {
		s.partial().noteAbandoned(f)
	}
	return true
}

// roomCandidates returns what MakeRoom may abandon, the oldest first.
func (s *Sender) roomCandidates(limit uint32) (list []roomCandidate) {
	g := &s.outstanding
	s.partial().forRoom = 0
	for t := g.firstUnacked; t != g.nextTSN; t++ {
		*s.work.steps++
		r, x := g.recordOf(t), g.extraOf(t)
		if x.policy != AbandonForRoom || r.state == stateAbandoned {
			continue
		}
		if s.partial().forRoom++; x.limit > limit {
			list = append(list, roomCandidate{limit: x.limit, octets: int(r.size), tsn: t, isSent: true})
		}
	}
	for m := range s.queue.allWholeUnsent {
		*s.work.steps++
		if m.Policy != AbandonForRoom {
			continue
		}
		if s.partial().forRoom++; m.Limit > limit {
			list = append(list, roomCandidate{limit: m.Limit, octets: m.Len(), msg: m})
		}
	}
	return list
}
