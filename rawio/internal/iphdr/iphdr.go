package iphdr

import (
	"encoding/binary"
	"errors"
	"net/netip"
)

// Protocol numbers of the IP header.
const (
	ProtoICMP   = 1
	ProtoUDP    = 17
	ProtoICMPv6 = 58
	ProtoSCTP   = 132
)

// Header lengths and limits, in octets.
const (
	IPv4HeaderLen = 20    // IPv4 header without options
	IPv6HeaderLen = 40    // IPv6 header without extension headers
	MaxTotal4     = 65535 // largest IPv4 packet
	MaxPayload    = 65535 // largest payload of an IPv6 packet that is no jumbogram
)

// HopLimit is the TTL or hop limit of packets we build. RFC 9260 leaves it to the host; 64 is the
// value of the IANA registry.
const HopLimit = 64

// Why Parse refuses a packet.
var (
	ErrMalformed = errors.New("malformed IP header")
	ErrChecksum  = errors.New("wrong IPv4 header checksum")
	ErrFragment  = errors.New("IP fragment")
)

// PayloadLimit returns how many octets an IP packet of at most mtu octets can carry, without
// options or extension headers. An IPv4 packet counts its header into the 65,535 octets, an IPv6
// one does not.
func PayloadLimit(mtu int, v6 bool) int {
	if v6 {
		return max(0, min(mtu-IPv6HeaderLen, MaxPayload))
	}
	return max(0, min(mtu, MaxTotal4)-IPv4HeaderLen)
}

// PutIPv4Header writes a 20-octet IPv4 header with DF set and its checksum. payload is the length
// of what follows, in octets; an invalid src leaves the address 0. b must have 20 octets, and
// payload must be at most 65,515.
func PutIPv4Header(b []byte, payload int, proto, ecn uint8, src, dst netip.Addr) {
	b = b[:IPv4HeaderLen]
	b[0] = 0x45
	b[1] = ecn & 3
	binary.BigEndian.PutUint16(b[2:], uint16(IPv4HeaderLen+payload))
	binary.BigEndian.PutUint16(b[4:], 0)      // identification: atomic datagram (RFC 6864 section 4.1)
	binary.BigEndian.PutUint16(b[6:], 0x4000) // DF
	b[8] = HopLimit
	b[9] = proto
	binary.BigEndian.PutUint16(b[10:], 0)
	s := [4]byte{}
	if src.IsValid() {
		s = src.As4()
	}
	d := dst.As4()
	copy(b[12:], s[:])
	copy(b[16:], d[:])
	binary.BigEndian.PutUint16(b[10:], ^foldChecksum(AddChecksum(0, b)))
}

// PutIPv6Header writes a 40-octet IPv6 header. payload is the length of what follows, in octets, at
// most 65,535. b must have 40 octets; an invalid src leaves the address unspecified.
func PutIPv6Header(b []byte, payload int, next, ecn uint8, src, dst netip.Addr) {
	binary.BigEndian.PutUint32(b, 6<<28|uint32(ecn&3)<<20)
	binary.BigEndian.PutUint16(b[4:], uint16(payload))
	b[6] = next
	b[7] = HopLimit
	s := [16]byte{}
	if src.IsValid() {
		s = src.As16()
	}
	d := dst.As16()
	copy(b[8:], s[:])
	copy(b[24:IPv6HeaderLen], d[:])
}

// Packet is a checked IP packet, or a fragment of one. Payload is a view into the octets given to
// Parse.
type Packet struct {
	Src, Dst  netip.Addr
	Payload   []byte
	HeaderLen int   // octets in front of Payload, extension headers included
	Proto     uint8 // of the payload, behind IPv6 extension headers; of an IPv6 fragment what its header names next
	ECN       uint8

	// Of a fragment, else 0:
	MoreFragments bool   // not the last one; its payload is a multiple of 8 octets
	Offset        int    // of the payload, in octets
	ID            uint32 // common to the fragments of a packet
}

// Parse checks the header of the IP packet b, of either version: lengths and, for IPv4, the
// checksum. It cuts off octets behind the packet's own length. With ErrFragment it returns a
// fragment whose length and offset are possible in an IP packet.
func Parse(b []byte) (Packet, error) {
	if len(b) == 0 {
		return Packet{}, ErrMalformed
	}
	switch b[0] >> 4 {
	case 4:
		p, err := ParseIPv4(b)
		if err != ErrMalformed && foldChecksum(AddChecksum(0, b[:int(b[0]&15)*4])) != 0xffff {
			return Packet{}, ErrChecksum
		}
		return p, err
	case 6:
		return parseIPv6(b)
	}
	return Packet{}, ErrMalformed
}

