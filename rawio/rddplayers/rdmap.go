package rddplayers

import (
	"encoding/binary"
	"fmt"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// Opcode is the kind of an RDMAP message.
type Opcode uint8

// Opcodes of RFC 5040 Figure 4 and RFC 7306 Figure 2.
const (
	OpWrite                   Opcode = 0
	OpReadRequest             Opcode = 1
	OpReadResponse            Opcode = 2
	OpSend                    Opcode = 3
	OpSendInvalidate          Opcode = 4
	OpSendSolicited           Opcode = 5
	OpSendSolicitedInvalidate Opcode = 6
	OpTerminate               Opcode = 7
	OpImmediate               Opcode = 8
	OpImmediateSolicited      Opcode = 9
	OpAtomicRequest           Opcode = 10
	OpAtomicResponse          Opcode = 11
)

var opcodeNames = [...]string{"Write", "ReadRequest", "ReadResponse", "Send", "SendInvalidate", "SendSolicited",
	"SendSolicitedInvalidate", "Terminate", "Immediate", "ImmediateSolicited", "AtomicRequest", "AtomicResponse"}

func (o Opcode) String() string {
	if int(o) < len(opcodeNames) {
		return opcodeNames[o]
	}
	return fmt.Sprintf("Opcode(%d)", uint8(o))
}

// RDMAP is an RDMAP message, or the part of one that a DDP segment carries. The control field, and
// the STag to invalidate, are octets of the DDP header. Of ReadRequest, Terminate, AtomicRequest,
// AtomicResponse and Immediate at most one is set, that of the opcode. These messages have one
// segment.
type RDMAP struct {
	layers.BaseLayer
	Version        uint8 // RV, 2 bits: 1
	Reserved       uint8 // 2 bits
	Opcode         Opcode
	InvalidateSTag uint32 // of an untagged message; 0 but for the Sends with Invalidate

	ReadRequest    *ReadRequest
	Terminate      *Terminate
	AtomicRequest  *AtomicRequest
	AtomicResponse *AtomicResponse
	Immediate      *uint64
}

// ReadRequest is the RDMA Read Request Header (RFC 5040 section 4.4).
type ReadRequest struct {
	SinkSTag uint32
	SinkTO   uint64
	Size     uint32 // RDMARDSZ, in octets
	SrcSTag  uint32
	SrcTO    uint64
}

// AtomicRequest is the Atomic Operation Request Header (RFC 7306 section 5.2.1).
type AtomicRequest struct {
	Reserved    uint32 // 28 bits
	Operation   uint8  // 0 FetchAdd, 2 CmpSwap
	ID          uint32
	STag        uint32
	TO          uint64
	Data, Mask  uint64 // to add or swap in
	Compare     uint64
	CompareMask uint64
}

// AtomicResponse is the Atomic Operation Response Header (RFC 7306 section 5.2.2).
type AtomicResponse struct {
	ID       uint32
	Original uint64 // the value before the operation
}

// Terminate is the Terminate Header (RFC 5040 section 4.8).
type Terminate struct {
	Layer, Type uint8 // 4 bits each
	Code        uint8
	Reserved    uint16 // 13 bits
	// HasLength, HasDDP and HasRDMA are the bits M, D and R; SegmentLength is there with M or D.
	HasLength, HasDDP, HasRDMA bool
	SegmentLength              uint16 // of the segment at fault, in octets
	DDPHeader                  []byte // of that segment: 14 octets, or 18 of an untagged one
	RDMAPHeader                []byte // 28 octets of a Read Request
}

const readRequestLen, atomicRequestLen, atomicResponseLen, immediateLen = 28, 52, 12, 8 // in octets

// LayerType returns LayerTypeRDMAP.
func (*RDMAP) LayerType() gopacket.LayerType { return LayerTypeRDMAP }

// DecodeFromDDP decodes what a DDP segment carries. The layer's contents are the header behind that
// of DDP, its payload are the user's octets.
func (r *RDMAP) DecodeFromDDP(d *DDP) error {
	c := d.RsvdULP[0]
	*r = RDMAP{Version: c >> 6, Reserved: c >> 4 & 3, Opcode: Opcode(c & 0xF)}
	b := d.Payload
	n := 0
	if !d.Tagged {
		r.InvalidateSTag = binary.BigEndian.Uint32(d.RsvdULP[1:])
		var err error
		if n, err = r.decodeHeader(b); err != nil {
			return err
		}
	}
	r.BaseLayer = layers.BaseLayer{Contents: b[:n], Payload: b[n:]}
	return nil
}

// decodeHeader decodes the header of an untagged message and returns its length.
func (r *RDMAP) decodeHeader(b []byte) (n int, err error) {
	u32, u64 := binary.BigEndian.Uint32, binary.BigEndian.Uint64
	switch r.Opcode {
	case OpReadRequest:
		n = readRequestLen
	case OpAtomicRequest:
		n = atomicRequestLen
	case OpAtomicResponse:
		n = atomicResponseLen
	case OpImmediate, OpImmediateSolicited:
		n = immediateLen
	case OpTerminate:
		r.Terminate = new(Terminate)
		return r.Terminate.decodeMessage(b)
	}
	if len(b) < n {
		return 0, errShort
	}
	switch r.Opcode {
	case OpReadRequest:
		r.ReadRequest = &ReadRequest{u32(b), u64(b[4:]), u32(b[12:]), u32(b[16:]), u64(b[20:])}
	case OpAtomicRequest:
		r.AtomicRequest = &AtomicRequest{u32(b) >> 4, b[3] & 0xF, u32(b[4:]), u32(b[8:]), u64(b[12:]),
			u64(b[20:]), u64(b[28:]), u64(b[36:]), u64(b[44:])}
	case OpAtomicResponse:
		r.AtomicResponse = &AtomicResponse{u32(b), u64(b[4:])}
	case OpImmediate, OpImmediateSolicited:
		v := u64(b)
		r.Immediate = &v
	}
	return n, nil
}

func (t *Terminate) decodeMessage(b []byte) (n int, err error) {
	whole := b
	take := func(n int) []byte {
		if n > len(b) {
			err, n = errShort, len(b)
		}
		part := b[:n]
		b = b[n:]
		return part
	}
	c := take(4)
	if err != nil {
		return 0, err
	}
	w := binary.BigEndian.Uint32(c)
	*t = Terminate{Layer: c[0] >> 4, Type: c[0] & 0xF, Code: c[1], Reserved: uint16(w & 0x1FFF),
		HasLength: w>>15&1 != 0, HasDDP: w>>14&1 != 0, HasRDMA: w>>13&1 != 0}
	if t.HasLength || t.HasDDP {
		if l := take(2); err == nil {
			t.SegmentLength = binary.BigEndian.Uint16(l)
		}
	}
	if t.HasDDP && err == nil {
		n := untaggedLen
		if len(b) > 0 && b[0]&0x80 != 0 {
			n = taggedLen
		}
		t.DDPHeader = take(n)
	}
	if t.HasRDMA && err == nil {
		t.RDMAPHeader = take(readRequestLen)
	}
	return len(whole) - len(b), err
}

// RsvdULP returns what the DDP header holds of the message.
func (r *RDMAP) RsvdULP(tagged bool) []byte {
	c := r.Version<<6 | r.Reserved&3<<4 | uint8(r.Opcode)&0xF
	if tagged {
		return []byte{c}
	}
	return binary.BigEndian.AppendUint32([]byte{c}, r.InvalidateSTag)
}

// SerializeTo is for gopacket.SerializableLayer. The control field is for the DDP layer: see
// RsvdULP.
func (r *RDMAP) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	h := r.appendHeader(nil)
	to, err := b.PrependBytes(len(h))
	copy(to, h)
	return err
}

