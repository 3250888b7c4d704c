package udp_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/linktest"
	"github.com/rddp-go/rddp/rawio/udp"
)

// These tests hold for the fast path and, with the tag rawio_portable, for the portable one.

var (
	v4 = netip.MustParseAddr("127.0.0.1")
	v6 = netip.MustParseAddr("::1")
)

func openLink(t testing.TB, cfg udp.Config) *udp.Link {
	t.Helper()
	l := must.Get(udp.Open(cfg))(t)
	t.Cleanup(func() { l.Close() })
	return l
}

func addrPortOf(a netip.Addr, l *udp.Link) netip.AddrPort { return netip.AddrPortFrom(a, l.Port()) }

func TestPacketsArriveUnchangedBothWays(t *testing.T) {
	for _, test := range []struct {
		name   string
		addr   netip.Addr
		listen netip.Addr
		size   int
		count  int
	}{
		{"IPv4 batch of 1472 octets", v4, v4, 1472, 40},
		{"IPv6 batch of 1452 octets", v6, v6, 1452, 40},
		{"IPv4 the largest datagrams there are", v4, v4, 65507, 4},
		{"IPv6 as large as loopback carries", v6, v6, 65488, 4},
		{"IPv4 on a link of both families", v4, netip.Addr{}, 1472, 40},
		{"IPv6 on a link of both families", v6, netip.Addr{}, 1452, 40},
		{"IPv4 just beyond a small buffer", v4, v4, 2049, 5},
		{"IPv6 a common header alone", v6, v6, 12, 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.size > 9216 && runtime.GOOS == "darwin" {
				t.Skip("macOS bounds datagrams to net.inet.udp.maxdgram, 9216 octets")
			}
			a := openLink(t, udp.Config{Local: test.addr, Port: udp.AnyPort})
			b := openLink(t, udp.Config{Local: test.listen, Port: udp.AnyPort})
			for _, way := range []struct{ from, to *udp.Link }{{a, b}, {b, a}} {
				// req 6951-5.3-2, req 6951-5.4-1: the packet is the whole payload, and all that is
				// left of it. req 6951-5.3-1: the local encapsulation port is the source port.
				linktest.CheckDelivery(t, way.from, way.to, addrPortOf(test.addr, way.from),
					addrPortOf(test.addr, way.to),
					linktest.Pattern(test.size), test.count, 1)
			}
			s := b.Stats()
			check.That(t, s.RxPackets == uint64(test.count) && s.TxPackets == uint64(test.count) && s.RxMalformed+
				s.TxErrors+s.RxOverflow == 0, "stats %+v", s)
		})
	}
}

func TestTooShortForACommonHeaderIsDropped(t *testing.T) {
	a := openLink(t, udp.Config{Local: v4, Port: udp.AnyPort})
	linktest.WriteAll(t, a, rawio.Packet{Vec: [][]byte{linktest.Pattern(11)}, Remote: addrPortOf(v4, a)},
		rawio.Packet{Remote: addrPortOf(v4, a)},
		rawio.Packet{Vec: [][]byte{linktest.Pattern(12)}, Remote: addrPortOf(v4, a)})
	p := linktest.ReadPackets(t, a, 1)[0]
	check.That(t, len(p.Data) == 12 && a.Stats().RxMalformed == 2, "%d octets, stats %+v", len(p.Data), a.Stats())
	p.Release()
}

func TestPortInUse(t *testing.T) {
	a := openLink(t, udp.Config{Port: udp.AnyPort})
	for local, where := range map[netip.Addr]string{{}: "any address", v4: "127.0.0.1", v6: "::1"} {
		where = fmt.Sprintf("UDP port %d of %s is taken by another program", a.Port(), where)
		_, err := udp.Open(udp.Config{Local: local, Port: int(a.Port())})
		check.That(t, errors.Is(err, syscall.EADDRINUSE) && strings.Contains(err.Error(), where),
			"Open on %v with a taken port = %v", local, err)
	}
}

func TestBadConfigs(t *testing.T) {
	var mtu *rawio.MTUError
	_, err := udp.Open(udp.Config{MTU: 575})
	check.That(t, errors.As(err, &mtu) && mtu.MTU == 575, "Open with an MTU of 575 = %v", err)
	least := openLink(t, udp.Config{Local: v4, Port: udp.AnyPort, MTU: rawio.MinMTU})
	mapped := netip.AddrFrom16(v4.As16())
	check.That(t, least.MTU(v4, v4) == rawio.MinMTU-28 && least.MTU(mapped, mapped) == rawio.MinMTU-28,
		"MTU %d, of a mapped address %d", least.MTU(v4, v4), least.MTU(mapped, mapped))
	_, err = udp.Open(udp.Config{Shards: rawio.MaxShards + 1})
	check.That(t, err != nil && err.Error() == "udp link: 65 shards; it is 1 to 64", "too many shards: %v", err)
	for _, cfg := range []udp.Config{{Port: 65536}, {Port: -2},
		{Local: netip.MustParseAddr("192.0.2.77"), Port: udp.AnyPort}} {
		if l, err := udp.Open(cfg); err == nil {
			l.Close()
			t.Errorf("Open(%+v) succeeded", cfg)
		}
	}
}