// ParseIPv4 is Parse for IPv4 without the checksum, for packets that the kernel has checked.
func ParseIPv4(b []byte) (p Packet, err error) {
	if len(b) < IPv4HeaderLen || b[0]>>4 != 4 {
		return p, ErrMalformed
	}
	ihl := int(b[0]&15) * 4
	total := int(binary.BigEndian.Uint16(b[2:]))
	if ihl < IPv4HeaderLen || total < ihl || total > len(b) {
		return p, ErrMalformed
	}
	p.Src, p.Dst = netip.AddrFrom4([4]byte(b[12:])), netip.AddrFrom4([4]byte(b[16:]))
	p.HeaderLen, p.Payload, p.Proto, p.ECN = ihl, b[ihl:total], b[9], b[1]&3
	if f := binary.BigEndian.Uint16(b[6:]); f&0x3fff != 0 { // MF or an offset
		p.ID, p.Offset, p.MoreFragments = uint32(binary.BigEndian.Uint16(b[4:])), int(f&0x1fff)*8, f&0x2000 != 0
		return p, p.checkFragment(MaxTotal4 - ihl)
	}
	return p, nil
}

// checkFragment returns ErrFragment if a packet with at most that many octets behind its headers
// can have this fragment. See RFC 791 section 3.1 and RFC 8200 section 4.5.
func (p *Packet) checkFragment(most int) error {
	n := len(p.Payload)
	if n == 0 || p.MoreFragments && n%8 != 0 || p.Offset+n > most {
		return ErrMalformed
	}
	return ErrFragment
}

func parseIPv6(b []byte) (Packet, error) {
	if len(b) < IPv6HeaderLen {
		return Packet{}, ErrMalformed
	}
	n := int(binary.BigEndian.Uint16(b[4:]))
	if n > len(b)-IPv6HeaderLen {
		return Packet{}, ErrMalformed
	}
	p := Packet{
		Src: netip.AddrFrom16([16]byte(b[8:])), Dst: netip.AddrFrom16([16]byte(b[24:])),
		ECN: b[1] >> 4 & 3,
	}
	if p.Src.Is4In6() || p.Dst.Is4In6() { // not allowed on the wire (RFC 6890): above, they would be IPv4
		return Packet{}, ErrMalformed
	}
	var err error
	p.Proto, p.Payload, err = SkipExtensions(b[6], b[IPv6HeaderLen:IPv6HeaderLen+n])
	p.HeaderLen = IPv6HeaderLen + n - len(p.Payload)
	if err == ErrFragment {
		most := MaxPayload - (p.HeaderLen - IPv6HeaderLen) // the headers in front are the whole packet's
		h := p.Payload[:fragmentHeaderLen6]
		p.Payload, p.HeaderLen = p.Payload[fragmentHeaderLen6:], p.HeaderLen+fragmentHeaderLen6
		f := binary.BigEndian.Uint16(h[2:])
		p.Proto, p.ID, p.Offset, p.MoreFragments = h[0], binary.BigEndian.Uint32(h[4:]), int(f&^7), f&1 != 0
		err = p.checkFragment(most)
	}
	return p, err
}

// IPv6 extension headers (RFC 8200 section 4).
const (
	extHopByHop    = 0
	extRouting     = 43
	extFragment    = 44
	extDestination = 60
)

// SkipExtensions walks the extension headers in front of an upper-layer header. Each one takes at
// least 8 octets off b, so the walk ends. At a fragment header it ends with ErrFragment, and
// rest begins with that header. An atomic fragment is a whole packet, and the walk goes on (RFC
// 8200 section 4.5, RFC 6946).
func SkipExtensions(next uint8, b []byte) (proto uint8, rest []byte, err error) {
	for {
		switch next {
		case extHopByHop, extRouting, extFragment, extDestination:
		default:
			return next, b, nil
		}
		if len(b) < 8 {
			return 0, nil, ErrMalformed
		}
		n := 8 + 8*int(b[1])
		if next == extFragment {
			if binary.BigEndian.Uint16(b[2:])&^6 != 0 { // an offset or M; two bits and the length octet are reserved
				return next, b, ErrFragment
			}
			n = fragmentHeaderLen6
		}
		if n > len(b) {
			return 0, nil, ErrMalformed
		}
		if next == extRouting && b[3] != 0 { // segments left: not for us (RFC 8200 section 4.4)
			return 0, nil, ErrMalformed
		}
		next, b = b[0], b[n:]
	}
}
