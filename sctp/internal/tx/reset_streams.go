package tx

import (
	"slices"
	"unsafe"

	"github.com/rddp-go/rddp/internal/sparse"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Hold is what Sender.Hold has begun. None is 0.
type Hold uint32

// heldMessages are those that were given to Enqueue after their streams were to be reset (RFC 6525
// section 5.1.2, A1). They wait until it is known whether the peer has done so, and then go to the
// end of the queue, or to an older hold that concerns them too.
type heldMessages struct {
	id      Hold
	all     bool            // of all streams
	streams []wire.StreamID // in order
	waiting messageQueue
	// No message of the streams is out of the queue before so many chunks have been sent.
	lookAgainAt uint64
}

// concerns says whether messages of a stream are held.
func (h *heldMessages) concerns(id wire.StreamID) bool {
	if h.all {
		return true
	}
	_, found := slices.BinarySearch(h.streams, id)
	return found
}

// Hold has messages wait that are given to Enqueue from now on for some streams, or for all if the
// list is nil. Nothing is pulled from the Source then. It ends with Release.
func (s *Sender) Hold(streams []wire.StreamID) Hold {
	list := slices.Clone(streams)
	slices.Sort(list)
	y := s.perStream()
	y.lastHold++
	y.onHold = append(y.onHold, &heldMessages{id: y.lastHold, all: streams == nil, streams: list})
	return y.lastHold
}

// HoldMore adds streams to a Hold, if it is the last one and not of all streams. It says whether it
// has: messages that a later one has are older than this.
func (s *Sender) HoldMore(id Hold, streams []wire.StreamID) bool {
	at := s.queue.findHold(id)
	if at < 0 || at < len(s.queue.streams.onHold)-1 || s.queue.streams.onHold[at].all {
		return false
	}
	h := s.queue.streams.onHold[at]
	h.streams = append(h.streams, streams...)
	slices.Sort(h.streams)
	return true
}

// hold keeps a message of n octets that is counted already, if those of its stream are held. The
// last Hold that concerns it has it.
func (q *sendQueue) hold(m *Message, n int) bool {
	y := q.streams
	for i := len(y.onHold) - 1; i >= 0; i-- {
		h := y.onHold[i]
		if !h.concerns(m.Stream) {
			continue
		}
		if y.amounts != nil {
			y.amounts.add(m.Stream, n)
		}
		h.waiting.push(m)
		y.arrivals++
		h.waiting.at(h.waiting.length - 1).arrival = y.arrivals
		q.waitingOctets += n
		return true
	}
	return false
}

// Release ends a Hold. What has waited goes to the last of the older ones that concerns it, or to
// the end of the queue.
func (s *Sender) Release(id Hold) {
	q := &s.queue
	at := q.findHold(id)
	if at < 0 {
		return
	}
	y := q.streams
	h, later := y.onHold[at], y.onHold[at+1:]
	y.onHold = y.onHold[:at:at] // what this one has is older than later ones
	for h.waiting.length > 0 {
		var m Message
		h.waiting.pop(&m)
		n := m.Len()
		q.waitingOctets -= n
		q.bufferedOctets -= n // add counts them again
		if y.amounts != nil {
			y.amounts.add(m.Stream, -n)
		}
		q.add(&m)
		s.burst.enqueuedSinceSack = true
	}
	if y.onHold = append(y.onHold, later...); len(y.onHold) == 0 {
		y.onHold = nil
	}
}

// findHold returns where a Hold is in the list, or -1.
func (q *sendQueue) findHold(id Hold) int {
	if q.streams == nil {
		return -1
	}
	return slices.IndexFunc(q.streams.onHold, func(h *heldMessages) bool { return h.id == id })
}

// holds returns those that are under way, the oldest first.
func (q *sendQueue) holds() []*heldMessages {
	if q.streams == nil {
		return nil
	}
	return q.streams.onHold
}

// numHeld is how many messages wait for Release.
func (q *sendQueue) numHeld() (n int) {
	for _, h := range q.holds() {
		n += h.waiting.length
	}
	return n
}

// holdsAll says whether no stream is to send.
func (q *sendQueue) holdsAll() bool {
	return slices.ContainsFunc(q.holds(), func(h *heldMessages) bool { return h.all })
}

// IsAcked says whether DATA up to a TSN is acknowledged.
func (s *Sender) IsAcked(t wire.TSN) bool { return t.Less(s.outstanding.firstUnacked) }

// HasSettled says whether all that was given before a Hold for its streams has its TSNs, but for
// what an older Hold has. With acked, everything that was sent is acknowledged too, of all streams.
func (s *Sender) HasSettled(id Hold, acked bool) bool {
	q := &s.queue
	at := q.findHold(id)
	switch {
	case acked && s.outstanding.len() > 0:
		return false
	case q.isEmpty() || at < 0:
		return true
	}
	h := q.streams.onHold[at]
	switch {
	case h.all || acked || s.SentTSNs() < h.lookAgainAt:
		return false
	case q.streams.scheduler != nil:
		return s.hasSettledQueues(h)
	}
	n, last := 0, 0
	look := func(id wire.StreamID) {
		if n++; h.concerns(id) {
			last = n
		}
	}
	if q.current.loaded {
		look(q.current.msg.Stream)
	}
	for m := range q.allUnheld {
		look(m.Stream)
	}
	*s.work.steps += uint64(n)
	// Of a long queue it is looked at a small part for each chunk.
	h.lookAgainAt = s.SentTSNs() + uint64(max(last, n/64))
	return last == 0
}

// hasSettledQueues is HasSettled under a scheduler.
func (s *Sender) hasSettledQueues(h *heldMessages) bool {
	q := &s.queue
	*s.work.steps += uint64(len(h.streams))
	h.lookAgainAt = s.SentTSNs() + 1
	if q.current.loaded && h.concerns(q.current.msg.Stream) {
		return false
	}
	return !slices.ContainsFunc(h.streams, func(id wire.StreamID) bool {
		at, found := q.streams.find(id)
		return found && !q.streams.queues[at].isEmpty()
	})
}

// ResetSSNs makes 0 the next SSN of some streams, and both MIDs (RFC 8260 section 2.3.2). No list
// means all streams.
func (s *Sender) ResetSSNs(streams []wire.StreamID) {
	o, numbers := &s.streams, (*sparse.Table[messageNumbers])(nil)
	if s.queue.streams != nil {
		numbers = &s.queue.streams.numbers
	}
	if streams == nil {
		if o.nextSSN, o.ssnBlockEnds = (sparse.Table[wire.SSN]{}), nil; numbers != nil {
			*numbers = sparse.Table[messageNumbers]{}
		}
		return
	}
	for _, id := range streams {
		*s.work.steps++
		if next := o.nextSSN.At(uint16(id)); next != nil {
			*next = 0
		}
		if numbers != nil {
			if next := numbers.At(uint16(id)); next != nil {
				*next = messageNumbers{}
			}
		}
	}
}

// AreSSNsZero says whether the next SSN of each of the streams is 0, and so are both MIDs. No list
// means all streams.
func (s *Sender) AreSSNsZero(streams []wire.StreamID) bool {
	isZero := func(id uint16) bool {
		*s.work.steps++
		if next := s.streams.nextSSN.At(id); next != nil && *next != 0 {
			return false
		}
		if s.queue.streams == nil {
			return true
		}
		n := s.queue.streams.numbers.At(id)
		return n == nil || n.nextOrdered == 0 && n.nextUnordered == 0
	}
	if streams != nil {
		return !slices.ContainsFunc(streams, func(id wire.StreamID) bool { return !isZero(uint16(id)) })
	}
	for id := range s.streams.nextSSN.All {
		if !isZero(id) {
			return false
		}
	}
	if s.queue.streams != nil {
		for id := range s.queue.streams.numbers.All {
			if !isZero(id) {
				return false
			}
		}
	}
	return true
}

// AddStreams adds streams.
func (s *Sender) AddStreams(n int) { s.streams.count += int32(n) }

// RestartTSN goes on with TSN next, and with SSN 0 in all streams (RFC 6525 section 5.2.7, H5).
// Nothing is outstanding, and nothing waits but what is held. What is known of the paths stays.
func (s *Sender) RestartTSN(next wire.TSN) {
	s.ResetSSNs(nil)
	for _, p := range s.paths {
		p.forgetTSNs()
	}
	from := s.IdleState()
	from.nextTSN = next
	was, extensions, paths := *s, s.IdleExtensions(), slices.Clone(s.paths)
	s.Init(was.cfg)
	for _, p := range paths {
		_ = s.AddPath(p) // there are as many as before
	}
	s.upper, s.queue, s.ecn, s.sackNow = was.upper, was.queue, was.ecn, was.sackNow
	s.detached, s.work = was.detached, was.work
	s.detached.upTo = next + wire.TSN(s.queue.numHeld()) + 1
	s.RestoreFrom(&from)
	s.RestoreExtensions(extensions)
}

// forgetTSNs forgets what is known of chunks that were sent to the path: all are acknowledged, and
// their TSNs will mean others.
func (p *Path) forgetTSNs() {
	p.timers.stop()
	p.timing.active, p.latestDelivered, p.cwndFull = false, sendOrder{}, sendOrder{}
	p.spuriousTimeout, p.reordering.growAgainSet = spuriousTimeout{}, false
	if p.rateSampler != nil {
		p.rateSampler.timedOut, p.rateSampler.packetStates = false, nil
	}
}

// memory returns the octets behind it.
func (h *heldMessages) memory() int {
	return int(unsafe.Sizeof(*h)) + cap(h.streams)*int(unsafe.Sizeof(wire.StreamID(0))) +
		len(h.waiting.ring)*int(unsafe.Sizeof(Message{}))
}
