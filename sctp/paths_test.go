package sctp

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
)

// addressed is a link with addresses.
type addressed struct {
	rawio.Link
	own []netip.AddrPort
}

func (l addressed) LocalAddrs() []netip.AddrPort { return l.own }

// The port says whether there is a UDP header in front of packets, and so how long they may be.
func TestEncapsulationPortIsThatOfTheLink(t *testing.T) {
	udp := addressed{own: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:1000")}}
	for _, tt := range []struct {
		name string
		link rawio.Link
		port uint16 // Config.EncapPort
		want uint16
	}{
		{"a link without UDP has none", addressed{own: addrsA}, 9899, 0},
		{"a link with UDP has 9899", udp, 0, 9899},
		{"unless told otherwise", udp, 1001, 1001},
		{"a link that does not know its addresses, as told", addressed{}, 1001, 1001},
		{"nor tells them", struct{ rawio.Link }{udp}, 1001, 1001},
	} {
		remote := netip.MustParseAddr("10.0.0.2")
		list := (&Transport{link: tt.link}).remoteAddrs(
			&Config{EncapPort: tt.port, RemoteAddrs: []netip.Addr{remote, addrsB[1].Addr()}}, remote)
		check.That(t, len(list) == 2 && list[0] == netip.AddrPortFrom(remote, tt.want) &&
			list[1] == netip.AddrPortFrom(addrsB[1].Addr(), tt.want), "%s: %v, want port %d", tt.name, list, tt.want)
	}
}

// sized is a link with an MTU.
type sized struct {
	*mem.Link
	mtu int
}

func (l sized) MTU(_, _ netip.Addr) int { return l.mtu }

// A link has to carry a session control message of RFC 5043 with 512 octets of private data.
func TestLinkThatIsTooNarrow(t *testing.T) {
	for mtu, ok := range map[int]bool{543: false, 544: true} {
		l, _ := mempair.New(t, mem.Options{})
		tr, err := NewTransport(sized{l, mtu}, nil)
		var narrow *rawio.MTUError
		check.That(t, errors.As(err, &narrow) != ok && (ok || narrow.MTU == mtu), "%d octets: %v", mtu, err)
		if tr != nil {
			tr.Close()
		}
		l.Close()
	}
}
