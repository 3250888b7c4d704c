package ddp

// Place takes a segment as it arrives, in any order and possibly more than once (section 5.3). It makes
// every check of section 7.1 before it writes the first octet, and then copies the payload to its final
// place. What Deliver needs to know is left in out. seg is only read during the call.
//
// A fault is left in out.Err and reported by Deliver in its turn: the LLP does not call Place for
// segments that the sender submitted after a faulty one. After the fault was reported, and before
// Attach, segments are dropped silently.
func (s *Stream) Place(seg []byte, out *Placed) {
	*out = Placed{}
	if !s.receiving {
		return
	}
	out.live = true
	var c Control
	if len(seg) > 0 {
		c = Control(seg[0])
	}
	out.ctrl = c
	switch {
	case s.halfDown:
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
	out.name, out.to, out.n = uint32(v.STag()), v.TO(), uint32(len(p))
	if len(p) == 0 {
		return // STag and TO of a zero-length message mean nothing (section 5.2)
	}
	r, err := s.acquire(v.STag())
	if err == nil {
		var need Access
		if need, err = s.ulp.AdmitTagged(v.RsvdULP(), r, v.STag(), v.TO(), len(p)); err == nil {
			err = r.write(v.TO(), p, need)
		}
		r.release()
	}
	out.Err = err
}

// acquire finds the region that tag names on this stream and begins an access to it (section 7.1 item 1
// and section 8.2). The caller releases it.
func (s *Stream) acquire(tag STag) (*Region, *Error) {
	r := s.table.Lookup(tag)
	if r == nil || !r.acquire() {
		return nil, &Error{Type: TypeTagged, Code: CodeInvalidSTag}
	}
	if r.pd != s.pd || r.scope != 0 && r.scope != s.id {
		r.release()
		return nil, &Error{Type: TypeTagged, Code: CodeNotAssociated}
	}
	return r, nil
}

// locate makes the checks of section 7.1 items 2 to 5 for n octets at to of an acquired region and
// returns their offset in its memory. The wrap comes before the bounds: no region reaches 2^64, so that
// a wrapping segment would never be named as such after them.
func (r *Region) locate(to, n uint64, need Access) (off uint64, err *Error) {
	if r.Access()&need != need {
		return 0, &Error{Type: TypeTagged, Code: CodeInvalidSTag}
	}
	if wraps(to, n) {
		return 0, &Error{Type: TypeTagged, Code: CodeTOWrap}
	}
	off, ok := r.contains(to, n)
	if !ok {
		return 0, &Error{Type: TypeTagged, Code: CodeBaseBounds}
	}
	return off, nil
}

// write checks and places a payload in an acquired region.
func (r *Region) write(to uint64, p []byte, need Access) *Error {
	off, err := r.locate(to, uint64(len(p)), need)
	if err != nil {
		return err
	}
	if err := r.mem.put(off, p, r.far(uint64(len(p)))); err != nil {
		return &Error{Type: TypeLocal, Cause: err}
	}
	return nil
}

func (s *Stream) placeUntagged(v UntaggedView, out *Placed) {
	p := v.Payload()
	out.rsvd = v.RsvdULP()
	out.name, out.msn, out.to, out.n = v.QN(), v.MSN(), uint64(v.MO()), uint32(len(p))
	buf, code := s.buffer(out)
	if code == 0 {
		code = checkOffset(buf, out)
	}
	if code != 0 {
		out.Err = &Error{Type: TypeUntagged, Code: code}
	} else if err := buf.Pieces.scatter(out.to, p); err != nil {
		out.Err = &Error{Type: TypeLocal, Cause: err}
	}
}

// buffer finds the receive buffer of an untagged segment (section 7.1 items 1, 2 and 5). A zero-length
// message needs one too: it consumes it.
func (s *Stream) buffer(p *Placed) (*RecvBuffer, uint8) {
	if uint64(p.name) >= uint64(len(s.recvMSN)) {
		return nil, CodeInvalidQN
	}
	if int32(p.msn-s.recvMSN[p.name]) < 0 {
		return nil, CodeMSNRange // delivered already
	}
	buf, code := s.ulp.Buffer(p.name, p.msn, p.rsvd)
	if buf == nil && code == 0 {
		code = CodeNoBuffer
	}
	return buf, code
}

// checkOffset makes the checks of section 7.1 items 3 and 4. A segment without payload may stand at the
// very end of the buffer.
func checkOffset(buf *RecvBuffer, p *Placed) uint8 {
	size := uint64(buf.Len)
	if p.to > size || p.to == size && p.n > 0 {
		return CodeInvalidMO
	}
	if uint64(p.n) > size-p.to {
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

// shortError reports a segment that ends within its header. Section 7.2 has no number for it; it is the
// STag or the queue that cannot be valid.
func shortError(c Control) *Error {
	if c.Tagged() {
		return &Error{Type: TypeTagged, Code: CodeInvalidSTag, Cause: ErrShortSegment}
	}
	return &Error{Type: TypeUntagged, Code: CodeInvalidQN, Cause: ErrShortSegment}
}

// Resolve makes the checks of a tagged access of n octets at to (validity, stream, rights, wrap,
// bounds) without making it: for the source of an RDMA Read and for local scatter/gather elements. The
// piece refers to the region and so ends with its validity, and with the rights asked for. A zero-length access needs no valid STag.
func (s *Stream) Resolve(tag STag, to, n uint64, need Access) (p Piece, err *Error) {
	if n == 0 {
		return p, nil
	}
	r, err := s.acquire(tag)
	if err != nil {
		return p, err
	}
	defer r.release()
	off, err := r.locate(to, n, need)
	if err != nil {
		return p, err
	}
	p.Region, p.Off, p.Len, p.need, p.gen = r, off, n, need, r.gen.Load()
	if p.ram = r.mem.RAM() != nil; p.ram {
		p.Mem = r.mem.sub(off, n)
	}
	return p, nil
}

// CheckSTag returns the region of an STag that is valid and associated with this stream.
func (s *Stream) CheckSTag(tag STag) (*Region, *Error) {
	r, err := s.acquire(tag)
	if err != nil {
		return nil, err
	}
	r.release()
	return r, nil
}
