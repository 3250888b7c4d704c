package raw_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/testns"
	"github.com/rddp-go/rddp/internal/test/testpriv"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/linktest"
	"github.com/rddp-go/rddp/rawio/raw"
	"golang.org/x/sys/unix"
)

var (
	v4 = netip.MustParseAddr("127.0.0.1")
	v6 = netip.MustParseAddr("::1")
)

// fakePacket is n octets that look like an SCTP packet: a common header and a pattern.
func fakePacket(src, dst uint16, n int) []byte {
	b := linktest.Pattern(n)
	binary.BigEndian.PutUint16(b, src)
	binary.BigEndian.PutUint16(b[2:], dst)
	return b
}

// openLink opens a link in a namespace, where ports and packets are the test's own.
func openLink(t testing.TB, ns *testns.NS, cfg raw.Config) *raw.Link {
	t.Helper()
	var l *raw.Link
	ns.Do(func() (err error) {
		l, err = raw.Open(cfg)
		return err
	})
	t.Cleanup(func() { l.Close() })
	return l
}

// bindPort binds a port in the namespace, where it is claimed.
func bindPort(ns *testns.NS, l *raw.Link, port uint16) (err error) {
	ns.Do(func() error { err = l.BindPort(port); return nil })
	return err
}

func addrPortOf(a netip.Addr) netip.AddrPort { return netip.AddrPortFrom(a, 0) }

func TestLinkMayBeUsedAtOnce(t *testing.T) {
	ns := testns.New(t)
	a, b, p := openLink(t, ns, raw.Config{Ports: []uint16{20001}}), openLink(t, ns, raw.Config{Ports: []uint16{20002}}),
		fakePacket(20001, 20002, 100)
	reported := func() { a.Stats(); b.Stats(); linktest.SendUnreachable(t, ns.Do, 2, 132, v4, v4, p) }
	linktest.CheckConcurrentUse(t, a, b, rawio.Packet{Vec: [][]byte{p}, Remote: addrPortOf(v4)}, reported)
	check.That(t, a.Stats().TxPackets != 0 && a.Stats().TxTooLong != 0 && b.Stats().RxPackets != 0, "%+v, %+v",
		a.Stats(), b.Stats())
	check.Equal(t, "what it says of itself that it can", a.Features(),
		rawio.DontFragment|rawio.ECNField|rawio.Interruptible|rawio.Waitable|rawio.Marking)
}

func TestPacketsArriveUnchangedBothWays(t *testing.T) {
	ns := testns.New(t)
	for _, test := range []struct {
		name   string
		addr   netip.Addr
		listen netip.Addr
		size   int
		count  int
	}{
		{"IPv4 batch of 1480 octets", v4, v4, 1480, 70},
		{"IPv6 batch of 1440 octets", v6, v6, 1440, 70},
		{"IPv4 the largest packets there are", v4, v4, 65515, 20},
		{"IPv6 as large as loopback carries", v6, v6, 65496, 20},
		{"IPv4 on a link of both families", v4, netip.Addr{}, 1480, 70},
		{"IPv6 on a link of both families", v6, netip.Addr{}, 1440, 70},
		{"IPv4 just beyond a small buffer", v4, v4, 2048 - 20 + 1, 5},
		{"IPv6 a common header alone", v6, v6, 12, 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := openLink(t, ns, raw.Config{Local: test.addr, Ports: []uint16{20001}})
			b := openLink(t, ns, raw.Config{Local: test.listen, Ports: []uint16{20002}})
			for _, way := range []struct {
				from, to *raw.Link
				src, dst uint16
			}{{a, b, 20001, 20002}, {b, a, 20002, 20001}} {
				// req 6951-5.8-1 asks marks of UDP; natively it is the same RFC 3168 field.
				linktest.CheckDelivery(t, way.from, way.to, addrPortOf(test.addr), addrPortOf(test.addr),
					fakePacket(way.src, way.dst, test.size), test.count, 4)
			}
			s := b.Stats()
			check.That(t, s.RxPackets == uint64(test.count) && s.TxPackets == uint64(test.count) && s.RxMalformed+
				s.TxErrors+s.RxOverflow == 0, "stats %+v", s)
		})
	}
}

