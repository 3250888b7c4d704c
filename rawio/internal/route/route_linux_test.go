package route

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/testns"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// newJoined is a table in a namespace that has fd01::1 on its end of a cable, and the namespace at
// the other end.
func newJoined(t *testing.T) (r *Table, ns, other *testns.NS) {
	t.Helper()
	ns, other = testns.New(t), testns.New(t)
	testns.Veth(ns, other, "eth", 1500, netip.MustParsePrefix("fd01::1/64"), netip.MustParsePrefix("fd01::2/64"))
	ns.Do(func() (err error) { r, err = Open(); return err })
	t.Cleanup(r.Close)
	return r, ns, other
}

func TestPathIsWhatTheSystemRoutes(t *testing.T) {
	r, ns, _ := newJoined(t)
	ns.PathMTU(netip.MustParseAddr("fd01::5"), "eth", 1300)
	check.Equal(t, "own addresses", len(r.Addrs()), 3) // without the link-local one
	for _, row := range []struct {
		name, local, remote, source string
		mtu                         int
	}{
		{"the interface's MTU", "", "fd01::2", "fd01::1", 1500},
		{"from an own address", "fd01::1", "fd01::2", "fd01::1", 1500},
		{"the route's MTU", "", "fd01::5", "fd01::1", 1300},
		{"no route", "", "2001:db8::1", "", 1500},
		{"no such zone", "", "fe80::1%nosuch", "", 1500},
		{"the loopback interface", "", "::1", "::1", 65536},
	} {
		local, _ := netip.ParseAddr(row.local) // "" is none
		source, _ := netip.ParseAddr(row.source)
		check.Equal(t, row.name, r.Lookup(local, netip.MustParseAddr(row.remote)), Path{source, row.mtu})
	}
	far := netip.MustParseAddr("fe80::1%eth")
	p := r.Lookup(netip.Addr{}, far)
	check.That(t, p.Source.IsLinkLocalUnicast() && p.Source.Zone() == "eth" && p.MTU == 1500, "to %v: %+v", far, p)
	check.Equal(t, "from there", r.Lookup(p.Source, far), p)
	ns.SetMTU("eth", 1400)
	ns.Do(func() error {
		must.OK(t, netlink.LinkSetDown(must.Get(netlink.LinkByName("lo"))(t)))
		down, _ := r.system.usableAddrs(must.Get(r.system.listAddrs())(t))
		check.That(t, !slices.ContainsFunc(down, func(p usableAddr) bool { return p.addr.IsLoopback() }),
			"addresses of an interface that is down: %v", down)
		must.OK(t, testns.Refuse(unix.EPERM, unix.SYS_SENDTO))
		_, ok := r.system.usableAddrs(nil)
		p := r.Lookup(netip.Addr{}, netip.MustParseAddr("fd01::7"))
		check.That(t, !ok && len(r.Addrs()) == 0 && p == Path{MTU: 1500}, "the system says nothing: %v, %v, %v", ok,
			r.Addrs(), p)
		return nil
	})
}

// What changes is told once, with the addresses that packets can leave from, and the system is
// asked anew; other news are none.
func TestChangesOfInterfacesAreTold(t *testing.T) {
	r, ns, other := newJoined(t)
	peer := netip.MustParseAddr("fd01::2")
	set := func(ns *testns.NS, f func(dev netlink.Link) error) {
		ns.Do(func() error { return f(must.Get(netlink.LinkByName("eth"))(t)) })
	}
	for i := range 500 { // more news than the socket holds
		ns.SetMTU("eth", 1499-i%2)
	}
	check.Equal(t, "MTU", r.Lookup(netip.Addr{}, peer).MTU, 1498)
	news := make(chan []netip.Addr)
	go func() {
		r.Watch(func(usable []netip.Addr) { news <- usable })
		close(news)
	}()
	told := func(what string, mtu int, want ...string) {
		t.Helper()
		var got []string
		for _, a := range <-news {
			if !a.IsLinkLocalUnicast() {
				got = append(got, a.String())
			}
		}
		check.Slice(t, what, got, want)
		check.Equal(t, what+": MTU", r.Lookup(netip.Addr{}, peer).MTU, mtu)
	}
	told("news were lost", 1498, "127.0.0.1", "::1", "fd01::1")
	set(ns, func(dev netlink.Link) error { return netlink.LinkSetTxQLen(dev, 77) })
	ns.SetMTU("eth", 1400)
	told("another MTU", 1400, "127.0.0.1", "::1", "fd01::1")
	once, twice := must.Get(netlink.ParseAddr("192.0.2.1/24"))(t), must.Get(netlink.ParseAddr("192.0.2.1/24"))(t)
	set(ns, func(dev netlink.Link) error { return netlink.AddrAdd(dev, once) })
	told("another address", 1400, "127.0.0.1", "192.0.2.1", "::1", "fd01::1")
	ns.Do(func() error { return netlink.AddrAdd(must.Get(netlink.LinkByName("lo"))(t), twice) })
	told("it twice", 1400, "127.0.0.1", "192.0.2.1", "192.0.2.1", "::1", "fd01::1")
	places, _ := r.system.usableAddrs(must.Get(r.system.listAddrs())(t))
	check.That(t, places[1].mtu == 1400 && places[2].mtu == 65536, "the order depends on the system's: %v", places)
	ns.Do(func() error { return netlink.AddrDel(must.Get(netlink.LinkByName("lo"))(t), twice) })
	told("it once", 1400, "127.0.0.1", "192.0.2.1", "::1", "fd01::1")
	set(other, netlink.LinkSetDown)
	told("no carrier", 1400, "127.0.0.1", "::1")
	set(other, netlink.LinkSetUp)
	told("a carrier", 1400, "127.0.0.1", "192.0.2.1", "::1", "fd01::1")
	r.Close()
	_, more := <-news
	check.That(t, !more, "news of a closed table")
}

