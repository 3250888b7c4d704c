package forge

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// Function codes of session control messages (RFC 5043 section 5.2.3, RFC 6581 section 7).
const (
	Initiate         = 1
	Accept           = 2
	Reject           = 3
	Terminate        = 4
	EnhancedInitiate = 5
	EnhancedAccept   = 6
)

// Numbered puts a DDP-SSN ahead of b.
func Numbered(ssn uint16, b []byte) []byte {
	return append(binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(b)), ssn), b...)
}

// Control is a session control message.
func Control(ssn, fn uint16, private []byte) []byte {
	return Numbered(ssn, append(binary.BigEndian.AppendUint16(nil, fn), private...))
}

// Tagged is a tagged segment.
func Tagged(op rdmap.Opcode, stag ddp.STag, to uint64, payload []byte) []byte {
	b := make([]byte, ddp.TaggedHeaderLen, ddp.TaggedHeaderLen+len(payload))
	ddp.Tagged{Last: true, Rsvd: rdmap.Control(op), STag: stag, TO: to}.Put(b)
	return append(b, payload...)
}

// Write is a segment of an RDMA Write.
func Write(stag ddp.STag, to uint64, payload []byte) []byte {
	return Tagged(rdmap.OpWrite, stag, to, payload)
}

// Untagged is an untagged segment.
func Untagged(op rdmap.Opcode, qn, msn, mo uint32, payload []byte) []byte {
	b := make([]byte, ddp.UntaggedHeaderLen, ddp.UntaggedHeaderLen+len(payload))
	ddp.Untagged{Last: true, Rsvd: [5]byte{rdmap.Control(op)}, QN: qn, MSN: msn, MO: mo}.Put(b)
	return append(b, payload...)
}

// Invalidating is a Send with Invalidate.
func Invalidating(op rdmap.Opcode, msn uint32, stag ddp.STag) []byte {
	b := Untagged(op, rdmap.QueueSend, msn, 0, nil)
	binary.BigEndian.PutUint32(b[2:], uint32(stag))
	return b
}

// ReadRequest is an RDMA Read Request.
func ReadRequest(msn uint32, r rdmap.ReadRequest) []byte {
	var b [rdmap.ReadRequestLen]byte
	r.Put(&b)
	return Untagged(rdmap.OpReadRequest, rdmap.QueueReadRequest, msn, 0, b[:])
}

// AtomicRequest is an Atomic Request.
func AtomicRequest(msn uint32, r rdmap.AtomicRequest) []byte {
	var b [rdmap.AtomicRequestLen]byte
	r.Put(&b)
	return Untagged(rdmap.OpAtomicRequest, rdmap.QueueReadRequest, msn, 0, b[:])
}

// AtomicResponse answers the atomic with that identifier.
func AtomicResponse(msn, id uint32) []byte {
	var b [rdmap.AtomicResponseLen]byte
	r := rdmap.AtomicResponse{ID: id, Original: 42}
	r.Put(&b)
	return Untagged(rdmap.OpAtomicResponse, rdmap.QueueAtomicResponse, msn, 0, b[:])
}

// More clears the L bit.
func More(seg []byte) []byte { return With(seg, 0, seg[0]&^0x40) }

// With returns seg with another octet at i.
func With(seg []byte, i int, octet byte) []byte {
	seg = append([]byte(nil), seg...)
	seg[i] = octet
	return seg
}

// Evil returns n octets that are nowhere in a victim's memory.
func Evil(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = 0xE0 | byte(i)&0xF
	}
	return b
}