func TestSourceIsPacketLocal(t *testing.T) {
	ns := testns.New(t)
	local := netip.MustParseAddr("127.0.0.7")
	a := openLink(t, ns, raw.Config{Ports: []uint16{20001}})
	b := openLink(t, ns, raw.Config{Local: v4, Ports: []uint16{20002}})
	linktest.WriteAll(t, a, rawio.Packet{Vec: [][]byte{fakePacket(20001, 20002, 100)}, Local: addrPortOf(local),
		Remote: addrPortOf(v4)})
	p := linktest.ReadPackets(t, b, 1)[0]
	defer p.Release()
	check.Equal(t, "address it came from", p.Remote.Addr(), local)
}

// The source of a packet decides about its route, whether it goes whole or in fragments.
func TestRouteDependsOnTheSource(t *testing.T) {
	testns.EachFamily(t, 1500, func(t *testing.T, ns, _ *testns.NS, pa, pb netip.Addr) {
		ns.Prohibit(pa)
		a := openLink(t, ns, raw.Config{})
		for _, fragment := range []int{0, 1280} {
			_,
				err := a.WriteBatch([]rawio.Packet{{Vec: [][]byte{fakePacket(1, 2, 40)}, Local: addrPortOf(pa),
				Remote:   addrPortOf(pb),
				Fragment: fragment}})
			check.That(t, errors.Is(err, unix.EACCES), "no way from %v, in fragments of %d: %v", pa, fragment, err)
		}
	})
}

func TestMixedFamiliesInOneBatch(t *testing.T) {
	ns := testns.New(t)
	a := openLink(t, ns, raw.Config{Ports: []uint16{20001}})
	data := fakePacket(20001, 20001, 64)
	linktest.WriteAll(t, a,
		rawio.Packet{Vec: [][]byte{data}, Remote: addrPortOf(v4)},
		rawio.Packet{Vec: [][]byte{data}, Remote: addrPortOf(v6)},
		rawio.Packet{Vec: [][]byte{data}, Remote: addrPortOf(v4)},
		rawio.Packet{Vec: [][]byte{data}, Remote: addrPortOf(v6)})
	n := map[netip.Addr]int{}
	for _, p := range linktest.ReadPackets(t, a, 4) {
		n[p.Remote.Addr()]++
		p.Release()
	}
	check.That(t, n[v4] == 2 && n[v6] == 2, "got %v", n)
}

// The kernel keeps packets for other ports from the socket: not even a counter sees them.
func TestPortFilter(t *testing.T) {
	ns := testns.New(t)
	for _, addr := range []netip.Addr{v4, v6} {
		t.Run(addr.String(), func(t *testing.T) {
			tx := openLink(t, ns, raw.Config{Local: addr})
			a := openLink(t, ns, raw.Config{Local: addr, Ports: []uint16{20001}})
			b := openLink(t, ns, raw.Config{Local: addr})
			must.OK(t, errors.Join(bindPort(ns, b, 20002), bindPort(ns, b, 20003)))
			b.UnbindPort(20003)
			send := func(port uint16) {
				linktest.WriteAll(t, tx, rawio.Packet{Vec: [][]byte{fakePacket(1, port, 40)}, Remote: addrPortOf(addr)})
			}
			for _, port := range []uint16{20000, 20002, 20003, 20001} {
				send(port)
			}
			for _, l := range []struct {
				link *raw.Link
				port uint16
			}{{a, 20001}, {b, 20002}} {
				p := linktest.ReadPackets(t, l.link, 1)[0]
				check.Equal(t, "port of the packet", binary.BigEndian.Uint16(p.Data[2:]), l.port)
				p.Release()
			}
			send(20001) // behind everything else: what comes next must be this
			send(20002)
			for _, l := range []*raw.Link{a, b} {
				p := linktest.ReadPackets(t, l, 1)[0]
				p.Release()
				check.That(t, l.Stats().RxPackets == 2 && l.Stats().RxMalformed == 0, "stats %+v, want 2 packets",
					l.Stats())
			}
			// Without a bound port, nothing comes in; the first packet after BindPort is its own.
			must.OK(t, bindPort(ns, tx, 20005))
			send(20005)
			p := linktest.ReadPackets(t, tx, 1)[0]
			p.Release()
			check.Equal(t, "packets received", tx.Stats().RxPackets, 1)
		})
	}
}

func TestNoPortFilterLetsEveryPortIn(t *testing.T) {
	ns := testns.New(t)
	a := openLink(t, ns, raw.Config{Local: v4, NoPortFilter: true})
	linktest.WriteAll(t, a, rawio.Packet{Vec: [][]byte{fakePacket(1, 20009, 40)}, Remote: addrPortOf(v4)})
	p := linktest.ReadPackets(t, a, 1)[0]
	p.Release()
}

