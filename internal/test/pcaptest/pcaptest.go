// Package pcaptest reads what rawio/pcap has written, and nothing else.
package pcaptest

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/must"
)

var le = binary.LittleEndian

// Record is one packet of a file, with its headers decoded.
type Record struct {
	Intf     int
	At       time.Time
	Src, Dst netip.AddrPort
	UDP      bool
	ECN      uint8
	SCTP     []byte
}

// Read decodes a file and checks every length and checksum in it. Wireshark reads one too, in
// test/wireshark.
func Read(t *testing.T, file io.Reader) (recs []Record) {
	t.Helper()
	data := must.Get(io.ReadAll(file))(t)
	var kinds []uint32
	for len(data) > 0 {
		n := le.Uint32(data[4:])
		must.That(t, n%4 == 0 && int(n) <= len(data) && le.Uint32(data[n-4:]) == n, "a block of %d octets, of %d", n,
			len(data))
		kinds = append(kinds, le.Uint32(data))
		b := data[8 : n-4]
		data = data[n:]
		switch i := len(kinds) - 1; i {
		case 0:
			must.That(t, bytes.HasPrefix(b,
				[]byte("\x4d\x3c\x2b\x1a\x01\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff")) &&
				bytes.HasSuffix(b, []byte("\x04\x00\x04\x00rddp\x00\x00\x00\x00")), "section %x", b)
		case 1, 2:
			name := [...]string{"\x04\x00sent", "\x08\x00received"}[i-1]
			must.Equal(t, "interface", string(b), "\x65\x00\x00\x00\x00\x00\x00\x00\x02\x00"+name+
				"\x09\x00\x01\x00\x09\x00\x00\x00\x00\x00\x00\x00")
		default:
			size := le.Uint32(b[12:])
			must.That(t, le.Uint32(b[16:]) == size && int(size+3)&^3 == len(b)-20,
				"capture lengths %d and %d in %d octets", size, le.Uint32(b[16:]), len(b)-20)
			rec := decodeRecord(t, b[20:20+size])
			rec.Intf, rec.At = int(le.Uint32(b)), time.Unix(0, int64(le.Uint32(b[4:]))<<32|int64(le.Uint32(b[8:])))
			recs = append(recs, rec)
		}
	}
	must.That(t, len(kinds) >= 3 && kinds[0] == 0x0a0d0d0a && kinds[1] == 1 && kinds[2] == 1, "blocks %x", kinds)
	for _, k := range kinds[3:] {
		must.Equal(t, "block", k, 6)
	}
	return recs
}

func decodeRecord(t *testing.T, data []byte) (rec Record) {
	t.Helper()
	var proto byte
	var pseudo []byte
	if data[0] == 0x45 {
		must.That(t, int(binary.BigEndian.Uint16(data[2:])) == len(data) && inetChecksum(data[:20]) == 0 &&
			data[6] == 0x40 &&
			data[7] == 0 && data[8] == 64,
			"IPv4 header %x in front of %d octets", data[:20], len(data))
		proto, rec.ECN, pseudo, rec.SCTP = data[9], data[1], slices.Clone(data[12:20]), data[20:]
	} else {
		must.That(t, data[0] == 0x60 && int(binary.BigEndian.Uint16(data[4:])) == len(data)-40 && data[7] == 64,
			"IPv6 header %x in front of %d octets", data[:40], len(data))
		proto, rec.ECN, pseudo, rec.SCTP = data[6], data[1]>>4, slices.Clone(data[8:40]), data[40:]
	}
	src, _ := netip.AddrFromSlice(pseudo[:len(pseudo)/2])
	dst, _ := netip.AddrFromSlice(pseudo[len(pseudo)/2:])
	var srcPort, dstPort uint16
	if proto == 17 {
		udp := rec.SCTP
		pseudo = append(pseudo, 0, 0, udp[4], udp[5], 0, 0, 0, 17) // RFC 8200 section 8.1; the sum is RFC 768's too
		must.Equal(t, "UDP length", int(binary.BigEndian.Uint16(udp[4:])), len(udp))
		must.That(t, udp[6]|udp[7] != 0 && inetChecksum(append(pseudo, udp...)) == 0, "UDP checksum %x is wrong",
			udp[6:8])
		srcPort, dstPort = binary.BigEndian.Uint16(udp), binary.BigEndian.Uint16(udp[2:])
		rec.UDP, rec.SCTP = true, udp[8:]
	} else {
		must.Equal(t, "IP protocol", proto, 132)
	}
	rec.Src, rec.Dst = netip.AddrPortFrom(src, srcPort), netip.AddrPortFrom(dst, dstPort)
	return rec
}

// inetChecksum is the internet checksum (RFC 1071): 0 over data that contains its own.
func inetChecksum(b []byte) uint16 {
	var s uint32
	for i, o := range b {
		s += uint32(o) << (8 * (1 - i%2))
		s = s&0xffff + s>>16
	}
	return ^uint16(s)
}
