package iphdr

import (
	"bytes"
	"encoding/binary"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/rawio"
)

var (
	a4 = netip.MustParseAddr("192.0.2.1")
	b4 = netip.MustParseAddr("198.51.100.2")
	a6 = netip.MustParseAddr("2001:db8::1")
	b6 = netip.MustParseAddr("2001:db8::2")
)

func ipv4Packet(payload []byte) []byte {
	b := bytes.Repeat([]byte{0xff}, IPv4HeaderLen+len(payload))
	PutIPv4Header(b, len(payload), ProtoSCTP, 2, a4, b4)
	copy(b[IPv4HeaderLen:], payload)
	return b
}

func ipv6Packet(next uint8, payload []byte) []byte {
	b := bytes.Repeat([]byte{0xff}, IPv6HeaderLen+len(payload))
	PutIPv6Header(b, len(payload), next, 1, a6, b6)
	copy(b[IPv6HeaderLen:], payload)
	return b
}

// ipv6Fragment is a fragment of n octets.
func ipv6Fragment(at uint16, more bool, n int) []byte {
	h := []byte{ProtoSCTP, 0xff, 0, 6, 1, 2, 3, 4} // reserved octets and bits are ignored
	binary.BigEndian.PutUint16(h[2:], at|6|bitIf(more, 1))
	return ipv6Packet(extFragment, append(h, make([]byte, n)...))
}

func TestPut4WritesEveryFieldOfTheHeader(t *testing.T) {
	b := bytes.Repeat([]byte{0xff}, IPv4HeaderLen)
	PutIPv4Header(b, 100, ProtoSCTP, 3, a4, b4)
	want := []byte{0x45, 3, 0, 120, 0, 0, 0x40, 0, 64, 132, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2}
	check.That(t, bytes.Equal(b[:10], want[:10]) && bytes.Equal(b[12:], want[12:]), "got  % x\nwant % x", b, want)
	// RFC 791: the sum over the header with its checksum is all ones.
	check.Equal(t, "sum", foldChecksum(AddChecksum(0, b)), 0xffff)
	ApplyMarks(b, &rawio.Packet{}, rawio.Mark{TTL: 7, Class: 0xbb})
	check.Equal(t, "sum with a mark", foldChecksum(AddChecksum(0, b)), 0xffff)
	check.Slice(t, "TOS and TTL", []byte{b[1], b[8]}, []byte{0xbb, 7}) // the ECN field stays
	b6 := ipv6Packet(ProtoSCTP, nil)                                   // with ECN 1
	ApplyMarks(b6, &rawio.Packet{}, rawio.Mark{TTL: 7, Class: 0xba})
	check.Slice(t, "IPv6 with a mark", b6[:8], []byte{0x6b, 0x90, 0, 0, 0, 0, ProtoSCTP, 7})
	b6 = ipv6Packet(ProtoSCTP, nil)
	ApplyMarks(b6, &rawio.Packet{DSCP: 1, FlowLabel: 0xabcde}, rawio.Mark{Class: 0xba})
	check.Slice(t, "the mark of a packet goes first", b6[:8], []byte{0x60, 0x5a, 0xbc, 0xde, 0, 0, ProtoSCTP, 64})
	PutIPv4Header(b, 100, ProtoSCTP, 0, netip.Addr{}, b4)
	check.Slice(t, "octets of an invalid source", b[12:16], make([]byte, 4))
}

