package iphdr

import (
	"encoding/binary"
	"net/netip"

	"github.com/rddp-go/rddp/rawio"
)

// ICMP and ICMPv6 types and codes (RFC 792, RFC 4443).
const (
	TypeEchoReply4   = 0
	TypeUnreachable4 = 3
	TypeEcho4        = 8
	TypeUnreachable6 = 1
	TypeTooBig6      = 2
	TypeParameter6   = 4
	TypeEcho6        = 128
	TypeEchoReply6   = 129

	codeHostUnreachable4     = 1
	codeProtocolUnreachable4 = 2
	codePortUnreachable4     = 3
	codeFragNeeded4          = 4
	codePortUnreachable6     = 4
	codeUnknownNextHeader6   = 1
)

// Smallest MTUs that a report may name: what every IPv4 and IPv6 link has to carry (RFC 791, RFC
// 8200 section 5). A lower report is a mistake or an attack.
const (
	minMTU4 = 68
	minMTU6 = 1280
)

// MinQuoteOctets is the least number of SCTP octets a quote must have to be of use: ports and
// verification tag.
const MinQuoteOctets = 8

// ClassifyICMP says what an ICMP (or, with v6, ICMPv6) message of this type and code means to SCTP.
// info is the next-hop MTU where the message has one. With udp, port unreachable counts as protocol
// unreachable (RFC 6951 section 5.5); without, it is ignored (RFC 9260 section 10). ok is false for
// every message that SCTP ignores.
func ClassifyICMP(v6, udp bool, typ, code uint8, info uint32) (kind rawio.Kind, mtu int, ok bool) {
	switch {
	case !v6 && typ == TypeUnreachable4 && code == codeFragNeeded4 && info >= minMTU4 && info <= MaxTotal4:
		return rawio.KindPacketTooBig, int(info), true
	case v6 && typ == TypeTooBig6 && info >= minMTU6 && info <= IPv6HeaderLen+MaxPayload:
		return rawio.KindPacketTooBig, int(info), true
	case !v6 && typ == TypeUnreachable4 && code == codeProtocolUnreachable4,
		v6 && typ == TypeParameter6 && code == codeUnknownNextHeader6,
		udp && !v6 && typ == TypeUnreachable4 && code == codePortUnreachable4,
		udp && v6 && typ == TypeUnreachable6 && code == codePortUnreachable6:
		return rawio.KindProtoUnreachable, 0, true
	// IPv4 only: a slow IPv6 neighbour would end set-ups
	case !v6 && typ == TypeUnreachable4 && code <= codeHostUnreachable4:
		return rawio.KindHostUnreachable, 0, true
	}
	return 0, 0, false
}

// ParseQuote reads the beginning of one of our own packets, as an ICMP message quotes it. The quote
// may be cut off anywhere behind the IP header. ok is true only for SCTP with at least
// MinQuoteOctets octets.
func ParseQuote(b []byte) (src, dst netip.Addr, sctp []byte, ok bool) {
	if len(b) == 0 {
		return
	}
	var proto uint8
	switch b[0] >> 4 {
	case 4:
		ihl := int(b[0]&15) * 4
		if ihl < IPv4HeaderLen || len(b) < ihl {
			return
		}
		total := int(binary.BigEndian.Uint16(b[2:]))
		src, dst, proto = netip.AddrFrom4([4]byte(b[12:])), netip.AddrFrom4([4]byte(b[16:])), b[9]
		sctp = b[ihl:min(len(b), max(ihl, total))]
	case 6:
		if len(b) < IPv6HeaderLen {
			return
		}
		src, dst = netip.AddrFrom16([16]byte(b[8:])), netip.AddrFrom16([16]byte(b[24:]))
		var err error
		if proto, sctp, err = SkipExtensions(b[6], b[IPv6HeaderLen:]); err != nil {
			return
		}
	}
	return src, dst, sctp, proto == ProtoSCTP && len(sctp) >= MinQuoteOctets
}

// ICMP is a checked ICMP or ICMPv6 message. Body is what follows its 8-octet header.
type ICMP struct {
	Type, Code uint8
	Info       uint32 // next-hop MTU of "fragmentation needed" and "packet too big", else 0
	Body       []byte
}

// ParseICMP checks the ICMP or ICMPv6 message that p carries: length and checksum.
func ParseICMP(p Packet) (m ICMP, ok bool) {
	b := p.Payload
	if len(b) < 8 {
		return m, false
	}
	sum := uint64(0)
	if p.Proto == ProtoICMPv6 {
		sum = pseudoHeaderSum6(p.Src, p.Dst, len(b), ProtoICMPv6)
	}
	if foldChecksum(AddChecksum(sum, b)) != 0xffff {
		return m, false
	}
	m = ICMP{Type: b[0], Code: b[1], Body: b[8:]}
	switch {
	case p.Proto == ProtoICMP && m.Type == TypeUnreachable4 && m.Code == codeFragNeeded4:
		m.Info = uint32(binary.BigEndian.Uint16(b[6:]))
	case p.Proto == ProtoICMPv6 && m.Type == TypeTooBig6:
		m.Info = binary.BigEndian.Uint32(b[4:])
	}
	return m, true
}

// EchoReply turns the echo request that p carries into its reply in place, payload only. It reports
// whether p was a request. The caller has checked the message with ParseICMP.
func EchoReply(p Packet) bool {
	b := p.Payload
	switch {
	case p.Proto == ProtoICMP && b[0] == TypeEcho4 && b[1] == 0:
		b[0] = TypeEchoReply4
	case p.Proto == ProtoICMPv6 && b[0] == TypeEcho6 && b[1] == 0:
		b[0] = TypeEchoReply6
	default:
		return false
	}
	sum := uint64(0)
	if p.Proto == ProtoICMPv6 {
		sum = pseudoHeaderSum6(p.Dst, p.Src, len(b), ProtoICMPv6)
	}
	b[2], b[3] = 0, 0
	binary.BigEndian.PutUint16(b[2:], ^foldChecksum(AddChecksum(sum, b)))
	return true
}
