package rdmap

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/ddp"
)

// Atomic Operations (RFC 7306 section 5): headers, and the requester's side. The responder's is in
// responder.go.

// Lengths in octets of the headers of Atomic Operations, which are the whole payload of their
// messages. Section 4 gives another length for the response; Figure 6 and the segment of Appendix
// A.2 have 12.
const (
	AtomicRequestLen  = 52
	AtomicResponseLen = 12
)

// Atomic Operation Codes (Figure 5).
const (
	aopFetchAdd = 0
	aopCmpSwap  = 2
	aopMask     = 0xF // the other 28 bits of the word are zero, and ignored
)

// AtomicRequest is the Atomic Operation Request Header (section 5.2.1, Figure 4).
//
//	| Reserved 28 | AOpCode 4 | Request Identifier 32 | Remote STag 32 | Remote Tagged Offset 64 |
//	| Add or Swap Data 64 | Add or Swap Mask 64 | Compare Data 64 | Compare Mask 64 |
type AtomicRequest struct {
	ID   uint32 // Request Identifier: comes back in the response
	STag ddp.STag
	TO   uint64
	Op   AtomicOp
}

// Put encodes the header. What a FetchAdd does not use has the values that section 5.2.1 asks for.
func (r *AtomicRequest) Put(b *[AtomicRequestLen]byte) {
	code, compare, mask := uint32(aopFetchAdd), uint64(0), ^uint64(0)
	if r.Op.Swap {
		code, compare, mask = aopCmpSwap, r.Op.Compare, r.Op.CompareMask
	}
	binary.BigEndian.PutUint32(b[0:], code)
	binary.BigEndian.PutUint32(b[4:], r.ID)
	binary.BigEndian.PutUint32(b[8:], uint32(r.STag))
	binary.BigEndian.PutUint64(b[12:], r.TO)
	binary.BigEndian.PutUint64(b[20:], r.Op.Data)
	binary.BigEndian.PutUint64(b[28:], r.Op.Mask)
	binary.BigEndian.PutUint64(b[36:], compare)
	binary.BigEndian.PutUint64(b[44:], mask)
}

// ParseAtomicRequest decodes the header. It returns false for an Atomic Operation Code other than
// FetchAdd and CmpSwap.
func ParseAtomicRequest(b *[AtomicRequestLen]byte) (r AtomicRequest, ok bool) {
	r = AtomicRequest{
		ID:   binary.BigEndian.Uint32(b[4:]),
		STag: ddp.STag(binary.BigEndian.Uint32(b[8:])),
		TO:   binary.BigEndian.Uint64(b[12:]),
		Op:   AtomicOp{Data: binary.BigEndian.Uint64(b[20:]), Mask: binary.BigEndian.Uint64(b[28:])},
	}
	switch binary.BigEndian.Uint32(b[0:]) & aopMask {
	case aopFetchAdd:
		return r, true
	case aopCmpSwap:
		r.Op.Swap = true
		r.Op.Compare, r.Op.CompareMask = binary.BigEndian.Uint64(b[36:]), binary.BigEndian.Uint64(b[44:])
		return r, true
	}
	return r, false
}

// AtomicResponse is the Atomic Operation Response Header (section 5.2.2, Figure 6).
type AtomicResponse struct {
	ID       uint32 // Original Request Identifier
	Original uint64 // Original Remote Data Value
}

// Put encodes the header.
func (r *AtomicResponse) Put(b *[AtomicResponseLen]byte) {
	binary.BigEndian.PutUint32(b[0:], r.ID)
	binary.BigEndian.PutUint64(b[4:], r.Original)
}

// ParseAtomicResponse decodes the header.
func ParseAtomicResponse(b *[AtomicResponseLen]byte) AtomicResponse {
	return AtomicResponse{ID: binary.BigEndian.Uint32(b[0:]), Original: binary.BigEndian.Uint64(b[4:])}
}

// putAtomic encodes the request of the i-th slot. Its place in the send queue identifies it: of
// what is outstanding no two are equal.
func (w *sendSlot) putAtomic(b *[AtomicRequestLen]byte, i uint64) {
	r := AtomicRequest{ID: uint32(i), STag: w.remoteSTag, TO: w.remoteTO, Op: w.atomicOp}
	r.Put(b)
}

// receiveAtomicResponse completes the oldest outstanding request. It must be the atomic that the
// response is for (sections 5.2.2 and 5.4). Requests are answered in their order, so the MSN of
// queue 3 says no more.
func (q *QP) receiveAtomicResponse(rsvd [5]byte, length uint32, token uint64) {
	s := &q.sq
	_, f := checkControl(rsvd[0], atomicQueueOpcodes)
	if f == nil && (s.outstandingReads() == 0 || s.readAt(0).op != WRAtomic) {
		f = errOpcode
	}
	if f != nil {
		q.rejectMessage(f)
		return
	}
	r := ParseAtomicResponse((*[AtomicResponseLen]byte)(q.atomicResponses.bufferAt(token)))
	q.atomicResponses.repostFirst()
	w := s.readAt(0)
	if length != AtomicResponseLen || r.ID != uint32(s.readRequests[s.readsAnswered%uint64(len(s.readRequests))]) {
		w.status = StatusBadRespErr
		q.rejectMessage(errUnspecified)
		return
	}
	w.originalValue = r.Original
	q.finishRead(w)
}
