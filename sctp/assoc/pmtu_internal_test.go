package assoc

import (
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
)

// The link is asked what every path from the own address to the peer's carries.
func TestBaseMTUIsOfThePath(t *testing.T) {
	local, remote := netip.MustParseAddrPort("192.0.2.1:5"), netip.MustParseAddrPort("192.0.2.2:7")
	e := &Env{BaseMTU: func(from, to netip.Addr) int {
		check.That(t, from == local.Addr() && to == remote.Addr(), "asked for the path from %v to %v", from, to)
		return 1300
	}}
	check.Equal(t, "octets", e.baseMTU(local, remote), 1300)
	check.Equal(t, "octets of a link that knows none", new(Env).baseMTU(local, remote), 0)
}
