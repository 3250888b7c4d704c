package wire

import "encoding/binary"

// CommonHeaderLen is the length of the common header in octets.
const CommonHeaderLen = 12

// Packet is a view of one SCTP packet (RFC 9260 section 3.1). Make one with ParsePacket.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|       Source Port Number      |    Destination Port Number    |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                        Verification Tag                       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                            Checksum                           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type Packet []byte

// ParsePacket returns b as a packet, or ErrPacketShort when b cannot hold the common header. It
// looks at nothing else: neither the checksum nor the chunks.
func ParsePacket(b []byte) (Packet, error) {
	if len(b) < CommonHeaderLen {
		return nil, ErrPacketShort
	}
	return Packet(b), nil
}

// SrcPort returns the Source Port Number. 0 is not valid.
func (p Packet) SrcPort() uint16 { return binary.BigEndian.Uint16(p[0:]) }

// DstPort returns the Destination Port Number. 0 is not valid.
func (p Packet) DstPort() uint16 { return binary.BigEndian.Uint16(p[2:]) }

// VTag returns the Verification Tag.
func (p Packet) VTag() uint32 { return binary.BigEndian.Uint32(p[4:]) }

// Checksum returns the CRC32c that the packet carries, as the value that the function Checksum
// returns. This field alone is sent least significant octet first (RFC 9260 appendix A).
func (p Packet) Checksum() uint32 { return binary.LittleEndian.Uint32(p[8:]) }

// ChecksumOK reports whether the packet carries its own CRC32c (RFC 9260 section 6.8).
func (p Packet) ChecksumOK() bool { return ChecksumBytes(p) == p.Checksum() }

// Chunks returns an iterator over the chunks in packet order.
func (p Packet) Chunks() Chunks { return Chunks{rest: p[CommonHeaderLen:]} }

// AppendHeader appends a common header whose checksum is 0. When the packet is complete, store its
// checksum with PutChecksum.
func AppendHeader(b []byte, src, dst uint16, vtag uint32) []byte {
	b = binary.BigEndian.AppendUint16(b, src)
	b = binary.BigEndian.AppendUint16(b, dst)
	b = binary.BigEndian.AppendUint32(b, vtag)
	return append(b, 0, 0, 0, 0)
}
