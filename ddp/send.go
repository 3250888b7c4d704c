package ddp

// message is an outgoing message until its completion (section 5.4).
type message struct {
	body     Gather
	token    uint64
	to       uint64 // tagged: TO of the first octet
	length   uint32
	stagOrQN uint32 // STag, or QN
	msn      uint32 // untagged: assigned when the first segment is cut
	rsvd     [5]byte
	tagged   bool

	cutOctets       uint32 // payload octets in segments so far
	pieceIndex      int    // where in body the next segment begins
	pieceOff        uint64
	hasStarted      bool
	sealed          bool   // no further segment comes: all are cut, or err is set
	unackedSegments uint32 // segments that the LLP has not acknowledged
	err             error  // why the message is not sent in whole
}

// messageRing is a queue of messages that keeps its memory. Messages [0, nextToCut) are sealed.
type messageRing struct {
	buf       []message // length a power of two
	head      int
	n         int
	nextToCut int // the message to cut from
}

func (q *messageRing) at(i int) *message { return &q.buf[(q.head+i)&(len(q.buf)-1)] }

// push returns a new zero message, to be filled in place. To copy a message that was just written
// in parts would stall the processor.
func (q *messageRing) push() *message {
	if q.n == len(q.buf) {
		grown := make([]message, max(8, 2*q.n))
		for i := range q.n {
			grown[i] = *q.at(i)
		}
		q.buf, q.head = grown, 0
	}
	q.n++
	return q.at(q.n - 1)
}

func (q *messageRing) pop() message {
	m := q.at(0)
	out := *m
	*m = message{}
	q.head = (q.head + 1) & (len(q.buf) - 1)
	q.n--
	q.nextToCut--
	return out
}

// SendUntagged submits a message for queue qn of the peer. rsvd and token are the ULP's. Messages
// go out in the order of submission (section 5.3). The memory of g, and g itself, belong to the
// stream until Completed or Failed. Errors: ErrQueueNumber, ErrMessageTooLong, ErrRange,
// ErrRevoked, and by state ErrClosing, ErrFaulted, ErrClosed.
func (s *Stream) SendUntagged(qn uint32, rsvd [5]byte, g Gather, token uint64) error {
	if uint64(qn) >= uint64(len(s.sendMSN)) {
		return ErrQueueNumber
	}
	n, err := g.checkLen()
	if err != nil {
		return err
	}
	m, err := s.newMessage()
	if err == nil {
		m.body, m.token, m.length, m.stagOrQN, m.rsvd = g, token, n, qn, rsvd
		s.notifyLLP()
	}
	return err
}

// SendTagged submits a message for the peer's buffer stag from Tagged Offset to on. It is like
// SendUntagged otherwise; ErrRange also refuses a range of Tagged Offsets that wraps.
func (s *Stream) SendTagged(stag STag, to uint64, rsvd uint8, g Gather, token uint64) error {
	n, err := g.checkLen()
	if err != nil {
		return err
	}
	if rangeWraps(to, uint64(n)) { // the TO of an empty message is not checked (section 5.2)
		return ErrRange
	}
	m, err := s.newMessage()
	if err == nil {
		m.body, m.token, m.length, m.stagOrQN, m.to, m.tagged = g, token, n, uint32(stag), to, true
		m.rsvd[0] = rsvd
		s.notifyLLP()
	}
	return err
}

// newMessage returns a message to be filled, and then announced by notifyLLP.
func (s *Stream) newMessage() (*message, error) {
	switch {
	case s.closed || s.aborted:
		return nil, ErrClosed
	case s.closeRequested:
		return nil, ErrClosing
	case s.lastMessageSent: // the one further message has been submitted
		return nil, ErrFaulted
	}
	s.lastMessageSent = s.lastMessageOnly
	return s.outMessages.push(), nil
}

func (s *Stream) notifyLLP() {
	if s.llp != nil {
		s.llp.Ready()
	}
}

// Pending reports whether NextSegment has something to cut.
func (s *Stream) Pending() bool { return s.outMessages.nextToCut < s.outMessages.n }

// Unfinished returns the number of messages that are neither completed nor failed.
func (s *Stream) Unfinished() int { return s.outMessages.n }

// Cut returns how many payload octets of the message in NextSegment have been cut. From within
// ULP.Failed it returns the same of the message that failed.
func (s *Stream) Cut() uint64 {
	switch {
	case s.reportingFailure:
		return s.failedCutOctets
	case s.Pending():
		return uint64(s.outMessages.at(s.outMessages.nextToCut).cutOctets)
	}
	return 0
}

// Rest returns how many payload octets are left to cut of the message that NextSegment continues
// with.
func (s *Stream) Rest() uint64 {
	if !s.Pending() {
		return 0
	}
	m := s.outMessages.at(s.outMessages.nextToCut)
	return uint64(m.length - m.cutOctets)
}

// NextSegment cuts the next segment. It has at most max octets with its header: the MULPDU at this
// moment (section 5.2). It returns false when there is none, or when max has no room for payload.
// The LLP must get the segment to the peer, after those before it. A later change of MULPDU does
// not affect it.
func (s *Stream) NextSegment(max int, seg *Segment) bool {
	s.cutting = true
	ok := s.cutNext(max, seg)
	s.cutting = false
	return ok
}

