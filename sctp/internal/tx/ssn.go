package tx

import (
	"unsafe"

	"github.com/rddp-go/rddp/internal/sparse"
	"github.com/rddp-go/rddp/sctp/wire"
)

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
func (s *Sender) takeSSN(id wire.StreamID, t wire.TSN) wire.SSN {
	next := s.nextSSN.Use(uint16(id))
	n := *next
	if *next++; endsSSNBlock(n) {
		if s.ssnBlockEnds == nil {
			s.ssnBlockEnds = new(sparse.Table[wire.TSN])
		}
		*s.ssnBlockEnds.Use(uint16(id)) = t
	}
	return n
}

// isSSNAmbiguous reports whether the message in the slot is to wait until fewer of its stream are
// outstanding.
func (s *Sender) isSSNAmbiguous() bool {
	m := &s.current.msg
	if s.outstanding.len() < ssnBlock || s.ssnBlockEnds == nil || m.Unordered || s.current.offset > 0 {
		return false
	}
	next, end := s.nextSSN.At(uint16(m.Stream)), s.ssnBlockEnds.At(uint16(m.Stream))
	return next != nil && end != nil && endsSSNBlock(*next) && s.isOutstandingOn(*end, m.Stream) &&
		endsSSNBlock(s.outstanding.recordOf(*end).ssn)
}

// NextSSN returns the SSN that takeSSN would return. It is nil where neither the stream nor a near
// one was used.
func (s *Sender) NextSSN(id wire.StreamID) *wire.SSN { return s.nextSSN.At(uint16(id)) }

// ssnBlocksMemory returns the octets of memory behind blocks.
func (s *Sender) ssnBlocksMemory() int {
	if s.ssnBlockEnds == nil {
		return 0
	}
	return int(unsafe.Sizeof(*s.ssnBlockEnds)) + s.ssnBlockEnds.Held()
}