func TestRoundTrip(t *testing.T) {
	payload := []byte("an SCTP packet")
	for _, test := range []struct {
		name string
		b    []byte
		want Packet
	}{
		{"IPv4", ipv4Packet(payload), Packet{Src: a4, Dst: b4, Payload: payload, HeaderLen: 20, Proto: ProtoSCTP, ECN: 2}},
		{"IPv4 with octets behind its length", append(ipv4Packet(payload), 0, 0), Packet{Src: a4, Dst: b4, Payload: payload, HeaderLen: 20, Proto: ProtoSCTP, ECN: 2}},
		{"IPv6", ipv6Packet(ProtoSCTP, payload), Packet{Src: a6, Dst: b6, Payload: payload, HeaderLen: 40, Proto: ProtoSCTP, ECN: 1}},
		{"IPv4 header alone", ipv4Packet(nil), Packet{Src: a4, Dst: b4, HeaderLen: 20, Proto: ProtoSCTP, ECN: 2}},
		{"IPv6 header alone", ipv6Packet(ProtoSCTP, nil), Packet{Src: a6, Dst: b6, HeaderLen: 40, Proto: ProtoSCTP, ECN: 1}},
		{"IPv6 extension header alone", ipv6Packet(extDestination, []byte{59, 0, 7: 0}), Packet{Src: a6, Dst: b6, HeaderLen: 48, Proto: 59, ECN: 1}},
		{"IPv6 with octets behind its length", append(ipv6Packet(ProtoSCTP, payload), 0, 0), Packet{Src: a6, Dst: b6, Payload: payload, HeaderLen: 40, Proto: ProtoSCTP, ECN: 1}},
		{"IPv6 behind two extension headers",
			ipv6Packet(extHopByHop, append([]byte{extDestination, 1, 15: 0, 16: ProtoSCTP, 23: 0}, payload...)),
			Packet{Src: a6, Dst: b6, Payload: payload, HeaderLen: 64, Proto: ProtoSCTP, ECN: 1}},
		// RFC 6946: a fragment header without fragmentation is as good as none.
		{"IPv6 atomic fragment", ipv6Packet(extFragment, append([]byte{ProtoSCTP, 0, 0, 0, 1, 2, 3, 4}, payload...)),
			Packet{Src: a6, Dst: b6, Payload: payload, HeaderLen: 48, Proto: ProtoSCTP, ECN: 1}},
		{"IPv6 atomic fragment with reserved octets",
			ipv6Packet(extFragment, append([]byte{extDestination, 0xff, 0, 6, 1, 2, 3, 4, ProtoSCTP, 7 + 8: 0},
				payload...)),
			Packet{Src: a6, Dst: b6, Payload: payload, HeaderLen: 56, Proto: ProtoSCTP, ECN: 1}},
	} {
		got, err := Parse(test.b)
		check.That(t, err == nil && got.Src == test.want.Src && got.Dst == test.want.Dst &&
			bytes.Equal(got.Payload, test.want.Payload) &&
			got.HeaderLen == test.want.HeaderLen && got.Proto == test.want.Proto && got.ECN == test.want.ECN,
			"%s: %+v, %v, want %+v", test.name, got, err, test.want)
	}
}

func TestParseRefuses(t *testing.T) {
	change := func(b []byte, at int, v ...byte) []byte {
		b = bytes.Clone(b)
		copy(b[at:], v)
		if b[0]>>4 == 4 {
			b[10], b[11] = 0, 0
			binary.BigEndian.PutUint16(b[10:], ^foldChecksum(AddChecksum(0, b[:20])))
		}
		return b
	}
	p4, p6 := ipv4Packet([]byte("payload")), ipv6Packet(ProtoSCTP, []byte("payload"))
	mapped := netip.MustParseAddr("::ffff:192.0.2.1").As16()
	corrupt := bytes.Clone(p4)
	corrupt[8]--
	for _, test := range []struct {
		name string
		b    []byte
		want error
	}{
		{"nothing", nil, ErrMalformed},
		{"another version", []byte{0x50}, ErrMalformed},
		{"IPv4 header cut off", p4[:19], ErrMalformed},
		{"IPv4 packet cut off", p4[:len(p4)-1], ErrMalformed},
		{"IPv4 header length below 5 words", change(p4, 0, 0x44), ErrMalformed},
		{"IPv4 header longer than the packet", change(p4, 0, 0x4f), ErrMalformed},
		{"IPv4 total length below the header's", change(p4, 2, 0, 19), ErrMalformed},
		{"IPv4 wrong checksum", corrupt, ErrChecksum},
		{"IPv4 first fragment", change(ipv4Packet(make([]byte, 16)), 6, 0x20, 0), ErrFragment},
		{"IPv4 last fragment", change(p4, 6, 0, 1), ErrFragment},
		{"IPv6 header cut off", p6[:39], ErrMalformed},
		{"IPv6 header cut off within its first word", p6[:1], ErrMalformed},
		{"IPv6 packet cut off", p6[:len(p6)-1], ErrMalformed},
		{"IPv4 fragment with a wrong checksum", append(bytes.Clone(p4[:7]), append([]byte{1}, p4[8:]...)...), ErrChecksum},
		{"IPv4 first fragment of no multiple of 8 octets", change(ipv4Packet([]byte("nine octets")), 6, 0x20, 0), ErrMalformed},
		{"IPv4 fragment of nothing", change(ipv4Packet(nil), 6, 0, 1), ErrMalformed},
		{"IPv4 fragment up to 65,535 octets", change(ipv4Packet(make([]byte, 65515-8184*8)), 6, 0x1f, 0xf8), ErrFragment},
		{"IPv4 fragment beyond", change(ipv4Packet(make([]byte, 65516-8184*8)), 6, 0x1f, 0xf8), ErrMalformed},
		{"IPv6 first fragment", ipv6Fragment(0, true, 8), ErrFragment},
		{"IPv6 last fragment", ipv6Fragment(8, false, 5), ErrFragment},
		{"IPv6 first fragment of no multiple of 8 octets", ipv6Fragment(0, true, 9), ErrMalformed},
		{"IPv6 fragment of nothing", ipv6Fragment(8, false, 0), ErrMalformed},
		{"IPv6 fragment up to 65,535 octets", ipv6Fragment(65528, false, 7), ErrFragment},
		{"IPv6 fragment beyond", ipv6Fragment(65528, false, 8), ErrMalformed},
		{"IPv6 fragment beyond with the extension header in front", ipv6Packet(extDestination, append([]byte{extFragment, 7: 0}, ipv6Fragment(65520, false, 8)[IPv6HeaderLen:]...)), ErrMalformed},
		{"IPv6 fragment header cut off", ipv6Packet(extFragment, make([]byte, 7)), ErrMalformed},
		{"IPv6 extension header cut off", ipv6Packet(extHopByHop, make([]byte, 7)), ErrMalformed},
		{"IPv6 extension header longer than the packet", ipv6Packet(extHopByHop, []byte{59, 1, 7: 0}), ErrMalformed},
		{"IPv6 from an IPv4-mapped address", change(p6, 8, mapped[:]...), ErrMalformed},
		{"IPv6 to an IPv4-mapped address", change(p6, 24, mapped[:]...), ErrMalformed},
		{"IPv6 routing header with segments left", ipv6Packet(extRouting, []byte{132, 0, 0, 1, 7: 0}), ErrMalformed},
	} {
		_, err := Parse(test.b)
		check.That(t, err == test.want, "%s: %v, want %v", test.name, err, test.want)
	}
	check.Fails(ParseIPv4(change(p4, 0, 0x65)))(t, "another version, of which the caller says that it is IPv4's",
		ErrMalformed)
}

