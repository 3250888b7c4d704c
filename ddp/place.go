package ddp

// Place takes a segment as it arrives, in any order and possibly more than once (section 5.3). It
// makes every check of section 7.1 before it writes the first octet, and then copies the payload to
// its final place. It leaves in out what Deliver needs to know. seg is only read during the call.
//
// A fault is left in out.Err, and Deliver reports it in its turn. The LLP does not call Place for
// segments that the sender submitted after a faulty one. Segments are dropped silently after the
// report, and before Attach.
func (s *Stream) Place(seg []byte, out *Placed) {
	*out = Placed{}
	if !s.receiving {
		return
	}
	out.deliverable = true
	var c Control
	if len(seg) > 0 {
		c = Control(seg[0])
	}
	out.ctrl = c
	switch {
	case s.peerClosed:
		out.Err = &Error{Type: TypeLocal, Cause: ErrDataAfterClose}
	case c.Version() != Version:
		out.Err = versionError(c)
	case len(seg) < c.HeaderLen():
		out.Err = shortError(c)
	case c.Tagged():
		s.placeTagged(TaggedView(seg), out)
	default:
		s.placeUntagged(UntaggedView(seg), out)
	}
	if out.Err != nil {
		out.Err.HeaderLen = copy(out.Err.Header[:c.HeaderLen()], seg)
		out.Err.SegmentLen = len(seg)
	}
}

func (s *Stream) placeTagged(v TaggedView, out *Placed) {
	p := v.Payload()
	out.rsvd[0] = v.RsvdULP()
	out.stagOrQN, out.toOrMO, out.payloadLen = uint32(v.STag()), v.TO(), uint32(len(p))
	if len(p) == 0 {
		return // STag and TO of a zero-length message mean nothing (section 5.2)
	}
	r, err := s.acquireRegion(v.STag())
	if err == nil {
		var need Access
		if need, err = s.ulp.AdmitTagged(v.RsvdULP(), r, v.STag(), v.TO(), len(p)); err == nil {
			err = r.placePayload(v.TO(), p, need)
		}
		r.endAccess()
	}
	out.Err = err
}

// acquireRegion finds the region that tag names on this stream and begins an access to it (sections
// 7.1 item 1 and 8.2). The caller releases it.
func (s *Stream) acquireRegion(tag STag) (*Region, *Error) {
	r := s.table.Lookup(tag)
	if r == nil || !r.beginAccess() {
		return nil, &Error{Type: TypeTagged, Code: CodeInvalidSTag}
	}
	if r.pd != s.pd || r.scope != 0 && r.scope != s.id {
		r.endAccess()
		return nil, &Error{Type: TypeTagged, Code: CodeNotAssociated}
	}
	return r, nil
}

// checkTaggedAccess makes the checks of section 7.1 items 2 to 5 for n octets at to of an acquired
// region. It returns their offset in its memory. The check for a wrap comes before the bounds. No
// region reaches 2^64, so a wrapping segment would otherwise be reported as out of bounds.
func (r *Region) checkTaggedAccess(to, n uint64, need Access) (off uint64, err *Error) {
	if r.Access()&need != need {
		return 0, &Error{Type: TypeTagged, Code: CodeInvalidSTag}
	}
	if rangeWraps(to, n) {
		return 0, &Error{Type: TypeTagged, Code: CodeTOWrap}
	}
	off, ok := r.contains(to, n)
	if !ok {
		return 0, &Error{Type: TypeTagged, Code: CodeBaseBounds}
	}
	return off, nil
}

// placePayload checks and places a payload in an acquired region.
func (r *Region) placePayload(to uint64, p []byte, need Access) *Error {
	off, err := r.checkTaggedAccess(to, uint64(len(p)), need)
	if err != nil {
		return err
	}
	if err := r.mem.writeAt(off, p, r.shouldPrefetch(uint64(len(p)))); err != nil {
		return &Error{Type: TypeLocal, Cause: err}
	}
	return nil
}

func (s *Stream) placeUntagged(v UntaggedView, out *Placed) {
	p := v.Payload()
	out.rsvd = v.RsvdULP()
	out.stagOrQN, out.msn, out.toOrMO, out.payloadLen = v.QN(), v.MSN(), uint64(v.MO()), uint32(len(p))
	buf, code := s.findRecvBuffer(out)
	if code == 0 {
		code = checkOffset(buf, out)
	}
	if code != 0 {
		out.Err = &Error{Type: TypeUntagged, Code: code}
	} else if err := buf.Pieces.scatterAt(out.toOrMO, p); err != nil {
		out.Err = &Error{Type: TypeLocal, Cause: err}
	}
}

// findRecvBuffer finds the receive buffer of an untagged segment (section 7.1 items 1, 2 and 5). A
// zero-length message needs one too: it consumes it.
func (s *Stream) findRecvBuffer(p *Placed) (*RecvBuffer, uint8) {
	if uint64(p.stagOrQN) >= uint64(len(s.recvMSN)) {
		return nil, CodeInvalidQN
	}
	if int32(p.msn-s.recvMSN[p.stagOrQN]) < 0 {
		return nil, CodeMSNRange // delivered already
	}
	buf, code := s.ulp.Buffer(p.stagOrQN, p.msn, p.rsvd)
	if buf == nil && code == 0 {
		code = CodeNoBuffer
	}
	return buf, code
}

// checkOffset makes the checks of section 7.1 items 3 and 4. A segment without payload may stand at
// the very end of the buffer.
func checkOffset(buf *RecvBuffer, p *Placed) uint8 {
	size := uint64(buf.Len)
	if p.toOrMO > size || p.toOrMO == size && p.payloadLen > 0 {
		return CodeInvalidMO
	}
	if uint64(p.payloadLen) > size-p.toOrMO {
		return CodeTooLong
	}
	return 0
}

func versionError(c Control) *Error {
	if c.Tagged() {
		return &Error{Type: TypeTagged, Code: CodeTaggedVersion}
	}
	return &Error{Type: TypeUntagged, Code: CodeUntaggedVersion}
}

// shortError reports a segment that ends within its header. Section 7.2 has no number for it; it is
// the STag or the queue that cannot be valid.
func shortError(c Control) *Error {
	if c.Tagged() {
		return &Error{Type: TypeTagged, Code: CodeInvalidSTag, Cause: ErrShortSegment}
	}
	return &Error{Type: TypeUntagged, Code: CodeInvalidQN, Cause: ErrShortSegment}
}

// Resolve makes the checks of a tagged access of n octets at to, without the access: validity,
// stream, rights, wrap, bounds. It serves the source of an RDMA Read, and local scatter/gather
// elements. The piece refers to the region, so it ends with the region's validity or with the
// rights. A zero-length access needs no valid STag.
func (s *Stream) Resolve(tag STag, to, n uint64, need Access) (p Piece, err *Error) {
	if n == 0 {
		return p, nil
	}
	r, err := s.acquireRegion(tag)
	if err != nil {
		return p, err
	}
	defer r.endAccess()
	off, err := r.checkTaggedAccess(to, n, need)
	if err != nil {
		return p, err
	}
	p.Region, p.Off, p.Len, p.needAccess, p.bufferGen = r, off, n, need, r.bufferGen.Load()
	if p.inRAM = r.mem.RAM() != nil; p.inRAM {
		p.Mem = r.mem.subRange(off, n)
	}
	return p, nil
}

// CheckSTag returns the region of an STag that is valid and associated with this stream.
func (s *Stream) CheckSTag(tag STag) (*Region, *Error) {
	r, err := s.acquireRegion(tag)
	if err != nil {
		return nil, err
	}
	r.endAccess()
	return r, nil
}
