package wire

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/internal/crc32c"
)

// zeros stands for the checksum field while the checksum is computed, and for padding. It is never
// written to.
var zeros [4]byte

// Checksum returns the CRC32c of the packet whose octets are the pieces of vec in order (RFC 9260
// section 6.8 and appendix A). The checksum field, octets 8 to 11 of the packet, counts as zero
// whatever it holds. It must lie in the first piece: vec[0] holds at least the common header. The
// pieces are neither joined nor written to.
func Checksum(vec [][]byte) uint32 {
	sum := ChecksumBytes(vec[0])
	for _, p := range vec[1:] {
		sum = crc32c.Update(sum, p)
	}
	return sum
}

// PutPacketChecksum computes the checksum of the packet whose octets are the pieces of vec, as
// Checksum does, and stores it.
func PutPacketChecksum(vec [][]byte) {
	PutChecksum(vec[0], 0)
	sum := uint32(0)
	for _, p := range vec {
		sum = crc32c.Update(sum, p)
	}
	PutChecksum(vec[0], sum)
}

// ChecksumBytes is Checksum for a packet in one piece of at least CommonHeaderLen octets.
func ChecksumBytes(pkt []byte) uint32 {
	return crc32c.Update(headerSum(pkt), pkt[CommonHeaderLen:])
}

// headerSum is the checksum of the common header.
func headerSum(pkt []byte) uint32 {
	return crc32c.Update(crc32c.Update(0, pkt[:8]), zeros[:])
}

// HeaderSum remembers the checksum of one common header: in one direction those of an association
// are alike. The zero value remembers none.
type HeaderSum struct {
	headerPrefix uint64 // octets 0 to 7; all 0 means that none is remembered
	sum          uint32
}

// OK is p.ChecksumOK, but cheaper for a packet with the header of the one before.
func (h *HeaderSum) OK(p Packet) bool {
	if k := binary.LittleEndian.Uint64(p); k != h.headerPrefix || k == 0 {
		h.headerPrefix, h.sum = k, headerSum(p)
	}
	return crc32c.Update(h.sum, p[CommonHeaderLen:]) == p.Checksum()
}

// PutChecksum stores sum in the checksum field of the common header, least significant octet first.
// header is at least the common header.
func PutChecksum(header []byte, sum uint32) { binary.LittleEndian.PutUint32(header[8:], sum) }