func (r *RDMAP) appendHeader(h []byte) []byte {
	u32, u64 := binary.BigEndian.AppendUint32, binary.BigEndian.AppendUint64
	switch {
	case r.ReadRequest != nil:
		q := r.ReadRequest
		h = u64(u32(u32(u64(u32(h, q.SinkSTag), q.SinkTO), q.Size), q.SrcSTag), q.SrcTO)
	case r.AtomicRequest != nil:
		q := r.AtomicRequest
		h = u64(u32(u32(u32(h, q.Reserved<<4|uint32(q.Operation&0xF)), q.ID), q.STag), q.TO)
		h = u64(u64(u64(u64(h, q.Data), q.Mask), q.Compare), q.CompareMask)
	case r.AtomicResponse != nil:
		h = u64(u32(h, r.AtomicResponse.ID), r.AtomicResponse.Original)
	case r.Immediate != nil:
		h = u64(h, *r.Immediate)
	case r.Terminate != nil:
		t := r.Terminate
		h = append(h, t.Layer<<4|t.Type&0xF, t.Code)
		h = binary.BigEndian.AppendUint16(h, bitAt(t.HasLength, 15)|bitAt(t.HasDDP, 14)|bitAt(t.HasRDMA,
			13)|t.Reserved&0x1FFF)
		if t.HasLength || t.HasDDP {
			h = binary.BigEndian.AppendUint16(h, t.SegmentLength)
		}
		h = append(append(h, t.DDPHeader...), t.RDMAPHeader...)
	}
	return h
}
