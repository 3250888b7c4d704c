package ddp

// taggedMessage is a tagged message whose segments are being delivered.
type taggedMessage struct {
	active bool
	stag   STag
	to     uint64 // TO of its first segment
	length uint64 // payload octets so far
}

// Deliver takes what Place left, once for each segment, in the order of the sender (section 5.4).
// It reports a message with its last segment, and a fault in its turn. A zero Placed is ignored.
func (s *Stream) Deliver(p *Placed) {
	switch {
	case !s.receiving || !p.deliverable:
	case p.Err != nil:
		s.reportFatal(p.Err)
	case p.ctrl.Tagged():
		s.deliverTagged(p)
	default:
		s.deliverUntagged(p)
	}
}

func (s *Stream) deliverTagged(p *Placed) {
	tag := STag(p.stagOrQN)
	if !s.taggedMsg.active || tag != s.taggedMsg.stag && p.payloadLen > 0 {
		s.taggedMsg = taggedMessage{active: true, stag: tag, to: p.toOrMO}
	}
	s.taggedMsg.length += uint64(p.payloadLen)
	if !p.ctrl.Last() {
		return
	}
	done := s.taggedMsg
	s.taggedMsg = taggedMessage{}
	s.delivering = *p
	s.ulp.DeliverTagged(p.rsvd[0], tag, done.to, done.length)
	s.delivering = Placed{}
}

// deliverUntagged checks once more what may have changed since placement. Another segment may have
// been the last of the same message; this one then belongs to no message that can be delivered. A
// message is delivered only when it is whole: no octet of its buffer is left from before.
func (s *Stream) deliverUntagged(p *Placed) {
	s.taggedMsg = taggedMessage{}
	next := &s.recvMSN[p.stagOrQN]
	if int32(p.msn-*next) < 0 || p.ctrl.Last() && p.msn != *next {
		s.reportFatal(p.errorReport(TypeUntagged, CodeMSNRange, nil))
		return
	}
	c := &s.recvRanges[p.stagOrQN]
	if p.msn == *next && !c.addRange(p.toOrMO, p.toOrMO+uint64(p.payloadLen)) {
		s.reportFatal(p.errorReport(TypeUntagged, CodeInvalidMO, ErrScattered))
		return
	}
	if !p.ctrl.Last() {
		return
	}
	if !c.isComplete(p.toOrMO + uint64(p.payloadLen)) {
		s.reportFatal(p.errorReport(TypeUntagged, CodeInvalidMO, ErrIncomplete))
		return
	}
	buf, code := s.findRecvBuffer(p)
	if code != 0 {
		s.reportFatal(p.errorReport(TypeUntagged, code, nil))
		return
	}
	*next++
	c.resetForNext()
	s.delivering = *p
	s.ulp.DeliverUntagged(p.stagOrQN, p.msn, p.rsvd, uint32(p.toOrMO)+p.payloadLen, buf)
	s.delivering = Placed{}
}

// errorReport makes the report of section 7.1 about a placed segment.
func (p *Placed) errorReport(t ErrorType, code uint8, cause error) *Error {
	e := &Error{Type: t, Code: code, Cause: cause}
	if !p.deliverable {
		return e
	}
	if p.ctrl.Tagged() {
		e.HeaderLen = Tagged{Rsvd: p.rsvd[0], STag: STag(p.stagOrQN), TO: p.toOrMO}.Put(e.Header[:])
	} else {
		e.HeaderLen = Untagged{Rsvd: p.rsvd, QN: p.stagOrQN, MSN: p.msn, MO: uint32(p.toOrMO)}.Put(e.Header[:])
	}
	e.Header[0] = byte(p.ctrl)
	e.SegmentLen = e.HeaderLen + int(p.payloadLen)
	return e
}

// reportFatal stops reception and reports (sections 6.2.2 and 7.1). Sending goes on, for one more
// message.
func (s *Stream) reportFatal(err *Error) {
	s.receiving, s.errorReported, s.lastMessageOnly = false, true, true
	s.ulp.Fatal(err)
	if err.Cause == ErrDataAfterClose {
		s.Abort() // the teardown is the LLP's own; data behind it ends the stream abortively (6.2.1)
	}
}

// Fail is for a ULP that finds a fault of its own. It returns the report. From within DeliverTagged
// or DeliverUntagged the report has the header and length of the message's last segment. As after
// Fatal, which is not called, later segments are dropped and one more message may be submitted.
func (s *Stream) Fail(t ErrorType, code uint8, cause error) *Error {
	s.receiving = false
	s.errorReported, s.lastMessageOnly = true, true
	return s.delivering.errorReport(t, code, cause)
}
