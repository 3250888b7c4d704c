package iphdr

import (
	"encoding/binary"
	"net/netip"
)

// AddChecksum adds b to an internet checksum (RFC 1071). Pieces but the last must have an even
// length.
func AddChecksum(sum uint64, b []byte) uint64 {
	for len(b) >= 4 {
		sum += uint64(binary.BigEndian.Uint32(b))
		b = b[4:]
	}
	if len(b) >= 2 {
		sum += uint64(binary.BigEndian.Uint16(b))
		b = b[2:]
	}
	if len(b) == 1 {
		sum += uint64(b[0]) << 8
	}
	return sum
}

// foldChecksum reduces a sum to 16 bits with end-around carry.
func foldChecksum(sum uint64) uint16 {
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

// pseudoHeaderSum6 is the sum of the IPv6 pseudo-header (RFC 8200 section 8.1).
func pseudoHeaderSum6(src, dst netip.Addr, n int, next uint8) uint64 {
	s, d := src.As16(), dst.As16()
	return AddChecksum(AddChecksum(uint64(n)+uint64(next), s[:]), d[:])
}