func TestParseFragment(t *testing.T) {
	for _, test := range []struct {
		name string
		b    []byte
		want Packet
	}{
		{"IPv4", []byte{0x46, 1, 0, 32, 7, 8, 0x20, 2, 64, ProtoSCTP, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2, 1, 1, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8},
			Packet{Src: a4, Dst: b4, HeaderLen: 24, Offset: 16, MoreFragments: true, ID: 0x708, Proto: ProtoSCTP,
				ECN: 1}},
		{"IPv6", ipv6Packet(extHopByHop, []byte{extFragment, 7: 0, 8: ProtoSCTP, 11: 0x11, 12: 1, 2, 3, 4, 1, 2, 3, 4,
			5,
			6, 7, 8}),
			Packet{Src: a6, Dst: b6, HeaderLen: 56, Offset: 16, MoreFragments: true, ID: 0x1020304, Proto: ProtoSCTP,
				ECN: 1}},
		{"IPv6, behind it an extension header",
			ipv6Packet(extFragment, []byte{extDestination, 3: 1, 4: 1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8}),
			Packet{Src: a6, Dst: b6, HeaderLen: 48, MoreFragments: true, ID: 0x1020304, Proto: extDestination, ECN: 1}},
	} {
		if test.b[0]>>4 == 4 {
			binary.BigEndian.PutUint16(test.b[10:], ^foldChecksum(AddChecksum(0, test.b[:24])))
		}
		got, err := Parse(test.b)
		payload := got.Payload
		got.Payload = nil
		check.That(t, err == ErrFragment && reflect.DeepEqual(got, test.want) &&
			bytes.Equal(payload, []byte{1, 2, 3, 4, 5, 6, 7, 8}),
			"%s: %+v % x, %v, want %+v", test.name, got, payload, err, test.want)
	}
}

func TestPayloadIsTheMTULessTheHeader(t *testing.T) {
	for _, test := range []struct {
		name string
		mtu  int
		v6   bool
		want int
	}{
		{"IPv4 Ethernet", 1500, false, 1480},
		{"IPv6 Ethernet", 1500, true, 1460},
		{"IPv4's total length has 16 bits", 65536, false, 65515},
		{"IPv6 loopback", 65536, true, 65496},
		{"IPv6's payload length has 16 bits", 1 << 20, true, 65535},
		{"no room at all", 10, true, 0},
	} {
		check.Equal(t, test.name, PayloadLimit(test.mtu, test.v6), test.want)
	}
}

