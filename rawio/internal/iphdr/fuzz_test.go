package iphdr

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// FuzzIP: whatever comes, Parse neither panics nor gives a payload outside the packet; what is
// sent, whole or in fragments, is what is parsed or put together again.
func FuzzIP(f *testing.F) {
	f.Add(ipv4Packet([]byte("payload")), uint16(1500))
	f.Add([]byte("0"), uint16(13))
	f.Add(ipv6Packet(ProtoSCTP, []byte("payload")), uint16(60))
	f.Add(ipv6Packet(extHopByHop, append([]byte{ProtoSCTP, 7: 0}, "payload"...)), uint16(30))
	f.Fuzz(func(t *testing.T, b []byte, mtu uint16) {
		roundTrip(t, b[:min(len(b), 2000)], int(mtu), a4, b4)
		roundTrip(t, b[:min(len(b), 2000)], int(mtu), a6, b6)
		p, err := Parse(b)
		check.That(t, err != nil && err != ErrFragment || p.HeaderLen+len(p.Payload) <= len(b) &&
			p.HeaderLen >= IPv4HeaderLen && bytes.Equal(b[p.HeaderLen:][:len(p.Payload)], p.Payload),
			"%+v of % x", p, b)
		if err == nil {
			if m, ok := ParseICMP(p); ok {
				ParseQuote(m.Body)
				EchoReply(p)
			}
		}
		if _, _, sctp, ok := ParseQuote(b); ok && (len(sctp) < MinQuoteOctets || len(sctp) > len(b)) {
			t.Errorf("quote of %d octets", len(sctp))
		}
	})
}

// roundTrip sends a payload in packets of at most mtu octets.
func roundTrip(t *testing.T, payload []byte, mtu int, src, dst netip.Addr) {
	var got []byte
	packets := 0
	err := Fragment(payload, mtu, ProtoSCTP, 3, src, dst, 7, func(b []byte) error {
		packets++
		head := IPv4HeaderLen
		if dst.Is6() {
			head = IPv6HeaderLen + fragmentHeaderLen6
		}
		p, err := Parse(b) // whole; where the MTU is too small for anything it may be an atomic fragment
		must.That(t, (err == nil || err == ErrFragment) && p.Src == src && p.Dst == dst && p.Proto == ProtoSCTP &&
			p.ECN == 3 && p.Offset == len(got) && len(b) <= max(mtu, head+8),
			"%+v in %d octets, %v; the MTU is %d", p, len(b), err, mtu)
		got = append(got, p.Payload...)
		return nil
	})
	must.That(t, err == nil && bytes.Equal(got, payload), "%d octets of %d in %d packets, %v", len(got), len(payload),
		packets, err)
}
