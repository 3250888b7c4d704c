package tun_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/testns"
	"github.com/rddp-go/rddp/internal/test/testpriv"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/linktest"
	"github.com/rddp-go/rddp/rawio/internal/mmsg"
	"github.com/rddp-go/rddp/rawio/tun"
	"github.com/vishvananda/netlink"
	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// A forwarding host with two devices, and a stack behind each: .2 and ::2 are the stacks'.
var (
	host1 = []netip.Prefix{netip.MustParsePrefix("10.9.1.1/24"), netip.MustParsePrefix("fd09:1::1/64")}
	host2 = []netip.Prefix{netip.MustParsePrefix("10.9.2.1/24"), netip.MustParsePrefix("fd09:2::1/64")}
	addr1 = []netip.Addr{netip.MustParseAddr("10.9.1.2"), netip.MustParseAddr("fd09:1::2")}
	addr2 = []netip.Addr{netip.MustParseAddr("10.9.2.2"), netip.MustParseAddr("fd09:2::2")}
)

func newRouter(t testing.TB) *testns.NS {
	ns := testns.New(t)
	ns.Do(func() error {
		return errors.Join(
			os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0),
			os.WriteFile("/proc/sys/net/ipv6/conf/all/forwarding", []byte("1"), 0))
	})
	return ns
}

func openLink(t testing.TB, ns *testns.NS, cfg tun.Config) *tun.Link {
	t.Helper()
	var l *tun.Link
	ns.Do(func() (err error) {
		l, err = tun.Open(cfg)
		return err
	})
	t.Cleanup(func() { l.Close() })
	return l
}

func addrPortOf(a netip.Addr) netip.AddrPort { return netip.AddrPortFrom(a, 0) }

func TestLinkMayBeUsedAtOnce(t *testing.T) {
	ns := newRouter(t)
	a, b := openLink(t, ns, tun.Config{Host: host1, Addrs: addr1}),
		openLink(t, ns, tun.Config{Host: host2, Addrs: addr2, MTU: 1280})
	for _, dst := range addr2 {
		linktest.CheckMarks(t, ns.Do, a, addrPortOf(dst))
	}
	linktest.CheckConcurrentUse(t, a, b, rawio.Packet{Vec: [][]byte{linktest.Pattern(1400)},
		Local:  addrPortOf(addr1[0]),
		Remote: addrPortOf(addr2[0])}, func() { a.Stats(); b.Stats() })
	check.That(t, a.Stats().TxPackets != 0 && a.Stats().TxTooLong != 0, "%+v", a.Stats())
	check.Equal(t, "what it says of itself that it can", a.Features(),
		rawio.DontFragment|rawio.ECNField|rawio.Interruptible|rawio.Waitable|rawio.Marking)
}

func TestPacketsArriveUnchangedBothWays(t *testing.T) {
	for _, test := range []struct {
		name string
		mtu  int
		v6   int // index of the addresses
		size int
	}{
		{"IPv4 full packets", 1500, 0, 1480},
		{"IPv6 full packets", 1500, 1, 1460},
		{"IPv4 of 64 KB", 65535, 0, 65515},
		{"IPv6 of 64 KB", 65535, 1, 65495},
		{"IPv4 a common header alone", 1500, 0, 12},
	} {
		t.Run(test.name, func(t *testing.T) {
			ns := newRouter(t)
			a := openLink(t, ns, tun.Config{Host: host1, Addrs: addr1, MTU: test.mtu})
			b := openLink(t, ns, tun.Config{Host: host2, Addrs: addr2, MTU: test.mtu})
			from, dst := addr1[test.v6], addr2[test.v6]
			got := a.MTU(from, dst)
			check.That(t, test.size <= 12 || got == test.size, "MTU = %d, want %d", got, test.size)
			for _, way := range []struct {
				tx, rx   *tun.Link
				src, dst netip.Addr
			}{{a, b, from, dst}, {b, a, dst, from}} {
				linktest.CheckDelivery(t, way.tx, way.rx, addrPortOf(way.src), addrPortOf(way.dst),
					linktest.Pattern(test.size), 16, 4)
			}
			s := a.Stats()
			check.That(t, s.RxPackets == 16 && s.TxPackets == 16 && s.RxMalformed+s.RxFragments == 0, "stats %+v", s)
		})
	}
}

