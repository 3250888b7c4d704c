package ddp

import "encoding/binary"

// Run is outgoing segments of one message that follow on each other, each as long as the others, none the last. It is for who sends a long message at a lower price than segment by segment.
type Run struct {
	// Body is the payload of all, one after the other: the user's memory, as in a Segment.
	Body []byte
	// Beyond is what is likely to be read next and is in no cache of the processor's: as much with each segment as that has payload.
	Beyond []byte

	first Segment
	place int    // where in a header the place of the payload is, which is all that differs
	at    uint64 // that of the first: its TO or MO
	step  uint64 // octets of payload of each
}

// Where it is: TO in a tagged header, MO in an untagged one.
const (
	taggedPlace   = 6
	untaggedPlace = 14
)

// HeaderLen returns the length of their headers.
func (r *Run) HeaderLen() int { return r.first.HeaderLen }

// PutHeader writes the header of the i-th to b, which has room for it.
func (r *Run) PutHeader(i int, b []byte) {
	copy(b, r.first.Header[:r.first.HeaderLen])
	if at := r.at + uint64(i)*r.step; r.place == taggedPlace {
		binary.BigEndian.PutUint64(b[taggedPlace:], at)
	} else {
		binary.BigEndian.PutUint32(b[untaggedPlace:], uint32(at))
	}
}

// NextRun is NextSegment for up to n segments of size octets each, and returns how many. It returns 0 where NextSegment has something else to say, such as that the memory is gone, or that a segment
// would be the last, and where it would be one only.
func (s *Stream) NextRun(size, n int, r *Run) int {
	if s.llp == nil || !s.Pending() {
		return 0
	}
	m := s.out.at(s.out.next)
	header, rest := m.headerLen(), uint64(m.length-m.cut)
	if size <= header || rest == 0 {
		return 0
	}
	step, p := uint64(size-header), &m.body[m.piece]
	k := min(uint64(max(n, 0)), (rest-1)/step, (p.Len-m.off)/step)
	if k < 2 {
		return 0
	}
	if r.Body, r.Beyond = p.run(m.off, k, step); r.Body == nil {
		return 0
	}
	if m.tagged {
		r.at, r.place = m.to+uint64(m.cut), taggedPlace
	} else {
		r.at, r.place = uint64(m.cut), untaggedPlace
	}
	if s.cut(m, step, &r.first) != nil {
		return 0
	}
	r.step = step
	m.cut += uint32((k - 1) * step)
	m.unacked += uint32(k - 1)
	m.off += (k - 1) * step
	return int(k)
}

// run returns n times step octets of the piece from off on, if they are in RAM, and what lies beyond, if that is to be asked for. Whether they may be sent is for slice to say.
func (p *Piece) run(off, n, step uint64) (body, beyond []byte) {
	b, far := p.Mem.b, false
	switch {
	case p.Region == nil:
		off, far = p.Off+off, p.Mem.far(step)
	case p.ram:
		far = p.Region.far(step)
	default:
		return nil, nil
	}
	n *= step
	size := uint64(len(b))
	if off > size || n > size-off {
		return nil, nil
	}
	if next := off + step + min(step, page); far && next < size {
		beyond = b[next:][:min(n, size-next)]
	}
	return b[off : off+n : off+n], beyond
}