// Nothing can be sent from an IPv6 address before it is known to be no other host's, and a
// link-local one is that of its link.
func TestUsableAddressesOfIPv6(t *testing.T) {
	r, ns, _ := newJoined(t)
	ns.Do(func() error {
		own := must.Get(r.system.listAddrs())(t)
		link := own[slices.IndexFunc(own,
			func(a ownAddr) bool { return a.addr == netip.MustParseAddr("fd01::1") })].linkIndex
		for flags, want := range map[int]bool{0: true, unix.IFA_F_PERMANENT: true, unix.IFA_F_TENTATIVE: false,
			unix.IFA_F_TENTATIVE | unix.IFA_F_DADFAILED:  false,
			unix.IFA_F_TENTATIVE | unix.IFA_F_OPTIMISTIC: true} {
			addr := netip.MustParseAddr("fd02::1")
			places, ok := r.system.usableAddrs([]ownAddr{{addr, link, isTentative(flags)}})
			check.That(t, ok && slices.ContainsFunc(places, func(p usableAddr) bool { return p.addr == addr }) ==
				want, "flags %#x: packets can leave from %v", flags, places)
		}
		places, _ := r.system.usableAddrs(own)
		local := slices.IndexFunc(places, func(p usableAddr) bool { return p.addr.IsLinkLocalUnicast() })
		check.That(t, local >= 0 && places[local].addr.Zone() == "eth", "packets can leave from %v", places)
		return nil
	})
}

// An address is this host's from when an interface has it, also where that is down or has no
// carrier, as the bridge of containers that do not run: packets to it come back.
func TestAddressesOfThisHost(t *testing.T) {
	r, ns, other := newJoined(t)
	r.now = func() time.Time { return time.Unix(0, 0) } // news alone tell of a change
	owns := func(what, addr string, want bool) {
		t.Helper()
		check.Equal(t, what, r.Owns(netip.MustParseAddr(addr)), want)
	}
	owns("that of an interface", "fd01::1", true)
	owns("the loopback one", "127.0.0.1", true)
	owns("that of the host at the other end", "fd01::2", false)
	owns("one that it will have", "172.17.0.1", false)
	news := make(chan struct{})
	go func() {
		r.Watch(func([]netip.Addr) { news <- struct{}{} })
		close(news)
	}()
	own := must.Get(netlink.ParseAddr("172.17.0.1/16"))(t)
	eth := func(f func(dev netlink.Link) error) {
		ns.Do(func() error { return f(must.Get(netlink.LinkByName("eth"))(t)) })
		<-news
	}
	other.Do(func() error { return netlink.LinkSetDown(must.Get(netlink.LinkByName("eth"))(t)) })
	<-news
	eth(func(dev netlink.Link) error { return netlink.AddrAdd(dev, own) })
	owns("one that an interface without a carrier has got", "172.17.0.1", true)
	owns("it, as an IPv6 address", "::ffff:172.17.0.1", true)
	eth(func(dev netlink.Link) error { return netlink.AddrDel(dev, own) })
	owns("one that it has had", "172.17.0.1", false)
	list := r.system.allAddrs()
	i := slices.IndexFunc(list, func(a netip.Addr) bool { return a.IsLinkLocalUnicast() })
	check.That(t, i < 0 || list[i].Zone() == "eth" && r.Owns(list[i]) && !r.Owns(list[i].WithZone("lo")),
		"link-local addresses are those of their link: %v", list)
	r.Close()
	for range news {
	}
}