// A whole window waits in the device while the stack does something else.
func TestWholeWindowWaitsInTheDevice(t *testing.T) {
	for k, family := range []string{"IPv4", "IPv6"} {
		t.Run(family, func(t *testing.T) {
			ns := newRouter(t)
			a := openLink(t, ns, tun.Config{Host: host1[k : k+1], Addrs: addr1[k : k+1]})
			b := openLink(t, ns, tun.Config{Host: host2[k : k+1], Addrs: addr2[k : k+1]})
			out := make([]rawio.Packet, 100)
			for i := range out {
				out[i] = rawio.Packet{Vec: [][]byte{linktest.Pattern(1460)}, Remote: addrPortOf(addr2[k])}
			}
			for range 30 {
				linktest.WriteAll(t, a, out...)
			}
			for _, p := range linktest.ReadPackets(t, b, 30*len(out)) {
				p.Release()
			}
		})
	}
}

// What ICMP says about our packets comes up with the quote.
func TestICMPReports(t *testing.T) {
	for i, family := range []string{"IPv4", "IPv6"} {
		t.Run(family, func(t *testing.T) {
			ns := newRouter(t)
			l := openLink(t, ns, tun.Config{Host: host1, Addrs: addr1})
			openLink(t, ns, tun.Config{Host: host2, Addrs: addr2, MTU: 1280}) // the narrow hop
			for _, report := range []struct {
				remote netip.Addr
				kind   rawio.Kind
				mtu    int
			}{
				{addr2[i], rawio.KindPacketTooBig, 1280},
				{host1[i].Addr(), rawio.KindProtoUnreachable, 0}, // the kernel has no SCTP
			} {
				sent := linktest.Pattern(l.MTU(addr1[i], report.remote))
				linktest.WriteAll(t, l, rawio.Packet{Vec: [][]byte{sent}, Remote: addrPortOf(report.remote)})
				p := linktest.ReadPackets(t, l, 1)[0]
				check.That(t, p.Kind == report.kind && p.MTU == report.mtu && p.Local == addrPortOf(addr1[i]) &&
					p.Remote == addrPortOf(report.remote),
					"kind %v MTU %d local %v remote %v, want %+v", p.Kind, p.MTU, p.Local, p.Remote, report)
				check.That(t, len(p.Data) >= 8 && bytes.HasPrefix(sent, p.Data),
					"the quote is not the beginning of our packet: % x", p.Data)
				p.Release()
			}
			check.That(t, l.Stats().RxICMP == 2 && l.Stats().RxPackets == 2, "stats %+v", l.Stats())
		})
	}
}

// rawSocket opens a raw socket of the host's.
func rawSocket(t *testing.T, ns *testns.NS, family, proto int) int {
	t.Helper()
	var fd int
	ns.Do(func() (err error) {
		fd, err = unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, proto)
		return err
	})
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func sendRaw(t *testing.T, fd int, dst netip.Addr, b []byte) {
	t.Helper()
	must.OK(t, unix.Sendto(fd, b, 0, mmsg.SockaddrOf(addrPortOf(dst))))
}

