package account

import (
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// Whoever has a network to choose addresses from has the part of one host: an honest host
// elsewhere, and one in the same network, keep theirs, and nothing is left when all have gone.
func TestOneNetworkHasThePartOfOneHost(t *testing.T) {
	const octets, many = 64 << 20, 200
	for _, row := range []struct {
		name      string
		at, octet int // which octet of the address the greedy choose
		beside    string
		least     int64 // that an association of the honest host beside them may hold, in parts of all
	}{
		{"the /64s of a /56", 7, 256, "2001:db8:0:100::1", 5},
		{"the /56s of a /48", 6, 256, "2001:db8:1::1", 5},
		{"the /48s of a /32", 5, 256, "2001:db9::1", 5},
	} {
		tot := NewTotal(octets)
		var list []*Account
		open := func(a netip.Addr) *Account {
			acc := new(Account)
			tot.Open(acc, Peer{Addr: a})
			list = append(list, acc)
			return acc
		}
		far, beside := open(netip.MustParseAddr("10.0.0.1")), open(netip.MustParseAddr(row.beside))
		for i := range many {
			ip := netip.MustParseAddr("2001:db8::1").As16()
			ip[row.at] = byte(i)
			g := open(netip.AddrFrom16(ip))
			for held := Quantum; !g.ExceedsShare(int64(held)) && held <= octets &&
				tot.Used() < octets; held += Quantum {
				g.Charge(held)
			}
		}
		for name, a := range map[string]*Account{"elsewhere": far, "beside them": beside} {
			check.That(t, a.FairShare() >= octets/row.least, "%s: a host %s may hold %d of %d octets", row.name, name,
				a.FairShare(), octets)
		}
		check.That(t, tot.Admits(Peer{Addr: netip.MustParseAddr("10.0.0.2")}, octets/8) &&
			tot.Admits(Peer{Addr: netip.MustParseAddr("10.0.0.1")}, octets/8), "%s: others are refused", row.name)
		check.That(t, !tot.Admits(Peer{Addr: netip.MustParseAddr("2001:db8::1")}, octets/8), "%s: one more of theirs is admitted",
			row.name)
		for _, a := range list {
			a.Charge(0)
			tot.Close(a)
			tot.Close(a)
		}
		must.That(t, len(tot.hosts) == 0 && tot.numGroups.Load() == 0 && tot.Used() == 0,
			"%s: %d hosts, %d groups, %d octets are left", row.name, len(tot.hosts), tot.numGroups.Load(), tot.Used())
	}
}
