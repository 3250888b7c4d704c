package hostaddr

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

func TestResolve(t *testing.T) {
	for _, row := range []struct{ family, address, want, refusal string }{
		{"ip", "192.0.2.1:5043", "192.0.2.1:5043", ""},
		{"ip", "[2001:db8::1]:https", "[2001:db8::1]:443", ""},
		{"ip", "[::ffff:192.0.2.1]:7", "192.0.2.1:7", ""},
		{"ip4", ":7", "127.0.0.1:7", ""},
		{"ip", "192.0.2.1", "", "missing port"},
		{"ip", "192.0.2.1:no-such-service", "", "no-such-service"},
		{"ip6", "192.0.2.1:7", "", "no suitable address"},
	} {
		got, err := Resolve(t.Context(), row.family, row.address)
		if row.refusal != "" {
			check.That(t, err != nil && strings.Contains(err.Error(), row.refusal), "%s: %v, want %q", row.address, err,
				row.refusal)
			continue
		}
		check.That(t, err == nil && len(got) > 0 && got[0].String() == row.want, "%s: %v and %v, want %s", row.address,
			got, err, row.want)
	}
}

// The addresses of the loopback interface are this host's, and others are not.
func TestAddressesOfThisHost(t *testing.T) {
	for a, want := range map[string]bool{"127.0.0.1": true, "127.1.2.3": true, "::ffff:127.0.0.1": true,
		"192.0.2.1": false, "2001:db8::1": false} {
		got := must.Get(IsLocal(netip.MustParseAddr(a)))(t)
		check.Equal(t, a, got, want)
	}
	for _, i := range must.Get(net.Interfaces())(t) {
		if i.Flags&net.FlagLoopback != 0 {
			check.Equal(t, "MTU of the loopback interface", InterfaceMTU(netip.MustParseAddr("127.0.0.1")), i.MTU)
		}
	}
	check.Equal(t, "MTU of an interface that is not there", InterfaceMTU(netip.MustParseAddr("192.0.2.1")), 0)
	list := must.Get(LocalAddrs())(t)
	for _, a := range list {
		check.That(t, a.Zone() == "" && !a.Is4In6(), "%v has a zone, or is an IPv4 address in an IPv6 one", a)
		check.That(t, must.Get(IsLocal(a.WithZone("")))(t), "%v is not of this host", a)
	}
}

func TestAddressesOverTun(t *testing.T) {
	t.Setenv("RDDP_TUN", "10.9.0.2, fd09::2,::ffff:10.9.0.3")
	check.Slice(t, "addresses", must.Get(TunAddrs())(t), []netip.Addr{netip.MustParseAddr("10.9.0.2"),
		netip.MustParseAddr("fd09::2"), netip.MustParseAddr("10.9.0.3")})
	for value, want := range map[string]string{"": "set RDDP_TUN", "10.9.0.2,": "RDDP_TUN: "} {
		t.Setenv("RDDP_TUN", value)
		_, err := TunAddrs()
		check.That(t, err != nil && strings.Contains(err.Error(), want), "RDDP_TUN=%q: %v", value, err)
	}
}