// An IP header with options moves the SCTP header: the filter and the link must both follow it.
func TestIPv4Options(t *testing.T) {
	ns := testns.New(t)
	a := openLink(t, ns, raw.Config{Local: v4, Ports: []uint16{20001}, Mark: rawio.Mark{TTL: 3, Class: 0xbb}})
	var fd int
	ns.Do(func() (err error) {
		fd, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_RAW, 132)
		return err
	})
	defer syscall.Close(fd)
	must.OK(t, syscall.SetsockoptString(fd, syscall.IPPROTO_IP, syscall.IP_OPTIONS, "\x01\x01\x01\x01"))
	want := fakePacket(1, 20001, 60)
	must.OK(t, syscall.Sendto(fd, want, 0, &syscall.SockaddrInet4{Addr: v4.As4()}))
	p := linktest.ReadPackets(t, a, 1)[0]
	defer p.Release()
	check.Slice(t, "octets", p.Data, want)
	b := make([]byte, 100)
	for b[20] != want[2] { // until the answer, which has the ports the other way round; the mark is in its header
		linktest.WriteAll(t, a, rawio.Packet{Vec: [][]byte{fakePacket(20001, 1, 60)}, Remote: addrPortOf(v4), ECN: 2})
		must.Get(syscall.Read(fd, b))(t)
	}
	check.Slice(t, "TOS and TTL", []byte{b[1], b[8]}, []byte{0xba, 3})
}

// An IPv6 packet from an IPv4-mapped address is none of IPv4, and would be answered as if it were.
func TestMappedSourceIsDropped(t *testing.T) {
	ns := testns.New(t)
	a := openLink(t, ns, raw.Config{Ports: []uint16{20001}})
	var fd int
	ns.Do(func() (err error) {
		fd, err = syscall.Socket(syscall.AF_INET6, syscall.SOCK_RAW, syscall.IPPROTO_RAW) // with a header of our own
		return err
	})
	defer syscall.Close(fd)
	sctp := fakePacket(1, 20001, 60)
	for _, src := range []netip.Addr{netip.MustParseAddr("::ffff:127.0.0.1"), v6} {
		b := make([]byte, 40, 100)
		b[0], b[5], b[6], b[7] = 0x60, byte(len(sctp)), 132, 64
		s, d := src.As16(), v6.As16()
		copy(b[8:], s[:])
		copy(b[24:], d[:])
		must.OK(t, syscall.Sendto(fd, append(b, sctp...), 0, &syscall.SockaddrInet6{Addr: d}))
	}
	p := linktest.ReadPackets(t, a, 1)[0]
	defer p.Release()
	check.Equal(t, "where a packet came from", p.Remote, addrPortOf(v6))
	check.That(t, a.Stats().RxMalformed == 1 && a.Stats().RxPackets == 1, "%+v", a.Stats())
}

func TestPortInUse(t *testing.T) {
	ns := testns.New(t)
	a := openLink(t, ns, raw.Config{Local: v4, Ports: []uint16{20001}})
	b := openLink(t, ns, raw.Config{Local: v6})
	err := bindPort(ns, b, 20001)
	check.That(t, errors.Is(err, rawio.ErrPortInUse) && errors.Is(err, syscall.EADDRINUSE),
		"BindPort of a taken port = %v", err)
	check.Error(t, "BindPort of a port of its own", bindPort(ns, a, 20001), nil)
	ns.Do(func() error {
		check.Fails(raw.Open(raw.Config{Ports: []uint16{20001}}))(t, "Open with a taken port", rawio.ErrPortInUse)
		return nil
	})
	check.Error(t, "BindPort(0)", bindPort(ns, b, 0), syscall.EINVAL)
	a.UnbindPort(20001)
	check.Error(t, "BindPort of a port given up", bindPort(ns, b, 20001), nil)
	b.Close()
	check.Error(t, "BindPort of a closed link's port", bindPort(ns, a, 20001), nil)
	a.Close()
	check.Error(t, "BindPort after Close", bindPort(ns, a, 20002), os.ErrClosed)
}

