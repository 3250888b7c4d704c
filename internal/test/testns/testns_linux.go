// Package testns gives tests network namespaces of their own, so that they can lose, route and
// refuse packets without touching the machine's network. A namespace has no name and disappears
// with its last descriptor, so that nothing is left behind even by a test that crashes.
package testns

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/netns"
	"github.com/rddp-go/rddp/internal/test/testpriv"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// NS is a network namespace with its loopback device up. What fails in it fails the test.
type NS struct {
	t  testing.TB
	ns *netns.NS
}

// New returns a fresh namespace, or skips the test where it lacks the privilege to make one.
func New(t testing.TB) *NS {
	t.Helper()
	testpriv.Require(t, "CAP_SYS_ADMIN", "CAP_NET_ADMIN")
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	return &NS{t: t, ns: ns}
}

// Do runs f in the namespace, on a thread of its own, and fails the test with its error. Sockets
// and devices that f opens stay in the namespace afterwards.
func (n *NS) Do(f func() error) {
	n.t.Helper()
	n.mustOK(n.ns.Do(f))
}

func (n *NS) mustOK(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// Veth joins two namespaces with a pair of Ethernet devices of the given MTU, each called name.
func Veth(a, b *NS, name string, mtu int, addrA, addrB netip.Prefix) {
	a.t.Helper()
	a.mustOK(netns.Veth(a.ns, b.ns, name, mtu, addrA, addrB))
	a.awaitAddrs(name, addrA.Addr())
	b.awaitAddrs(name, addrB.Addr())
}

// EachFamily runs f for IPv4 and for IPv6, with two namespaces joined by a device called cable, and
// the addresses of its ends.
func EachFamily(t *testing.T, mtu int, f func(t *testing.T, a, b *NS, addrA, addrB netip.Addr)) {
	for name, prefixes := range map[string][2]string{"IPv4": {"10.77.0.1/24", "10.77.0.2/24"},
		"IPv6": {"fd77::1/64", "fd77::2/64"}} {
		t.Run(name, func(t *testing.T) {
			a, b, pa, pb := New(t), New(t), netip.MustParsePrefix(prefixes[0]), netip.MustParsePrefix(prefixes[1])
			Veth(a, b, "cable", mtu, pa, pb)
			f(t, a, b, pa.Addr(), pb.Addr())
		})
	}
}

// awaitAddrs waits until the device can use its IPv6 addresses, the link-local one too, which
// neighbor discovery needs: the kernel finishes both on a work queue.
func (n *NS) awaitAddrs(name string, a netip.Addr) {
	n.t.Helper()
	if a.Is4() {
		return
	}
	n.Do(func() error {
		dev, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			addrs, err := netlink.AddrList(dev, netlink.FAMILY_V6)
			if err != nil {
				return err
			}
			ready := 0
			for _, x := range addrs {
				r, err := netlink.RouteGet(x.IP)
				if x.Flags&unix.IFA_F_TENTATIVE == 0 && err == nil && len(r) > 0 && r[0].Type == unix.RTN_LOCAL {
					ready++
				}
			}
			if ready >= 2 {
				return nil
			}
		}
		return fmt.Errorf("%s has not put %v and its link-local address to use", name, a)
	})
}

// Route sends dst through via.
func (n *NS) Route(dst netip.Prefix, via netip.Addr) {
	n.t.Helper()
	n.mustOK(n.ns.Route(dst, via))
}

// Prohibit leaves packets from an address without a route.
func (n *NS) Prohibit(src netip.Addr) {
	n.t.Helper()
	n.Do(func() error {
		r := netlink.NewRule()
		r.Src, r.Type = netlink.NewIPNet(src.AsSlice()), unix.RTN_PROHIBIT
		return netlink.RuleAdd(r)
	})
}

// PathMTU makes the kernel believe that the path through a device to dst has that MTU.
func (n *NS) PathMTU(dst netip.Addr, device string, mtu int) {
	n.t.Helper()
	n.Do(func() error {
		dev, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		ip, err := netlink.ParseIPNet(netip.PrefixFrom(dst, dst.BitLen()).String())
		if err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{LinkIndex: dev.Attrs().Index, Dst: ip, MTU: mtu})
	})
}

// SetMTU changes the MTU of a device.
func (n *NS) SetMTU(device string, mtu int) {
	n.t.Helper()
	n.Do(func() error {
		dev, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		return netlink.LinkSetMTU(dev, mtu)
	})
}
