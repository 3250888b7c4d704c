package iphdr

import (
	"encoding/binary"
	"net/netip"
)

// UDPHeaderLen is the length of the UDP header in octets.
const UDPHeaderLen = 8

// PutUDPHeader writes the header and the checksum of the UDP packet b, whose payload is in place
// (RFC 768, RFC 8200 section 8.1).
func PutUDPHeader(b []byte, src, dst netip.AddrPort) {
	binary.BigEndian.PutUint16(b, src.Port())
	binary.BigEndian.PutUint16(b[2:], dst.Port())
	binary.BigEndian.PutUint16(b[4:], uint16(len(b)))
	binary.BigEndian.PutUint16(b[6:], 0)
	sum := uint64(len(b)) + ProtoUDP
	for _, a := range []netip.Addr{src.Addr(), dst.Addr()} {
		if a.Is4() {
			s := a.As4()
			sum = AddChecksum(sum, s[:])
		} else {
			s := a.As16()
			sum = AddChecksum(sum, s[:])
		}
	}
	check := ^foldChecksum(AddChecksum(sum, b))
	if check == 0 {
		check = 0xffff // zero on the wire means: no checksum
	}
	binary.BigEndian.PutUint16(b[6:], check)
}