func TestAnswersEcho(t *testing.T) {
	for i, test := range []struct {
		name           string
		family, proto  int
		request, reply icmp.Type
		skip           int // octets the raw socket shows in front of ICMP
	}{
		{"IPv4", unix.AF_INET, unix.IPPROTO_ICMP, ipv4.ICMPTypeEcho, ipv4.ICMPTypeEchoReply, 20},
		{"IPv6", unix.AF_INET6, unix.IPPROTO_ICMPV6, ipv6.ICMPTypeEchoRequest, ipv6.ICMPTypeEchoReply, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			ns := newRouter(t)
			l := openLink(t, ns, tun.Config{Host: host1, Addrs: addr1})
			done := make(chan error)
			go func() { // answers while it reads
				_, err := l.ReadBatch(make([]rawio.Packet, 1))
				done <- err
			}()
			fd := rawSocket(t, ns, test.family, test.proto)
			for _, size := range []int{0, 1, 1400} {
				echo := &icmp.Echo{ID: 77, Seq: size, Data: linktest.Pattern(size)}
				msg := must.Get((&icmp.Message{Type: test.request, Body: echo}).Marshal(nil))(t)
				sendRaw(t, fd, addr1[i], msg)
				for b := make([]byte, 2000); ; {
					n, _ := must.Two(unix.Recvfrom(fd, b, 0))(t)
					m, err := icmp.ParseMessage(test.proto, b[test.skip:n])
					if err != nil || m.Type != test.reply {
						continue // the kernel shows this socket other ICMP messages, too
					}
					got := m.Body.(*icmp.Echo)
					check.That(t, got.ID == 77 && got.Seq == size && bytes.Equal(got.Data, echo.Data),
						"the reply to %d octets differs: %+v", size, got)
					break
				}
			}
			l.Close()
			check.Equal(t, "ReadBatch", <-done, net.ErrClosed)
			check.That(t, l.Stats().RxEcho == 3 && l.Stats().RxMalformed == 0, "stats %+v, want 3 echo replies",
				l.Stats())
		})
	}
}

// What is no SCTP packet for the stack is dropped and counted by its reason.
func TestDropsAndCounts(t *testing.T) {
	ns := newRouter(t)
	l := openLink(t, ns, tun.Config{Host: host1[:1], Addrs: addr1[:1]})
	ping := rawSocket(t, ns, unix.AF_INET, unix.IPPROTO_ICMP)
	udp := rawSocket(t, ns, unix.AF_INET, unix.IPPROTO_UDP)
	sctp := rawSocket(t, ns, unix.AF_INET, 132)

	long := must.Get((&icmp.Message{Type: ipv4.ICMPTypeEcho, Body: &icmp.Echo{Data: linktest.Pattern(2000)}}).Marshal(
		nil))(t)
	must.OK(t, unix.SetsockoptInt(ping, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DONT))
	stranger := must.Get((&icmp.Message{Type: ipv4.ICMPTypeDestinationUnreachable, Code: 2, Body: &icmp.DstUnreach{
		Data: append([]byte{0x45, 0, 0, 60, 0, 0, 0, 0, 64, 132, 0, 0, 10, 9, 1, 9, 10, 9, 1, 1},
			linktest.Pattern(40)...),
	}}).Marshal(nil))(t)
	sendRaw(t, ping, addr1[0], long)                                         // two fragments of another protocol
	sendRaw(t, ping, addr1[0], []byte{8, 0, 1, 2, 0, 0, 0, 0})               // wrong checksum
	sendRaw(t, ping, addr1[0], stranger)                                     // about a packet that is not ours
	sendRaw(t, sctp, addr1[0], linktest.Pattern(11))                         // no whole common header
	sendRaw(t, udp, addr1[0], make([]byte, 8))                               // another protocol
	sendRaw(t, sctp, netip.MustParseAddr("10.9.1.77"), linktest.Pattern(12)) // another address
	sendRaw(t, sctp, addr1[0], linktest.Pattern(12))                         // at last a packet
	p := linktest.ReadPackets(t, l, 1)[0]
	check.Equal(t, "octets", len(p.Data), 12)
	p.Release()
	s := l.Stats()
	want := s
	want.RxPackets, want.RxICMP, want.RxEcho = 1, 0, 0
	want.RxFragments, want.RxMalformed, want.RxOther, want.RxIgnored = 0, 2, 3, 1
	// the kernel itself sends multicast into the device, too
	check.That(t, s == want && s.RxNotOurs >= 1, "stats %+v, want %+v", s, want)
}

