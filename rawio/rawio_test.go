package rawio

import (
	"net/netip"
	"testing"
)

func TestPacketLenSumsTheVector(t *testing.T) {
	p := Packet{Vec: [][]byte{make([]byte, 12), nil, make([]byte, 1400), make([]byte, 3)}}
	if n := p.Len(); n != 1415 {
		t.Fatalf("Len = %d, want 1415", n)
	}
	if n := (&Packet{}).Len(); n != 0 {
		t.Fatalf("Len of an empty packet = %d", n)
	}
}

func TestOverheadOfFamilyAndUDP(t *testing.T) {
	for _, row := range []struct {
		name, remote string
		want         int
	}{
		{"IPv4", "192.0.2.1:0", 20},
		{"IPv4 and UDP", "192.0.2.1:9899", 28},
		{"IPv6", "[2001:db8::1]:0", 40},
		{"IPv6 and UDP", "[2001:db8::1]:9899", 48},
		{"an IPv4-mapped address is sent as IPv4", "[::ffff:192.0.2.1]:0", 20},
	} {
		t.Run(row.name, func(t *testing.T) {
			if n := Overhead(netip.MustParseAddrPort(row.remote)); n != row.want {
				t.Fatalf("Overhead = %d, want %d", n, row.want)
			}
		})
	}
}
