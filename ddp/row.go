package ddp

// PlaceRow does Place and Deliver for the first of segs, as long as each is only placed. These are
// of one message, none is the last, and each begins where the one before ended, as the peer cuts a
// long message. The checks are made once for all. It returns how many these are: 0 if the first is
// for Place, or if there is but one. What a device fails to write is for Place too, which tries
// again.
func (s *Stream) PlaceRow(segs [][]byte) int {
	if !s.receiving || s.peerClosed || len(segs) < 2 || len(segs[0]) == 0 {
		return 0
	}
	c := Control(segs[0][0])
	switch {
	case c.Version() != Version || c.Last():
		return 0
	case c.Tagged():
		return s.placeRowTagged(c, segs)
	}
	return s.placeRowUntagged(c, segs)
}

func (s *Stream) placeRowTagged(c Control, segs [][]byte) int {
	first, n, size := TaggedView(segs[0]), 0, uint64(0)
	for ; n < len(segs) && len(segs[n]) > TaggedHeaderLen && Control(segs[n][0]) == c; n++ {
		v := TaggedView(segs[n])
		if v.RsvdULP() != first.RsvdULP() || v.STag() != first.STag() || v.TO() != first.TO()+size {
			break
		}
		size += uint64(len(v.Payload()))
	}
	if n < 2 {
		return 0
	}
	tag, to := first.STag(), first.TO()
	r, err := s.acquireRegion(tag)
	if err != nil {
		return 0
	}
	n, size = s.writeRow(r, tag, to, size, first.RsvdULP(), segs[:n])
	r.endAccess()
	s.deliverTagged(&Placed{ctrl: c, stagOrQN: uint32(tag), toOrMO: to, payloadLen: uint32(size)})
	return n
}

// writeRow places the size octets of segs in an acquired region. It returns how many segments
// succeeded, and their size.
func (s *Stream) writeRow(r *Region, tag STag, to, size uint64, rsvd uint8, segs [][]byte) (n int, done uint64) {
	need, err := s.ulp.AdmitTagged(rsvd, r, tag, to, int(size))
	if err != nil {
		return 0, 0
	}
	off, err := r.checkTaggedAccess(to, size, need)
	if err != nil {
		return 0, 0
	}
	far := r.shouldPrefetch(size / uint64(len(segs)))
	for ; n < len(segs); n++ {
		p := TaggedView(segs[n]).Payload()
		if r.mem.writeAt(off+done, p, far) != nil {
			break
		}
		done += uint64(len(p))
	}
	return n, done
}

func (s *Stream) placeRowUntagged(c Control, segs [][]byte) (n int) {
	if len(segs[0]) <= UntaggedHeaderLen {
		return 0
	}
	v := UntaggedView(segs[0])
	p := Placed{rsvd: v.RsvdULP(), stagOrQN: v.QN(), msn: v.MSN(), toOrMO: uint64(v.MO()), ctrl: c, deliverable: true}
	for ; n < len(segs) && len(segs[n]) > UntaggedHeaderLen && Control(segs[n][0]) == c; n++ {
		v := UntaggedView(segs[n])
		if v.RsvdULP() != p.rsvd || v.QN() != p.stagOrQN || v.MSN() != p.msn || uint64(v.MO()) != p.toOrMO+
			uint64(p.payloadLen) {
			break
		}
		p.payloadLen += uint32(len(v.Payload()))
	}
	if n < 2 {
		return 0
	}
	buf, code := s.findRecvBuffer(&p)
	if code != 0 || checkOffset(buf, &p) != 0 || !s.recvRanges[p.stagOrQN].isNext(p.toOrMO) {
		return 0
	}
	p.payloadLen = 0
	for i, b := range segs[:n] {
		body := UntaggedView(b).Payload()
		if buf.Pieces.scatterAt(p.toOrMO+uint64(p.payloadLen), body) != nil {
			n = i
			break
		}
		p.payloadLen += uint32(len(body))
	}
	s.deliverUntagged(&p)
	return n
}