func TestPortLimit(t *testing.T) {
	ns := testns.New(t)
	a := openLink(t, ns, raw.Config{Local: v4})
	for p := uint16(21000); p < 23000; p++ {
		must.OK(t, bindPort(ns, a, p))
	}
	check.Equal(t, "BindPort beyond the limit", bindPort(ns, a, 23000), raw.ErrTooManyPorts)
	linktest.WriteAll(t, a, rawio.Packet{Vec: [][]byte{fakePacket(1, 22999, 40)}, Remote: addrPortOf(v4)})
	p := linktest.ReadPackets(t, a, 1)[0]
	p.Release()
}

func TestCloseWakesReader(t *testing.T) {
	ns := testns.New(t)
	for _, local := range []netip.Addr{v4, v6, {}} {
		t.Run(fmt.Sprint(local), func(t *testing.T) {
			a := openLink(t, ns, raw.Config{Local: local, Ports: []uint16{20001}})
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
			n, err := a.WriteBatch([]rawio.Packet{{Vec: [][]byte{fakePacket(1, 1, 12)}, Remote: addrPortOf(v4)}})
			check.That(t, n == 0 && err != nil, "WriteBatch after Close = %d, %v", n, err)
		})
	}
}

func TestBadPacketIsRefusedAndTheRestAreSent(t *testing.T) {
	ns := testns.New(t)
	a := openLink(t, ns, raw.Config{Local: v4, Ports: []uint16{20001}})
	ok := rawio.Packet{Vec: [][]byte{fakePacket(20001, 20001, 40)}, Remote: addrPortOf(v4)}
	long := rawio.Packet{Vec: [][]byte{make([]byte, 65516)}, Remote: addrPortOf(v4)}
	other := rawio.Packet{Vec: ok.Vec, Remote: addrPortOf(v6)}
	mixed := rawio.Packet{Vec: ok.Vec, Local: addrPortOf(v6), Remote: addrPortOf(v4)}
	n, err := a.WriteBatch([]rawio.Packet{ok, long, ok})
	check.That(t, n == 1 && err == rawio.ErrTooLong, "a too long packet in the middle: %d, %v", n, err)
	for _, bad := range []rawio.Packet{other, mixed} {
		for range 2 { // whole, and in fragments
			n, err := a.WriteBatch([]rawio.Packet{ok, bad, {Vec: ok.Vec, Remote: ok.Remote, Fragment: 576}})
			check.That(t, n == 1 && err != nil, "an address of the wrong family: %d, %v", n, err)
			bad.Fragment = 576
		}
	}
	s := a.Stats()
	check.That(t, s.TxPackets == 5 && s.TxTooLong == 1 && s.TxErrors == 4, "stats %+v", s)
	far := netip.MustParseAddr("192.0.2.77")
	ns.Do(func() error {
		check.Fails(raw.Open(raw.Config{Local: far}))(t, "an address of another host", syscall.EADDRNOTAVAIL)
		check.Fails(raw.Open(raw.Config{Peer: far}))(t, "a peer that there is no way to", syscall.ENETUNREACH)
		return nil
	})
	var mtu *rawio.MTUError
	_, err = raw.Open(raw.Config{MTU: 575})
	check.That(t, errors.As(err, &mtu) && mtu.MTU == 575, "Open with an MTU of 575 = %v", err)
	_, err = raw.Open(raw.Config{Local: v4, Peer: v6})
	check.That(t, err != nil && err.Error() ==
		"raw link: local address 127.0.0.1 and peer ::1 are of different families",
		"Open with addresses of two families: %v", err)
}

func TestMTUIsThatOfTheRoute(t *testing.T) {
	ns := testns.New(t)
	for _, test := range []struct {
		name   string
		cfg    raw.Config
		remote netip.Addr
		want   int
	}{
		{"IPv4 loopback is bounded by the length field", raw.Config{}, v4, 65535 - 20},
		{"IPv6 loopback", raw.Config{}, v6, 65536 - 40},
		{"a configured MTU bounds IPv4", raw.Config{MTU: 1500}, v4, 1480},
		{"a configured MTU bounds IPv6", raw.Config{MTU: 1500}, v6, 1460},
		{"the least that can be configured", raw.Config{MTU: rawio.MinMTU}, v4, 556},
		{"a larger configured MTU changes nothing", raw.Config{MTU: 1 << 20}, v4, 65535 - 20},
	} {
		t.Run(test.name, func(t *testing.T) {
			check.Equal(t, "MTU", openLink(t, ns, test.cfg).MTU(netip.Addr{}, test.remote), test.want)
		})
	}
}

