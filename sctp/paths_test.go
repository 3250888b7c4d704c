package sctp

import (
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/mempair"
	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/rawio/mem"
)

// The port says whether there is a UDP header in front of packets, and so how long they may be.
func TestEncapsulationPortIsThatOfTheLink(t *testing.T) {
	udp := []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:1000"), netip.MustParseAddrPort("10.0.0.2:9899")}
	for _, tt := range []struct {
		name  string
		addrs []netip.AddrPort // of the link's two ends
		port  uint16           // Config.EncapPort
		want  uint16
	}{
		{"a link without UDP has none", []netip.AddrPort{addrsA[0], addrsB[0]}, 9899, 0},
		{"a link with UDP has 9899", udp, 0, 9899},
		{"unless told otherwise", udp, 1001, 1001},
	} {
		t.Run(tt.name, func(t *testing.T) {
			la, lb := mempair.New(t, mem.Options{MTU: 1500, A: tt.addrs[:1], B: tt.addrs[1:]})
			a := must.Get(NewTransport(la, nil))(t)
			defer a.Close()
			defer lb.Close()
			c := must.Get(a.connect(netip.AddrPortFrom(tt.addrs[1].Addr(), 5000), &Config{EncapPort: tt.port}))(t)
			check.Equal(t, "port", c.Paths()[0].Remote.Port(), tt.want)
		})
	}
}
