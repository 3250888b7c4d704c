package iphdr

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

func TestFragmentsFitTheMTUAndMakeThePacket(t *testing.T) {
	for _, row := range []struct {
		name     string
		src, dst netip.Addr
		size     int
		mtu      int
		want     []int // IP packets
	}{
		{"IPv4 in three", a4, b4, 1100, 500, []int{500, 500, 160}},
		{"IPv4, room of no multiple of 8", a4, b4, 1000, 505, []int{500, 500, 60}},
		{"IPv6 in two", a6, b6, 2000, 1280, []int{1280, 48 + 2000 - 1232}},
		{"IPv6, the largest, from any address", netip.Addr{}, b6, 65535, 1280, nil},
		{"an MTU that nothing fits: 8 octets at a time", a4, b4, 20, 10, []int{28, 28, 24}},
	} {
		t.Run(row.name, func(t *testing.T) {
			payload := make([]byte, row.size)
			for i := range payload {
				payload[i] = byte(i * 7)
			}
			whole := bytes.Clone(payload)
			var sizes []int
			var got []byte
			err := Fragment(payload, row.mtu, ProtoSCTP, 2, row.src, row.dst, 0x12345, func(b []byte) error {
				sizes = append(sizes, len(b))
				_, err := Parse(b)
				check.That(t, err == ErrFragment, "fragment %d is %v", len(sizes), err)
				var at int
				var more bool
				if row.dst.Is4() {
					f := binary.BigEndian.Uint16(b[6:])
					at, more = int(f&0x1fff)*8, f&0x2000 != 0
					check.That(t, f&0x4000 == 0 && binary.BigEndian.Uint16(b[4:]) == 0x2345 &&
						foldChecksum(AddChecksum(0, b[:20])) == 0xffff && b[9] == ProtoSCTP && b[1] == 2,
						"header % x", b[:20])
					b = b[20:]
				} else {
					f := binary.BigEndian.Uint16(b[42:])
					at, more = int(f&^7), f&1 != 0
					check.That(t, b[6] == extFragment && b[40] == ProtoSCTP && binary.BigEndian.Uint32(b[44:]) ==
						0x12345 && int(binary.BigEndian.Uint16(b[4:])) == len(b)-40, "headers % x", b[:48])
					b = b[48:]
				}
				check.That(t, at == len(got) && more == (at+len(b) < row.size), "offset %d, more %v, after %d octets",
					at, more, len(got))
				got = append(got, b...)
				return nil
			})
			check.That(t, err == nil && bytes.Equal(got, whole), "%d octets, %v", len(got), err)
			for i, n := range row.want {
				must.That(t, i < len(sizes) && sizes[i] == n, "packets of %v octets, want %v", sizes, row.want)
			}
		})
	}
	for _, p := range []struct{ src, dst netip.Addr }{{a4, b4}, {a6, b6}, {netip.Addr{}, b4}, {netip.Addr{}, b6}} {
		var got Packet
		head, at6 := IPv4HeaderLen, byte(0x40) // DF
		if p.dst.Is6() {
			head, at6 = IPv6HeaderLen, ProtoSCTP
		}
		err := Fragment([]byte("it fits"), head+7, ProtoSCTP, 1, p.src, p.dst, 1, func(b []byte) (err error) {
			got, err = Parse(b)
			check.That(t, b[6] == at6, "it is a fragment: % x", b)
			return err
		})
		check.That(t, err == nil && string(got.Payload) == "it fits" && got.HeaderLen == head && got.Dst == p.dst &&
			got.ECN == 1, "%+v, %v", got, err)
	}
	stop := errors.New("full")
	calls := 0
	err := Fragment(make([]byte, 100), 28, ProtoSCTP, 0, a4, b4, 1, func([]byte) error { calls++; return stop })
	check.That(t, err == stop && calls == 1, "%v after %d", err, calls)
}