func TestBadPacketIsRefusedAndTheRestAreSent(t *testing.T) {
	ns := testns.New(t)
	l := openLink(t, ns, tun.Config{Host: host1[:1], Addrs: addr1[:1]})
	ok := rawio.Packet{Vec: [][]byte{linktest.Pattern(40)}, Remote: addrPortOf(addr2[0])}
	long, family, foreign := ok, ok, ok
	long.Vec = [][]byte{linktest.Pattern(1481)}
	family.Remote = addrPortOf(addr2[1])
	foreign.Local = addrPortOf(addr2[0])
	n, err := l.WriteBatch([]rawio.Packet{ok, long, ok})
	check.That(t, n == 1 && err == rawio.ErrTooLong, "a too long packet in the middle: %d, %v", n, err)
	for _, bad := range []rawio.Packet{family, foreign, {Vec: ok.Vec},
		{Vec: ok.Vec, Local: addrPortOf(addr1[0]), Remote: addrPortOf(addr2[1])}} {
		n, err := l.WriteBatch([]rawio.Packet{ok, bad})
		check.That(t, n == 1 && err != nil, "from %v to %v: %d, %v", bad.Local, bad.Remote, n, err)
	}
	s := l.Stats()
	check.That(t, s.TxPackets == 5 && s.TxTooLong == 1 && s.TxErrors == 4, "stats %+v", s)
}

func TestBadConfigs(t *testing.T) {
	var mtu *rawio.MTUError
	_, err := tun.Open(tun.Config{Addrs: addr1, MTU: 575})
	check.That(t, errors.As(err, &mtu) && mtu.MTU == 575, "an MTU of 575: %v", err)
	for _, test := range []struct {
		want string
		cfg  tun.Config
	}{
		{"Config.Addrs is empty; the stack needs an IP address of its own", tun.Config{}},
		{"224.0.0.1 cannot be the stack's address; it takes a global or private unicast one", tun.Config{Addrs: []netip.Addr{netip.MustParseAddr("224.0.0.1")}}},
		{"10.9.1.1 cannot be both the stack's and the host's address", tun.Config{Host: host1, Addrs: []netip.Addr{host1[0].Addr()}}},
		{"IPv6 needs an MTU of at least 1280 octets, not 1279", tun.Config{Addrs: addr1, MTU: 1279}},
		{"an MTU of 65536 octets is above the device's limit of 65535", tun.Config{Addrs: addr1, MTU: 65536}},
		{"a queue of -1 packets; it is 1 to 65536", tun.Config{Addrs: addr1, Queue: -1}},
		{"a queue of 65537 packets; it is 1 to 65536", tun.Config{Addrs: addr1, Queue: 65537}},
		{"-1 shards; it is 1 to 64", tun.Config{Addrs: addr1, Shards: -1}},
		{"65 shards; it is 1 to 64", tun.Config{Addrs: addr1, Shards: rawio.MaxShards + 1}},
		{`the device name "xxxxxxxxxxxxxxxx" is longer than 15 characters`, tun.Config{Addrs: addr1, Name: strings.Repeat("x", 16)}},
	} {
		l, err := tun.Open(test.cfg)
		if check.That(t, err != nil && err.Error() == "tun link: "+test.want, "%v, want %s", err, test.want); err ==
			nil {
			l.Close()
		}
	}
}

// A device that the kernel does not set up as asked for is an error, and does not stay.
func TestDeviceThatCannotBeSetUpIsGone(t *testing.T) {
	ns, none := testns.New(t), []netip.Prefix{{}}
	for want, cfg := range map[string]tun.Config{
		"tun link: device t0: adding the host's address invalid Prefix": {Name: "t0", Addrs: addr1, Host: none},
		"tun link: device t0: routing invalid Prefix to it":             {Name: "t0", Addrs: addr1, Routes: none},
	} {
		ns.Do(func() error {
			l, err := tun.Open(cfg)
			check.That(t, l == nil && err != nil && strings.HasPrefix(err.Error(), want), "%v, want %s", err, want)
			_, err = net.InterfaceByName("t0")
			check.That(t, err != nil, "the device is still there")
			return nil
		})
	}
}