func TestICMPTypesAndCodesMeanWhatTheRFCsSay(t *testing.T) {
	const big, unreachable, host = rawio.KindPacketTooBig, rawio.KindProtoUnreachable, rawio.KindHostUnreachable
	for _, test := range []struct {
		name      string
		v6, udp   bool
		typ, code uint8
		info      uint32
		kind      rawio.Kind
		mtu       int
		ok        bool
	}{
		// req 9260-10-8
		{"fragmentation needed", false, false, 3, 4, 1400, big, 1400, true},
		{"packet too big", true, false, 2, 0, 1400, big, 1400, true},
		{"an MTU that no IPv4 link may have", false, false, 3, 4, 67, 0, 0, false},
		{"an MTU that no IPv6 link may have", true, false, 2, 0, 1279, 0, 0, false},
		{"an absurd MTU", true, false, 2, 0, 1<<32 - 1, 0, 0, false},
		// RFC 9260, 10, ICMP8.
		{"protocol unreachable", false, false, 3, 2, 0, unreachable, 0, true},
		{"unrecognized next header", true, false, 4, 1, 40, unreachable, 0, true},
		// req 9260-10-3
		{"port unreachable means nothing to native SCTP", false, false, 3, 3, 0, 0, 0, false},
		{"nor in IPv6", true, false, 1, 4, 0, 0, 0, false},
		// req 6951-5.5-3, req 6951-5.5-4
		{"over UDP, port unreachable is protocol unreachable", false, true, 3, 3, 0, unreachable, 0, true},
		{"over UDP in IPv6", true, true, 1, 4, 0, unreachable, 0, true},
		{"net unreachable", false, false, 3, 0, 0, host, 0, true},
		{"host unreachable", false, true, 3, 1, 0, host, 0, true},
		{"no route in IPv6", true, false, 1, 0, 0, 0, 0, false},
		{"address unreachable in IPv6", true, true, 1, 3, 0, 0, 0, false},
		{"beyond scope of the source address", true, false, 1, 2, 0, 0, 0, false},
		// req 9260-10-1, req 9260-10-2
		{"time exceeded", false, false, 11, 0, 0, 0, 0, false},
	} {
		kind, mtu, ok := ClassifyICMP(test.v6, test.udp, test.typ, test.code, test.info)
		check.That(t, kind == test.kind && mtu == test.mtu && ok == test.ok, "%s: %v, %d, %v", test.name, kind, mtu, ok)
	}
	for _, test := range []struct { // nothing else means anything, and nothing with an MTU that no link has
		v6, udp     bool
		least, most uint32 // the MTUs that there are
		want, sized int    // types and codes, and those that come with an MTU
	}{{false, false, 68, 65535, 4, 1}, {false, true, 68, 65535, 5, 1}, {true, false, 1280, 65575, 257, 256},
		{true, true, 1280, 65575, 258, 256}} {
		for info, want := range map[uint32]int{test.least: test.want, test.most: test.want,
			test.least - 1: test.want - test.sized, test.most + 1: test.want - test.sized} {
			n := 0
			for i := range 1 << 16 {
				if _, _, ok := ClassifyICMP(test.v6, test.udp, uint8(i>>8), uint8(i), info); ok {
					n++
				}
			}
			check.That(t, n == want, "IPv6 %v, UDP %v, MTU %d: %d types and codes, want %d", test.v6, test.udp, info,
				n, want)
		}
	}
}

// Of all messages two have a next-hop MTU: 16 bits of ICMP, 32 of ICMPv6.
func TestMTUIsThatOfTheMessagesThatHaveOne(t *testing.T) {
	for proto, want := range map[uint8]map[uint32]int{ProtoICMP: {0: 1<<16 - 1, 1400: 1},
		ProtoICMPv6: {0: 1<<16 - 256, 0x1020578: 256}} {
		got := make(map[uint32]int)
		for i := range 1 << 16 {
			p := Packet{Src: a6, Dst: b6, Proto: proto, Payload: []byte{byte(i >> 8), byte(i), 0, 0, 1, 2, 1400 >> 8,
				1400 & 255}}
			sum := uint64(0)
			if proto == ProtoICMPv6 {
				// RFC 8200 section 8.1
				sum = AddChecksum(0, slices.Concat(a6.AsSlice(), b6.AsSlice(), []byte{0, 0, 0, 8, 0, 0, 0, 58}))
			}
			binary.BigEndian.PutUint16(p.Payload[2:], ^foldChecksum(AddChecksum(sum, p.Payload)))
			if m, ok := ParseICMP(p); ok && m.Type == p.Payload[0] && m.Code == p.Payload[1] && len(m.Body) == 0 {
				got[m.Info]++
			}
		}
		check.That(t, maps.Equal(got, want), "protocol %d: MTUs %v, want %v", proto, got, want)
	}
}