func TestLocalAddrsAreTheBoundOneOrAll(t *testing.T) {
	ns := testns.New(t)
	testns.Veth(ns, testns.New(t), "eth", 1500, netip.MustParsePrefix("10.1.0.1/24"),
		netip.MustParsePrefix("10.1.0.2/24"))
	got := openLink(t, ns, raw.Config{Local: v4}).LocalAddrs()
	check.That(t, len(got) == 1 && got[0] == addrPortOf(v4), "of a bound link: %v", got)
	all := []netip.AddrPort{addrPortOf(netip.MustParseAddr("10.1.0.1")), addrPortOf(v4), addrPortOf(v6)}
	check.Slice(t, "addresses of an unbound link", openLink(t, ns, raw.Config{}).LocalAddrs(), all)
	check.Slice(t, "addresses of an IPv4 link",
		openLink(t, ns, raw.Config{Local: netip.IPv4Unspecified()}).LocalAddrs(),
		all[:2])
	check.Slice(t, "addresses of an IPv6 link",
		openLink(t, ns, raw.Config{Local: netip.IPv6Unspecified()}).LocalAddrs(),
		all[2:])
}

func TestPermissionError(t *testing.T) {
	testpriv.AsNobody(t, func(t *testing.T) {
		_, err := raw.Open(raw.Config{})
		var p *rawio.PermissionError
		check.That(t, errors.As(err, &p) && p.Link == "raw" && p.Capability == "CAP_NET_RAW" &&
			errors.Is(err, syscall.EPERM),
			"Open = %v, want a *rawio.PermissionError", err)
	})
}

func TestPacketsHaveMarksOfTheirOwn(t *testing.T) {
	ns := testns.New(t)
	l := openLink(t, ns, raw.Config{})
	linktest.CheckMarks(t, ns.Do, l, addrPortOf(v4))
	linktest.CheckMarks(t, ns.Do, l, addrPortOf(v6))
}

// What the kernel refuses while a link is opened is told, but for IPv6 where the host has none:
// then it is a link of IPv4.
func TestRefusedSystemCallsOfOpen(t *testing.T) {
	opens := func(cfg raw.Config) func() (io.Closer, error) {
		cfg.Ports = []uint16{20001}
		return func() (io.Closer, error) {
			l, err := raw.Open(cfg)
			if err == nil {
				linktest.WriteAll(t, l, rawio.Packet{Vec: [][]byte{fakePacket(1, 2, 40)}, Remote: addrPortOf(v4)})
				n, err := l.WriteBatch([]rawio.Packet{{Vec: [][]byte{fakePacket(1, 2, 40)}, Remote: addrPortOf(v6)}})
				check.That(t, n == 0 && err != nil, "%d packets to IPv6, %v", n, err)
			}
			return l, err
		}
	}
	testns.Refusals(t, opens(raw.Config{}),
		testns.DoesWithout("no IPv6", unix.EAFNOSUPPORT, unix.SYS_SOCKET, unix.AF_INET6),
		testns.Fails("no socket", unix.EMFILE, unix.SYS_SOCKET, unix.AF_INET),
		testns.Fails("neither IPv4", unix.EAFNOSUPPORT, unix.SYS_SOCKET, unix.AF_INET),
		testns.Fails("no socket of IPv6", unix.EMFILE, unix.SYS_SOCKET, unix.AF_INET6),
		testns.Fails("no privilege", unix.EACCES, unix.SYS_SOCKET, unix.AF_INET),
		testns.Fails("no filter", unix.ENOMEM, unix.SYS_SETSOCKOPT, -1, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER),
		testns.Fails("no header of ours", unix.ENOPROTOOPT, unix.SYS_SETSOCKOPT, -1, unix.IPPROTO_IP, unix.IP_HDRINCL),
		testns.Fails("no small buffer for the sink", unix.ENOPROTOOPT, unix.SYS_SETSOCKOPT, -1, unix.SOL_SOCKET,
			unix.SO_RCVBUF),
		testns.Fails("no socket to claim a port", unix.EMFILE, unix.SYS_SOCKET, unix.AF_UNIX),
		testns.Fails("no name to claim a port", unix.ENOMEM, unix.SYS_BIND, -1, -1, 2+len("@rddp/sctp/20001")),
	)
	testns.Refusals(t, opens(raw.Config{Local: v6}), testns.Fails("IPv6 alone, which is not there", unix.EAFNOSUPPORT,
		unix.SYS_SOCKET, unix.AF_INET6))
}