// What the kernel refuses while a device is opened is told.
func TestRefusedSystemCallsOfOpen(t *testing.T) {
	for _, shards := range []int{1, 2} {
		opens := func() (io.Closer, error) { return tun.Open(tun.Config{Host: host1, Addrs: addr1, Shards: shards}) }
		testns.Refusals(t, opens,
			testns.Fails("no tun module", unix.ENODEV, unix.SYS_OPENAT, -1, -1,
				unix.O_RDWR|unix.O_CLOEXEC|unix.O_LARGEFILE),
			testns.Fails("no device", unix.ENOMEM, unix.SYS_IOCTL, -1, unix.TUNSETIFF),
			testns.Fails("no privilege for it", unix.EACCES, unix.SYS_IOCTL, -1, unix.TUNSETIFF),
			testns.Fails("no reading without waiting", unix.ENOMEM, unix.SYS_FCNTL, -1, unix.F_SETFL),
			testns.Fails("no request to it", unix.ENOBUFS, unix.SYS_SENDTO),
			// the request without attributes
			testns.Fails("no going up", unix.EIO, unix.SYS_SENDTO, -1, -1, unix.SizeofNlMsghdr+unix.SizeofIfInfomsg),
		)
		testns.New(t).Do(func() error {
			must.OK(t, testns.Refuse(unix.EPERM, unix.SYS_SENDTO))
			_, err := opens()
			var p *rawio.PermissionError
			check.That(t, errors.As(err, &p) && p.Link == "tun" && p.Capability == "CAP_NET_ADMIN",
				"no privilege to set it up: %v", err)
			return nil
		})
	}
}

func TestNameIsTheNextFreeOrTheOneAskedFor(t *testing.T) {
	ns := testns.New(t)
	a := openLink(t, ns, tun.Config{Addrs: addr1})
	b := openLink(t, ns, tun.Config{Addrs: addr2, Name: "stack"})
	check.That(t, a.Name() == "rddp0" && b.Name() == "stack", "names %q and %q", a.Name(), b.Name())
	ns.Do(func() error {
		l, err := tun.Open(tun.Config{Addrs: addr1, Name: "stack"})
		check.That(t, errors.Is(err, syscall.EBUSY) && strings.Contains(err.Error(), "by another program"),
			"a device in use: %v, %v", l, err)
		return nil
	})
	b.Close()
	openLink(t, ns, tun.Config{Addrs: addr2, Name: "stack"}) // the closed one is gone
}

// Without Host, the stack's addresses are routed by themselves; Routes adds prefixes.
func TestRoutesAreAddedWithAndWithoutHost(t *testing.T) {
	ns := newRouter(t)
	a := openLink(t, ns, tun.Config{Host: host1, Addrs: addr1})
	elsewhere := netip.MustParseAddr("10.77.0.5")
	b := openLink(t, ns, tun.Config{Addrs: slices.Concat(addr2, []netip.Addr{elsewhere}),
		Routes: []netip.Prefix{netip.MustParsePrefix("10.77.0.0/16")}})
	for _, dst := range []netip.Addr{addr2[0], addr2[1], elsewhere} {
		linktest.WriteAll(t, a, rawio.Packet{Vec: [][]byte{linktest.Pattern(20)}, Remote: addrPortOf(dst)})
		p := linktest.ReadPackets(t, b, 1)[0]
		check.Equal(t, "address sent to", p.Local, addrPortOf(dst))
		p.Release()
	}
	check.That(t, len(b.LocalAddrs()) == 3 && b.LocalAddrs()[0] == addrPortOf(addr2[0]), "LocalAddrs = %v",
		b.LocalAddrs())
	ns.Do(func() error { // what is routed to the device is there: it may be a gateway of the host
		_, far, _ := net.ParseCIDR("10.88.0.0/16")
		check.OK(t, netlink.RouteAdd(&netlink.Route{Dst: far, Gw: net.IPv4(10, 77, 0, 1)}))
		return nil
	})
}