func TestCloseWakesReader(t *testing.T) {
	for _, local := range []netip.Addr{v4, v6, {}} {
		t.Run(fmt.Sprint(local), func(t *testing.T) {
			a := openLink(t, udp.Config{Local: local, Port: udp.AnyPort})
			done := make(chan error)
			go func() {
				_, err := a.ReadBatch(make([]rawio.Packet, 4))
				done <- err
			}()
			must.OK(t, a.Close())
			check.Error(t, "second Close", a.Close(), net.ErrClosed)
			check.Equal(t, "ReadBatch", <-done, net.ErrClosed)
			_, err := a.ReadBatch(make([]rawio.Packet, 4))
			check.That(t, err == net.ErrClosed, "ReadBatch after Close = %v, want net.ErrClosed", err)
			n, err := a.WriteBatch([]rawio.Packet{{Vec: [][]byte{linktest.Pattern(12)}, Remote: addrPortOf(v4, a)}})
			check.That(t, n == 0 && err != nil, "WriteBatch after Close = %d, %v", n, err)
		})
	}
}

func TestTooLongPacketIsRefusedAndTheRestAreSent(t *testing.T) {
	a := openLink(t, udp.Config{Local: v4, Port: udp.AnyPort})
	ok := rawio.Packet{Vec: [][]byte{linktest.Pattern(40)}, Remote: addrPortOf(v4, a)}
	long := rawio.Packet{Vec: [][]byte{make([]byte, 65508)}, Remote: addrPortOf(v4, a)}
	n, err := a.WriteBatch([]rawio.Packet{ok, long, {Vec: ok.Vec, Remote: ok.Remote, Fragment: 1280}})
	check.That(t, n == 1 && err == rawio.ErrTooLong, "a too long packet in the middle: %d, %v", n, err)
	check.That(t, a.Stats().TxPackets == 1 && a.Stats().TxTooLong == 1, "stats %+v", a.Stats())
}

// A peer that is gone makes the kernel report ECONNREFUSED on this socket; neither a write nor a
// read may fail for it.
func TestPeerGone(t *testing.T) {
	for _, local := range []netip.Addr{v4, {}} {
		t.Run(fmt.Sprint(local), func(t *testing.T) {
			a := openLink(t, udp.Config{Local: local, Port: udp.AnyPort})
			gone := openLink(t, udp.Config{Local: v4, Port: udp.AnyPort})
			dead := addrPortOf(v4, gone)
			gone.Close()
			for range 20 {
				linktest.WriteAll(t, a, rawio.Packet{Vec: [][]byte{linktest.Pattern(40)}, Remote: dead})
			}
			linktest.WriteAll(t, a, rawio.Packet{Vec: [][]byte{linktest.Pattern(41)}, Remote: addrPortOf(v4, a)})
			for p := (rawio.Packet{}); len(p.Data) != 41; {
				p.Release()
				p = linktest.ReadPackets(t, a, 1)[0]
			}
		})
	}
}

func TestLocalAddrsAreTheBoundOneOrAll(t *testing.T) {
	a := openLink(t, udp.Config{Local: v4, Port: udp.AnyPort})
	check.That(t, len(a.LocalAddrs()) == 1 && a.LocalAddrs()[0] == addrPortOf(v4, a), "of a bound link: %v",
		a.LocalAddrs())
	b := openLink(t, udp.Config{Port: udp.AnyPort})
	got := b.LocalAddrs()
	check.That(t, len(got) != 0 && got[len(got)-1].Addr().IsLoopback() && got[0].Port() == b.Port(),
		"of an unbound link: %v, want the loopback addresses last", got)
	ip4 := openLink(t, udp.Config{Local: netip.IPv4Unspecified(), Port: udp.AnyPort}).LocalAddrs()
	check.Equal(t, "whether a link of IPv4 has addresses", len(ip4) > 0, true)
	for _, a := range ip4 {
		check.That(t, a.Addr().Is4() && !a.Addr().IsUnspecified(), "of a link of IPv4: %v", a)
	}
}
