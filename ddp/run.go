package ddp

import "encoding/binary"

// Run is consecutive outgoing segments of one message, all of one length, none the last. It makes a
// long message cheaper to send than segment by segment.
type Run struct {
	// Body is the payload of all, one after the other: the user's memory, as in a Segment.
	Body []byte
	// Beyond is what is likely to be read next and is in no cache: with each segment as much as its
	// payload.
	Beyond []byte

	firstSegment   Segment
	offsetPos      int    // where in a header the place of the payload is, which is all that differs
	startOffset    uint64 // that of the first: its TO or MO
	segmentPayload uint64 // octets of payload of each
}

// Where it is: TO in a tagged header, MO in an untagged one.
const (
	toFieldPos = 6
	moFieldPos = 14
)

// HeaderLen returns the length of their headers.
func (r *Run) HeaderLen() int { return r.firstSegment.HeaderLen }

// PutHeader writes the header of the i-th to b, which has room for it.
func (r *Run) PutHeader(i int, b []byte) {
	copy(b, r.firstSegment.Header[:r.firstSegment.HeaderLen])
	if at := r.startOffset + uint64(i)*r.segmentPayload; r.offsetPos == toFieldPos {
		binary.BigEndian.PutUint64(b[toFieldPos:], at)
	} else {
		binary.BigEndian.PutUint32(b[moFieldPos:], uint32(at))
	}
}

// NextRun is NextSegment for up to n segments of size octets each, and returns how many. It returns
// 0 where NextSegment has to decide: the memory is gone, or a segment would be the last. It also
// returns 0 if there would be only one.
func (s *Stream) NextRun(size, n int, r *Run) int {
	if s.llp == nil || !s.Pending() {
		return 0
	}
	m := s.outMessages.at(s.outMessages.nextToCut)
	header, rest := m.headerLen(), uint64(m.length-m.cutOctets)
	if size <= header || rest == 0 {
		return 0
	}
	step, p := uint64(size-header), &m.body[m.pieceIndex]
	k := min(uint64(max(n, 0)), (rest-1)/step, (p.Len-m.pieceOff)/step)
	if k < 2 {
		return 0
	}
	if r.Body, r.Beyond = p.sliceRun(m.pieceOff, k, step); r.Body == nil {
		return 0
	}
	if m.tagged {
		r.startOffset, r.offsetPos = m.to+uint64(m.cutOctets), toFieldPos
	} else {
		r.startOffset, r.offsetPos = uint64(m.cutOctets), moFieldPos
	}
	if s.cutSegment(m, step, &r.firstSegment) != nil {
		return 0
	}
	r.segmentPayload = step
	m.cutOctets += uint32((k - 1) * step)
	m.unackedSegments += uint32(k - 1)
	m.pieceOff += (k - 1) * step
	return int(k)
}

// sliceRun returns n times step octets of the piece from off on, if they are in RAM. It also
// returns what lies beyond, if that should be prefetched. sliceAt checks whether they may be sent.
func (p *Piece) sliceRun(off, n, step uint64) (body, beyond []byte) {
	b, far := p.Mem.b, false
	switch {
	case p.Region == nil:
		off, far = p.Off+off, p.Mem.shouldPrefetch(step)
	case p.inRAM:
		far = p.Region.shouldPrefetch(step)
	default:
		return nil, nil
	}
	n *= step
	size := uint64(len(b))
	if off > size || n > size-off {
		return nil, nil
	}
	if next := off + step + min(step, prefetchMaxLen); far && next < size {
		beyond = b[next:][:min(n, size-next)]
	}
	return b[off : off+n : off+n], beyond
}
