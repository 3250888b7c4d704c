package mpa

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/ddp/llp"
)

// Lengths of start-up frames in octets.
const (
	keyLen         = 16
	FrameHeaderLen = keyLen + 4
	MaxFrameLen    = FrameHeaderLen + llp.MaxPrivateData
)

// Revisions of MPA.
const (
	Revision         = 1 // RFC 5044
	EnhancedRevision = 2 // RFC 6581
)

// The keys that start-up frames begin with.
const (
	requestKey = "MPA ID Req Frame"
	replyKey   = "MPA ID Rep Frame"
)

// Bits of the octet behind the key.
const (
	bitM = 0x80
	bitC = 0x40
	bitR = 0x20
	bitS = 0x10
)

// Frame is an MPA Request or Reply Frame (section 7.1.1, RFC 6581 section 6).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------------------------------------------------------+
//	|          Key (16 octets): "MPA ID Req Frame", or "Rep"        |
//	+-+-+-+-+-------+---------------+-------------------------------+
//	|M|C|R|S|  Res  |     Rev       |          PD_Length            |
//	+-+-+-+-+-------+---------------+-------------------------------+
//	|                        Private Data ...                       |
//	+---------------------------------------------------------------+
type Frame struct {
	IsReply  bool
	Markers  bool // M: its sender wants to receive Markers
	CRC      bool // C: its sender wants CRCs
	Rejected bool // R: of a Reply
	Revision uint8
	Setup    *llp.Setup // S: the connection data that Private Data begins with; nil without
	Private  []byte     // the upper layer's
}

// Append appends the octets of the frame to b.
func (f *Frame) Append(b []byte) []byte {
	key, bits, n := requestKey, byte(0), len(f.Private)
	if f.IsReply {
		key = replyKey
	}
	if f.Markers {
		bits |= bitM
	}
	if f.CRC {
		bits |= bitC
	}
	if f.Rejected {
		bits |= bitR
	}
	if f.Setup != nil {
		bits |= bitS
		n += llp.SetupLen
	}
	b = append(append(b, key...), bits, f.Revision)
	b = binary.BigEndian.AppendUint16(b, uint16(n))
	if f.Setup != nil {
		b = llp.AppendSetup(b, *f.Setup)
	}
	return append(b, f.Private...)
}

// ParseFrame takes the Request, or the Reply, that b begins with apart. It returns the octets of
// the frame, 0 if b does not have all of it. What is wrong is found as soon as its octets are
// there. The error is a *FrameError. Private refers to b.
func ParseFrame(b []byte, reply bool) (f Frame, n int, err error) {
	key, other := requestKey, replyKey
	if reply {
		key, other = other, key
	}
	if got := string(b[:min(len(b), keyLen)]); got != key[:len(got)] {
		if got == other {
			return f, 0, &FrameError{Fault: FaultCrossed}
		}
		if got != other[:len(got)] {
			return f, 0, &FrameError{Fault: FaultKey}
		}
		return f, 0, nil // what it is shows in the octets to come
	}
	if len(b) < FrameHeaderLen {
		return f, 0, nil
	}
	bits := b[keyLen]
	f = Frame{IsReply: reply, Markers: bits&bitM != 0, CRC: bits&bitC != 0, Rejected: reply && bits&bitR != 0,
		Revision: b[keyLen+1]}
	if f.Revision < Revision || f.Revision > EnhancedRevision {
		return f, 0, &FrameError{Fault: FaultRevision, Revision: f.Revision}
	}
	enhanced := f.Revision >= EnhancedRevision && bits&bitS != 0 // the bit is reserved before
	size := int(binary.BigEndian.Uint16(b[keyLen+2:]))
	switch {
	case size > llp.MaxPrivateData:
		return f, 0, &FrameError{Fault: FaultPrivateData}
	case enhanced && size < llp.SetupLen:
		return f, 0, &FrameError{Fault: FaultSetup}
	case len(b) < FrameHeaderLen+size:
		return f, 0, nil
	}
	n = FrameHeaderLen + size
	f.Private = b[FrameHeaderLen:n:n]
	if enhanced {
		f.Setup, f.Private = llp.SplitSetup(f.Private)
	}
	return f, n, nil
}