// Cutting reports whether NextSegment is running. Segments given out before may still be on their
// way to the wire. Memory that they refer to can be detached only afterwards.
func (s *Stream) Cutting() bool { return s.cutting }

func (s *Stream) cutNext(max int, seg *Segment) bool {
	for s.llp != nil && s.Pending() {
		m := s.outMessages.at(s.outMessages.nextToCut)
		room := max - m.headerLen()
		if room < 0 || room == 0 && m.length > 0 {
			return false
		}
		if err := s.cutSegment(m, uint64(room), seg); err != nil {
			s.failCurrent(err)
			continue // the ULP may have answered with a last message
		}
		if !s.Pending() {
			s.ulp.Drained()
		}
		return !s.aborted && !s.closed
	}
	return false
}

func (m *message) headerLen() int {
	if m.tagged {
		return TaggedHeaderLen
	}
	return UntaggedHeaderLen
}

// cutSegment makes the next segment of m with at most room octets of payload.
func (s *Stream) cutSegment(m *message, room uint64, seg *Segment) error {
	n, err := m.gatherBody(min(room, uint64(m.length-m.cutOctets)), seg)
	if err != nil {
		return err
	}
	last := m.cutOctets+n == m.length
	if m.tagged {
		h := Tagged{Last: last, Rsvd: m.rsvd[0], STag: STag(m.stagOrQN), TO: m.to + uint64(m.cutOctets)}
		seg.HeaderLen = h.Put(seg.Header[:])
	} else {
		if !m.hasStarted {
			m.msn = s.sendMSN[m.stagOrQN]
			s.sendMSN[m.stagOrQN]++
		}
		h := Untagged{Last: last, Rsvd: m.rsvd, QN: m.stagOrQN, MSN: m.msn, MO: m.cutOctets}
		seg.HeaderLen = h.Put(seg.Header[:])
	}
	m.cutOctets += n
	m.hasStarted = true
	m.unackedSegments++
	if last {
		m.sealed = true
		s.outMessages.nextToCut++
	}
	return nil
}

// gatherBody refers seg.Body to the next octets of the message, at most want, from up to two
// pieces.
func (m *message) gatherBody(want uint64, seg *Segment) (n uint32, err error) {
	seg.Body = [2][]byte{}
	piece, off := m.pieceIndex, m.pieceOff
	for i := 0; i < len(seg.Body) && want > 0; {
		p := &m.body[piece]
		k := min(want, p.Len-off)
		if k > 0 {
			if seg.Body[i], err = p.sliceAt(off, k); err != nil {
				return 0, err
			}
			i++
		}
		want -= k
		n += uint32(k)
		if off += k; off == p.Len {
			piece, off = piece+1, 0
		}
	}
	m.pieceIndex, m.pieceOff = piece, off
	return n, nil
}

// Acked notes that the lower layer has acknowledged its oldest unacknowledged segment.
// Acknowledgements come in the order in which NextSegment gave the segments out.
func (s *Stream) Acked() { s.AckedRun(1) }

// AckedRun is Acked for n segments.
func (s *Stream) AckedRun(n int) {
	for n > 0 && s.outMessages.n > 0 {
		m := s.outMessages.at(0) // the oldest: completeMessages leaves no other in front
		k := min(uint32(n), m.unackedSegments)
		if k == 0 {
			return
		}
		n -= int(k)
		if m.unackedSegments -= k; m.unackedSegments == 0 {
			s.completeMessages()
		}
	}
}

// completeMessages reports the oldest messages that are done, in order of submission.
func (s *Stream) completeMessages() {
	for s.outMessages.n > 0 && s.outMessages.at(0).sealed && s.outMessages.at(0).unackedSegments == 0 {
		if m := s.outMessages.pop(); m.err != nil {
			s.reportingFailure, s.failedCutOctets = true, uint64(m.cutOctets)
			s.ulp.Failed(m.token, m.err)
			s.reportingFailure = false
		} else {
			s.ulp.Completed(m.token)
		}
	}
	s.finishIfDrained()
}

// failCurrent gives up the message that is being cut, because its memory failed, and those behind
// it. The peer may miss the end of a message then, so only one more may follow.
func (s *Stream) failCurrent(err error) {
	s.lastMessageOnly = true
	s.outMessages.at(s.outMessages.nextToCut).err = err
	s.withdrawUnsent(ErrCanceled)
}

// CancelUnsent withdraws every message of which no segment was given out, and the rest of the
// message that is being cut. They fail with ErrCanceled. If a message was broken off, only one more
// message may be submitted, as after Fatal.
func (s *Stream) CancelUnsent() { s.withdrawUnsent(ErrCanceled) }

// withdrawUnsent seals the messages that are not wholly cut, with err if they have none.
func (s *Stream) withdrawUnsent(err error) {
	for ; s.Pending(); s.outMessages.nextToCut++ {
		m := s.outMessages.at(s.outMessages.nextToCut)
		if m.err == nil {
			m.err = err
		}
		m.sealed = true
		s.lastMessageOnly = s.lastMessageOnly || m.hasStarted
	}
	s.completeMessages()
}
