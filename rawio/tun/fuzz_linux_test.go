package tun

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"os"
	"testing"

	"github.com/rddp-go/rddp/fuzz/corpus"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/iphdr"
)

// What FuzzReceive makes right before it hands a packet over, so that more of them get past the
// first check: the bits of its first octet.
const (
	fixSum     = 1 << iota // the checksum of the IPv4 header
	fixICMP                // that of ICMP
	fixAddress             // ours is the destination
	fixQuote               // and the source of what an ICMP message quotes
)

var (
	own4, own6   = netip.MustParseAddr("10.9.1.2"), netip.MustParseAddr("fd09::2")
	peer4, peer6 = netip.MustParseAddr("10.9.1.7"), netip.MustParseAddr("fd09::7")
)

func fixChecksums(how byte, b []byte) []byte {
	b = bytes.Clone(b)
	if len(b) < iphdr.IPv6HeaderLen {
		return b
	}
	v4 := b[0]>>4 == 4
	at := iphdr.IPv6HeaderLen
	if v4 {
		at = min(int(b[0]&15)*4, len(b))
	}
	if how&fixAddress != 0 {
		if v4 {
			copy(b[16:], own4.AsSlice())
		} else {
			copy(b[24:], own6.AsSlice())
		}
	}
	if q := at + 8; how&fixQuote != 0 && len(b) >= q+iphdr.IPv6HeaderLen {
		if b[q]>>4 == 4 {
			copy(b[q+12:], own4.AsSlice())
		} else {
			copy(b[q+8:], own6.AsSlice())
		}
	}
	if how&fixICMP != 0 && len(b) >= at+4 {
		var pseudo uint64
		if !v4 {
			pseudo = iphdr.AddChecksum(uint64(len(b)-at)+iphdr.ProtoICMPv6, b[8:iphdr.IPv6HeaderLen])
		}
		putChecksum(b[at:], 2, pseudo)
	}
	if how&fixSum != 0 && v4 && at >= iphdr.IPv4HeaderLen {
		putChecksum(b[:at], 10, 0)
	}
	return b
}

// putChecksum puts the checksum of b at off.
func putChecksum(b []byte, off int, sum uint64) {
	b[off], b[off+1] = 0, 0
	sum = iphdr.AddChecksum(sum, b)
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(b[off:], ^uint16(sum))
}

// FuzzReceive gives the link IP packets of any octets: each is handed up as what it is, answered,
// or dropped and counted for one reason.
//
//fuzz:covers ./rawio/tun ./rawio/internal/iphdr
func FuzzReceive(f *testing.F) {
	wrap := func(proto uint8, v6 bool, payload []byte) []byte {
		if v6 {
			b := make([]byte, iphdr.IPv6HeaderLen, iphdr.IPv6HeaderLen+len(payload))
			iphdr.PutIPv6Header(b, len(payload), proto, 1, peer6, own6)
			return append(b, payload...)
		}
		b := make([]byte, iphdr.IPv4HeaderLen, iphdr.IPv4HeaderLen+len(payload))
		iphdr.PutIPv4Header(b, len(payload), proto, 1, peer4, own4)
		return append(b, payload...)
	}
	add := func(how byte, b []byte) { f.Add(append([]byte{how}, b...)) }
	for i, b := range corpus.Packets() {
		add(0, wrap(iphdr.ProtoSCTP, i%2 == 0, b))
		if i%8 == 0 {
			quote := wrap(iphdr.ProtoSCTP, false, b)[:iphdr.IPv4HeaderLen+8]
			add(fixICMP|fixQuote, wrap(iphdr.ProtoICMP, false, append([]byte{3, 4, 0, 0, 0, 0, 5, 0}, quote...)))
			add(fixICMP|fixQuote, wrap(iphdr.ProtoICMP, false, append([]byte{3, 2, 0, 0, 0, 0, 0, 0}, quote...)))
			quote = wrap(iphdr.ProtoSCTP, true, b)
			add(fixICMP|fixQuote, wrap(iphdr.ProtoICMPv6, true, append([]byte{2, 0, 0, 0, 0, 0, 5, 0}, quote...)))
		}
	}
	add(fixICMP, wrap(iphdr.ProtoICMP, false, []byte{8, 0, 0, 0, 1, 2, 3, 4, 'x'}))
	add(fixICMP, wrap(iphdr.ProtoICMPv6, true, []byte{128, 0, 0, 0, 1, 2, 3, 4, 'x'}))
	add(0, wrap(0, true, append([]byte{iphdr.ProtoSCTP, 0, 1, 4, 0, 0, 0, 0}, corpus.Packets()[0]...)))
	for _, more := range []byte{0, 1} {
		b := wrap(iphdr.ProtoSCTP, false, make([]byte, 24))
		b[6], b[7] = more<<5, 3
		add(fixSum, b)
		add(0, wrap(44, true, append([]byte{iphdr.ProtoSCTP, 0, 0, 24 + more, 1, 2, 3, 4}, make([]byte, 24)...)))
	}
	null := must.Get(os.OpenFile(os.DevNull, os.O_WRONLY, 0))(f)
	f.Cleanup(func() { null.Close() })
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) == 0 {
			return
		}
		b := fixChecksums(in[0], in[1:])
		before := bytes.Clone(b)
		l := &Link{cfg: Config{Addrs: []netip.Addr{own4, own6}}}
		var p rawio.Packet
		up := l.receivePacket(int(null.Fd()), b, &p)
		s := l.Stats()
		reasons := s.RxICMP + s.RxEcho + s.RxMalformed + s.RxFragments + s.RxNotOurs + s.RxOther + s.RxIgnored
		if up && p.Kind == rawio.KindSCTP {
			reasons++ // RxPackets is the caller's
		}
		must.That(t, reasons == 1 && (!up || s.RxICMP != 0 || p.Kind == rawio.KindSCTP), "up: %v, %v, %+v", up,
			p.Kind, s)
		if !up {
			return
		}
		must.That(t, len(p.Data) >= iphdr.MinQuoteOctets && bytes.Contains(b, p.Data) && l.ownsAddr(p.Local.Addr()) &&
			bytes.Equal(b, before),
			"%+v of %x", p, b)
		must.That(t, (p.Kind != rawio.KindSCTP || len(p.Data) >= commonHeaderLen) &&
			(p.Kind != rawio.KindPacketTooBig || p.MTU >= 68),
			"%v of %d octets, MTU %d", p.Kind, len(p.Data), p.MTU)
	})
}