func TestQuoteOfAnotherHostsPacketIsRefused(t *testing.T) {
	head := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	long := ipv4Packet(append(head, make([]byte, 1000)...))
	for _, test := range []struct {
		name     string
		b        []byte
		src, dst netip.Addr
		n        int // octets quoted, 0 for refused
	}{
		{"IPv4 cut off after 8 octets", long[:28], a4, b4, 8},
		{"IPv4 cut off in the middle", long[:500], a4, b4, 480},
		{"IPv4 whole, with padding behind", append(ipv4Packet(head), 0, 0), a4, b4, 8},
		{"IPv4 too short for a verification tag", long[:27], a4, b4, 0},
		{"IPv4 header cut off", long[:19], a4, b4, 0},
		{"IPv6", ipv6Packet(ProtoSCTP, head), a6, b6, 8},
		{"IPv6 behind an extension header", ipv6Packet(extDestination, append([]byte{ProtoSCTP, 7: 0}, head...)), a6, b6, 8},
		{"another protocol", ipv6Packet(ProtoUDP, head), a6, b6, 0},
		{"nothing", nil, a4, b4, 0},
	} {
		src, dst, sctp, ok := ParseQuote(test.b)
		check.That(t, ok == (test.n > 0) && (!ok || src == test.src && dst == test.dst && len(sctp) == test.n &&
			bytes.HasPrefix(sctp, head)),
			"%s: %v %v % x %v", test.name, src, dst, sctp, ok)
	}
}

func TestEchoReply(t *testing.T) {
	for _, test := range []struct {
		name           string
		p              Packet
		request, reply uint8
	}{
		{"ICMP", Packet{Src: a4, Dst: b4, Proto: ProtoICMP}, 8, 0},
		{"ICMPv6", Packet{Src: a6, Dst: b6, Proto: ProtoICMPv6}, 128, 129},
	} {
		p := test.p
		p.Payload = []byte{test.request, 0, 0, 0, 1, 2, 3, 4, 'd', 'a', 't'} // odd length
		_, ok := ParseICMP(p)
		check.That(t, !ok, "%s: accepted without a checksum", test.name)
		sum := uint64(0)
		if p.Proto == ProtoICMPv6 {
			sum = pseudoHeaderSum6(p.Src, p.Dst, len(p.Payload), ProtoICMPv6)
		}
		binary.BigEndian.PutUint16(p.Payload[2:], ^foldChecksum(AddChecksum(sum, p.Payload)))
		m, ok := ParseICMP(p)
		check.That(t, ok && m.Type == test.request, "%s: %+v, %v", test.name, m, ok)
		check.That(t, EchoReply(p), "%s: no reply", test.name)
		p.Src, p.Dst = p.Dst, p.Src
		m, ok = ParseICMP(p)
		check.That(t, ok && m.Type == test.reply && string(m.Body) == "dat", "%s: reply %+v, %v", test.name, m, ok)
		check.That(t, !EchoReply(p), "%s: answered a reply", test.name)
		p.Payload[0], p.Payload[1] = test.request, 1
		check.That(t, !EchoReply(p), "%s: answered a request with a code", test.name)
	}
}

// Sums that were computed by hand: that of RFC 1071 section 3, and with an odd octet, which counts
// as the first of a pair.
func TestSumsOfRFC1071(t *testing.T) {
	for _, row := range []struct {
		octets []byte
		want   uint16
	}{
		{[]byte{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}, 0xddf2},
		{[]byte{0x12}, 0x1200},
		{[]byte{0x12, 0x34}, 0x1234},
		{[]byte{0x12, 0x34, 0x56}, 0x6834},
		{[]byte{0xff, 0xff, 0xff, 0xff, 0x01}, 0x0100},
		{[]byte{0xff, 0xff, 0x00, 0x01}, 0x0001},
	} {
		got := foldChecksum(AddChecksum(0, row.octets))
		check.That(t, got == row.want, "sum of %x is %#04x, want %#04x", row.octets, got, row.want)
	}
	udp := append(make([]byte, UDPHeaderLen), 1, 2, 3) // RFC 768: of a pseudo-header too
	PutUDPHeader(udp, netip.MustParseAddrPort("192.0.2.1:7"), netip.MustParseAddrPort("192.0.2.2:9"))
	check.Equal(t, "UDP header", binary.BigEndian.Uint64(udp), 0x0007_0009_000b_77c2)
}
