package rddplayers

import (
	"encoding/binary"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// DDP is the header of a DDP segment (RFC 5041 section 4).
type DDP struct {
	layers.BaseLayer
	Tagged   bool   // T: the payload goes to a tagged buffer
	Last     bool   // L: the segment is the last of its message
	Reserved uint8  // 4 bits
	Version  uint8  // DV, 2 bits: 1
	RsvdULP  []byte // what belongs to RDMAP: 1 octet, or 5 of an untagged segment

	STag uint32 // Steering Tag, tagged
	TO   uint64 // Tagged Offset, tagged

	QN  uint32 // Queue Number, untagged
	MSN uint32 // Message Sequence Number, untagged
	MO  uint32 // Message Offset, untagged
}

const taggedLen, untaggedLen = 14, 18 // in octets

// LayerType returns LayerTypeDDP.
func (*DDP) LayerType() gopacket.LayerType { return LayerTypeDDP }

// decodeHeader takes a segment apart.
func (d *DDP) decodeHeader(b []byte) error {
	if len(b) == 0 || b[0]&0x80 != 0 && len(b) < taggedLen || b[0]&0x80 == 0 && len(b) < untaggedLen {
		return errShort
	}
	*d = DDP{Tagged: b[0]&0x80 != 0, Last: b[0]&0x40 != 0, Reserved: b[0] >> 2 & 0xF, Version: b[0] & 3}
	n := untaggedLen
	if d.Tagged {
		n = taggedLen
		d.RsvdULP = b[1:2]
		d.STag, d.TO = binary.BigEndian.Uint32(b[2:]), binary.BigEndian.Uint64(b[6:])
	} else {
		d.RsvdULP = b[1:6]
		d.QN, d.MSN, d.MO = binary.BigEndian.Uint32(b[6:]), binary.BigEndian.Uint32(b[10:]),
			binary.BigEndian.Uint32(b[14:])
	}
	d.BaseLayer = layers.BaseLayer{Contents: b[:n], Payload: b[n:]}
	return nil
}

// decodeDDP decodes a segment with the RDMAP message, or part of one, that it carries.
func decodeDDP(b []byte, p gopacket.PacketBuilder) error {
	d, r := new(DDP), new(RDMAP)
	if err := d.decodeHeader(b); err != nil {
		return err
	}
	p.AddLayer(d)
	if err := r.DecodeFromDDP(d); err != nil {
		return err
	}
	p.AddLayer(r)
	if len(r.Payload) == 0 {
		return nil
	}
	return gopacket.LayerTypePayload.Decode(r.Payload, p)
}

// SerializeTo is for gopacket.SerializableLayer. RsvdULP is that of the RDMAP message:
// RDMAP.RsvdULP.
func (d *DDP) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	n, ulp := untaggedLen, 5
	if d.Tagged {
		n, ulp = taggedLen, 1
	}
	h, err := b.PrependBytes(n)
	if err != nil {
		return err
	}
	h[0] = uint8(bitAt(d.Tagged, 7)|bitAt(d.Last, 6)) | d.Reserved&0xF<<2 | d.Version&3
	clear(h[1 : 1+ulp])
	copy(h[1:1+ulp], d.RsvdULP)
	if d.Tagged {
		binary.BigEndian.PutUint32(h[2:], d.STag)
		binary.BigEndian.PutUint64(h[6:], d.TO)
		return nil
	}
	binary.BigEndian.PutUint32(h[6:], d.QN)
	binary.BigEndian.PutUint32(h[10:], d.MSN)
	binary.BigEndian.PutUint32(h[14:], d.MO)
	return nil
}
