package rawio

import (
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/test/must"
)

func TestPacketLenSumsTheVector(t *testing.T) {
	p := Packet{Vec: [][]byte{make([]byte, 12), nil, make([]byte, 1400), make([]byte, 3)}}
	must.Equal(t, "Len", p.Len(), 1415)
	must.Equal(t, "Len of an empty packet", (&Packet{}).Len(), 0)
}

func TestLinkThatDoesNotTellCanNothing(t *testing.T) {
	var l struct{ Link }
	must.That(t, FeaturesOf(l) == 0 && ReceiveBufferOf(l) == 0 && ShardsOf(l) == nil, "it can something")
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
			must.Equal(t, "Overhead", Overhead(netip.MustParseAddrPort(row.remote)), row.want)
		})
	}
}
