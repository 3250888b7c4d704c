package tx

import (
	"unsafe"

	"github.com/rddp-go/rddp/internal/sparse"
	"github.com/rddp-go/rddp/sctp/wire"
)

// outStreams are the streams going out.
type outStreams struct {
	count        int32
	nextSSN      sparse.Table[wire.SSN]  // next SSN of each stream
	lastTSN      sparse.Table[wire.TSN]  // the last chunk of each stream, see link
	ssnBlockEnds *sparse.Table[wire.TSN] // of each stream, see ssnBlock; nil before one has ended
}

// A stream may have 65535 ordered messages outstanding (RFC 9260 section 6.1), and maxOutstanding
// keeps to that. But SSNs compare by serial number arithmetic (section 1.6). A receiver that sorts
// by them alone, as Linux and FreeBSD do, needs all that it holds to be less than 2^15 apart.
// Beyond that it delivers nothing any more. So no more than 2^15-1 are outstanding. The TSN of the
// last message of each block of SSNs is remembered. When the next block ends, it has been
// acknowledged.
const ssnBlock = 1 << 14

// endsSSNBlock says whether an SSN is the last of its block.
func endsSSNBlock(n wire.SSN) bool { return n%ssnBlock == ssnBlock-1 }

// takeSSN returns the SSN of the next ordered message of a stream, which begins with TSN t
// (section 6.5).
func (o *outStreams) takeSSN(id wire.StreamID, t wire.TSN) wire.SSN {
	next := o.nextSSN.Use(uint16(id))
	n := *next
	if *next++; endsSSNBlock(n) {
		if o.ssnBlockEnds == nil {
			o.ssnBlockEnds = new(sparse.Table[wire.TSN])
		}
		*o.ssnBlockEnds.Use(uint16(id)) = t
	}
	return n
}

// isSSNAmbiguous reports whether the message in the slot is to wait until fewer of its stream are
// outstanding.
func (s *Sender) isSSNAmbiguous() bool {
	m := &s.queue.current.msg
	if s.outstanding.len() < ssnBlock || s.Interleaves() || s.streams.ssnBlockEnds == nil || m.Unordered ||
		s.queue.current.offset > 0 {
		return false
	}
	next, end := s.streams.nextSSN.At(uint16(m.Stream)), s.streams.ssnBlockEnds.At(uint16(m.Stream))
	return next != nil && end != nil && endsSSNBlock(*next) && s.outstanding.isOutstandingOn(*end, m.Stream) &&
		endsSSNBlock(s.outstanding.recordOf(*end).ssn)
}

// NextSSN returns the SSN that takeSSN would return. It is nil where neither the stream nor a near
// one was used.
func (s *Sender) NextSSN(id wire.StreamID) *wire.SSN { return s.streams.nextSSN.At(uint16(id)) }

// link notes that chunk t is the last of its stream. The others are found from there.
func (o *outStreams) link(t wire.TSN, r *chunkRecord) {
	last := o.lastTSN.Use(uint16(r.stream))
	if r.prevDistance = 0; uint32(t-*last) <= maxOutstanding {
		r.prevDistance = uint16(t - *last)
	}
	*last = t
}

// lastInStream returns the last chunk of a stream, if that is outstanding.
func (s *Sender) lastInStream(stream wire.StreamID) (t wire.TSN, ok bool) {
	last := s.streams.lastTSN.At(uint16(stream))
	if last == nil {
		return 0, false
	}
	return *last, s.outstanding.isOutstandingOn(*last, stream)
}

// clear forgets what is needed only while something is outstanding.
func (o *outStreams) clear() { o.lastTSN, o.ssnBlockEnds = sparse.Table[wire.TSN]{}, nil }

// held returns the octets of memory behind it.
func (o *outStreams) held() int {
	n := o.nextSSN.Held() + o.lastTSN.Held()
	if o.ssnBlockEnds != nil {
		n += int(unsafe.Sizeof(*o.ssnBlockEnds)) + o.ssnBlockEnds.Held()
	}
	return n
}
