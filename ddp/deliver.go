package ddp

// run is a tagged message whose segments are being delivered.
type run struct {
	active bool
	stag   STag
	to     uint64 // TO of its first segment
	length uint64 // payload octets so far
}

// Deliver takes what Place left, in the order in which the sender submitted the segments and once each
// (section 5.4). It reports a message when its last segment comes by, and a fault in its turn. A zero
// Placed is ignored.
func (s *Stream) Deliver(p *Placed) {
	switch {
	case !s.receiving || !p.live:
	case p.Err != nil:
		s.fatal(p.Err)
	case p.ctrl.Tagged():
		s.deliverTagged(p)
	default:
		s.deliverUntagged(p)
	}
}

func (s *Stream) deliverTagged(p *Placed) {
	tag := STag(p.name)
	if !s.run.active || tag != s.run.stag && p.n > 0 {
		s.run = run{active: true, stag: tag, to: p.to}
	}
	s.run.length += uint64(p.n)
	if !p.ctrl.Last() {
		return
	}
	done := s.run
	s.run = run{}
	s.current = *p
	s.ulp.DeliverTagged(p.rsvd[0], tag, done.to, done.length)
	s.current = Placed{}
}

// deliverUntagged checks once more what may have changed since placement: another segment may have been
// the last of the same message, and then this one belongs to no message that can still be delivered. It delivers what has
// come as a whole, with no octet left as it was in the buffer before.
func (s *Stream) deliverUntagged(p *Placed) {
	s.run = run{}
	next := &s.recvMSN[p.name]
	if int32(p.msn-*next) < 0 || p.ctrl.Last() && p.msn != *next {
		s.fatal(p.fault(TypeUntagged, CodeMSNRange, nil))
		return
	}
	c := &s.covers[p.name]
	if p.msn == *next && !c.add(p.to, p.to+uint64(p.n)) {
		s.fatal(p.fault(TypeUntagged, CodeInvalidMO, ErrScattered))
		return
	}
	if !p.ctrl.Last() {
		return
	}
	if !c.whole(p.to + uint64(p.n)) {
		s.fatal(p.fault(TypeUntagged, CodeInvalidMO, ErrIncomplete))
		return
	}
	buf, code := s.buffer(p)
	if code != 0 {
		s.fatal(p.fault(TypeUntagged, code, nil))
		return
	}
	*next++
	c.next()
	s.current = *p
	s.ulp.DeliverUntagged(p.name, p.msn, p.rsvd, uint32(p.to)+p.n, buf)
	s.current = Placed{}
}

// fault makes the report of section 7.1 about a placed segment.
func (p *Placed) fault(t ErrorType, code uint8, cause error) *Error {
	e := &Error{Type: t, Code: code, Cause: cause}
	if !p.live {
		return e
	}
	if p.ctrl.Tagged() {
		e.HeaderLen = Tagged{Rsvd: p.rsvd[0], STag: STag(p.name), TO: p.to}.Put(e.Header[:])
	} else {
		e.HeaderLen = Untagged{Rsvd: p.rsvd, QN: p.name, MSN: p.msn, MO: uint32(p.to)}.Put(e.Header[:])
	}
	e.Header[0] = byte(p.ctrl)
	e.SegmentLen = e.HeaderLen + int(p.n)
	return e
}

// fatal stops reception and reports (sections 6.2.2 and 7.1). Sending goes on, for one more message.
func (s *Stream) fatal(err *Error) {
	s.receiving, s.reported, s.limited = false, true, true
	s.ulp.Fatal(err)
	if err.Cause == ErrDataAfterClose {
		s.Abort() // the teardown is the LLP's own; data behind it ends the stream abortively (6.2.1)
	}
}

// Fail is for a ULP that finds a fault of its own. It returns the report, with header and length of the
// last segment of the message when it is called from within DeliverTagged or DeliverUntagged. As after
// Fatal, which is not called for it, later segments are dropped and one more message may be submitted.
func (s *Stream) Fail(t ErrorType, code uint8, cause error) *Error {
	s.receiving = false
	s.reported, s.limited = true, true
	return s.current.fault(t, code, cause)
}
