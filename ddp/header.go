package ddp

import "encoding/binary"

// Header lengths in octets, RFC 5041 sections 4.2 and 4.3.
const (
	TaggedHeaderLen   = 14
	UntaggedHeaderLen = 18
	MaxHeaderLen      = UntaggedHeaderLen
)

// Version is the DDP version of RFC 5041 (the DV field).
const Version = 1

// Control is the DDP Control Field, section 4.1.
//
//	 0 1 2 3 4 5 6 7
//	+-+-+-+-+-+-+-+-+
//	|T|L| Rsvd  |DV |
//	+-+-+-+-+-+-+-+-+
type Control uint8

const (
	flagTagged  = 0x80
	flagLast    = 0x40
	versionMask = 0x03
)

// Tagged reports the T bit: the payload goes to a tagged buffer.
func (c Control) Tagged() bool { return c&flagTagged != 0 }

// Last reports the L bit: the segment is the last of its message.
func (c Control) Last() bool { return c&flagLast != 0 }

// Version returns the DV field.
func (c Control) Version() uint8 { return uint8(c) & versionMask }

// HeaderLen returns the length in octets of the header that starts with c.
func (c Control) HeaderLen() int {
	if c.Tagged() {
		return TaggedHeaderLen
	}
	return UntaggedHeaderLen
}

func controlField(tagged, last bool) byte {
	c := byte(Version)
	if tagged {
		c |= flagTagged
	}
	if last {
		c |= flagLast
	}
	return c
}

// STag is a Steering Tag: it names a tagged buffer. No valid STag is 0.
type STag uint32

// TaggedView reads a tagged segment of at least TaggedHeaderLen octets in place (section 4.2).
//
//	|T|L| Rsvd  | DV|   RsvdULP     |
//	|             STag              | 32 bits
//	|              TO               | 64 bits
type TaggedView []byte

// Control returns the control field.
func (v TaggedView) Control() Control { return Control(v[0]) }

// RsvdULP returns the 8 bits that belong to the ULP.
func (v TaggedView) RsvdULP() uint8 { return v[1] }

// STag returns the Steering Tag.
func (v TaggedView) STag() STag { return STag(binary.BigEndian.Uint32(v[2:])) }

// TO returns the Tagged Offset of the first payload octet.
func (v TaggedView) TO() uint64 { return binary.BigEndian.Uint64(v[6:]) }

// Payload returns what follows the header.
func (v TaggedView) Payload() []byte { return v[TaggedHeaderLen:] }

// UntaggedView reads an untagged segment of at least UntaggedHeaderLen octets in place (section
// 4.3).
//
//	|T|L| Rsvd  | DV| RsvdULP[0:7]  |
//	|         RsvdULP[8:39]         |
//	|              QN               |
//	|              MSN              |
//	|              MO               |
type UntaggedView []byte

// Control returns the control field.
func (v UntaggedView) Control() Control { return Control(v[0]) }

// RsvdULP returns the 40 bits that belong to the ULP.
func (v UntaggedView) RsvdULP() [5]byte { return [5]byte(v[1:6]) }

// QN returns the Queue Number.
func (v UntaggedView) QN() uint32 { return binary.BigEndian.Uint32(v[6:]) }

// MSN returns the Message Sequence Number.
func (v UntaggedView) MSN() uint32 { return binary.BigEndian.Uint32(v[10:]) }

// MO returns the Message Offset of the first payload octet.
func (v UntaggedView) MO() uint32 { return binary.BigEndian.Uint32(v[14:]) }

// Payload returns what follows the header.
func (v UntaggedView) Payload() []byte { return v[UntaggedHeaderLen:] }

// Tagged are the fields of a tagged header.
type Tagged struct {
	Last bool
	Rsvd uint8
	STag STag
	TO   uint64
}

// Put writes the header to b, which has room for TaggedHeaderLen octets, and returns that length.
// DV is 1 and the reserved bits are 0 (section 4.1).
func (h Tagged) Put(b []byte) int {
	_ = b[TaggedHeaderLen-1]
	b[0] = controlField(true, h.Last)
	b[1] = h.Rsvd
	binary.BigEndian.PutUint32(b[2:], uint32(h.STag))
	binary.BigEndian.PutUint64(b[6:], h.TO)
	return TaggedHeaderLen
}

// Untagged are the fields of an untagged header.
type Untagged struct {
	Last bool
	Rsvd [5]byte
	QN   uint32
	MSN  uint32
	MO   uint32
}

// Put writes the header to b, which has room for UntaggedHeaderLen octets, and returns that length.
// DV is 1 and the reserved bits are 0 (section 4.1).
func (h Untagged) Put(b []byte) int {
	_ = b[UntaggedHeaderLen-1]
	b[0] = controlField(false, h.Last)
	copy(b[1:6], h.Rsvd[:])
	binary.BigEndian.PutUint32(b[6:], h.QN)
	binary.BigEndian.PutUint32(b[10:], h.MSN)
	binary.BigEndian.PutUint32(b[14:], h.MO)
	return UntaggedHeaderLen
}