func TestCloseWakesReader(t *testing.T) {
	outstanding := rawio.TrackPools()
	l := openLink(t, testns.New(t), tun.Config{Addrs: addr1, Poll: time.Nanosecond})
	check.Equal(t, "polling", l.Polling(), time.Nanosecond)
	done := make(chan error)
	go func() {
		_, err := l.ReadBatch(make([]rawio.Packet, 4))
		done <- err
	}()
	must.OK(t, l.Close())
	check.Error(t, "second Close", l.Close(), net.ErrClosed)
	check.Equal(t, "ReadBatch", <-done, net.ErrClosed)
	_, err := l.ReadBatch(make([]rawio.Packet, 4))
	check.That(t, err == net.ErrClosed, "ReadBatch after Close = %v, want net.ErrClosed", err)
	check.That(t, l.PollBatch(make([]rawio.Packet, 4)) == 0 && l.Wait(rawio.Block) == net.ErrClosed,
		"PollBatch after Close brings a packet, or Wait waits")
	n, err := l.WriteBatch([]rawio.Packet{{Vec: [][]byte{linktest.Pattern(12)}, Remote: addrPortOf(addr2[0])}})
	check.That(t, n == 0 && err == net.ErrClosed, "WriteBatch after Close = %d, %v", n, err)
	check.Equal(t, "buffers that are not given back", outstanding(), 0)
}

func TestPermissionError(t *testing.T) {
	testpriv.AsNobody(t, func(t *testing.T) {
		_, err := tun.Open(tun.Config{Addrs: addr1})
		var p *rawio.PermissionError
		check.That(t, errors.As(err, &p) && p.Link == "tun" && p.Capability == "CAP_NET_ADMIN",
			"Open = %v, want a *rawio.PermissionError", err)
	})
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	ns := newRouter(t)
	a := openLink(t, ns, tun.Config{Host: host1, Addrs: addr1})
	b := openLink(t, ns, tun.Config{Host: host2, Addrs: addr2})
	for i, family := range []string{"IPv4", "IPv6"} {
		move := linktest.BatchMover(t, a, b, rawio.Packet{Vec: [][]byte{linktest.Pattern(1400)},
			Remote: addrPortOf(addr2[i])}, 8)
		move() // the buffer pool fills
		n := testing.AllocsPerRun(100, move)
		check.That(t, n == 0, "%s: %v allocations a batch of 8", family, n)
	}
}

// BenchmarkPump is the bare link: TUN to TUN through the kernel's forwarding, no protocol.
func BenchmarkPump(b *testing.B) {
	for i, family := range []string{"IPv4", "IPv6"} {
		for _, test := range []struct{ mtu, count int }{{1500, 32}, {65535, 8}} {
			b.Run(fmt.Sprintf("%s/%d", family, test.mtu), func(b *testing.B) {
				ns := newRouter(b)
				tx := openLink(b, ns, tun.Config{Host: host1, Addrs: addr1, MTU: test.mtu})
				rx := openLink(b, ns, tun.Config{Host: host2, Addrs: addr2, MTU: test.mtu})
				size := tx.MTU(addr1[i], addr2[i])
				move := linktest.BatchMover(b, tx, rx,
					rawio.Packet{Vec: [][]byte{linktest.Pattern(size)}, Remote: addrPortOf(addr2[i])}, test.count)
				b.SetBytes(int64(size * test.count))
				b.ReportAllocs()
				for b.Loop() {
					move()
				}
			})
		}
	}
}
