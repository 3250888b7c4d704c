//go:build !rawio_portable

package udp_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/testns"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/linktest"
	"github.com/rddp-go/rddp/rawio/internal/mmsg"
	"github.com/rddp-go/rddp/rawio/udp"
	"golang.org/x/sys/unix"
)

func openIn(t *testing.T, ns *testns.NS, cfg udp.Config) (l *udp.Link) {
	ns.Do(func() (err error) { l, err = udp.Open(cfg); return err })
	t.Cleanup(func() { l.Close() })
	return l
}

func TestECNBitsPassUnchanged(t *testing.T) {
	// req 6951-5.8-1: the ECN bits pass unchanged in both directions.
	for _, addr := range []netip.Addr{v4, v6} {
		a := openLink(t, udp.Config{Port: udp.AnyPort})
		for ecn := range uint8(4) {
			linktest.WriteAll(t, a, rawio.Packet{Vec: [][]byte{linktest.Pattern(40)}, Remote: addrPortOf(addr, a),
				ECN: ecn})
			p := linktest.ReadPackets(t, a, 1)[0]
			check.That(t, p.ECN == ecn, "%v: ECN %d came as %d", addr, ecn, p.ECN)
			p.Release()
		}
	}
}

func TestLinkMayBeUsedAtOnce(t *testing.T) {
	for _, shards := range []int{1, 2} {
		a, b := openLink(t, udp.Config{Port: udp.AnyPort, Shards: shards}), openLink(t, udp.Config{Port: udp.AnyPort})
		check.Equal(t, "what it says of itself that it can", b.Features(),
			rawio.DontFragment|rawio.ECNField|rawio.Interruptible|rawio.Waitable|rawio.Marking)
		linktest.CheckConcurrentUse(t, a, b, rawio.Packet{Vec: [][]byte{linktest.Pattern(100)},
			Remote: addrPortOf(v4, b)},
			func() { a.Stats(); b.Stats() })
		check.Equal(t, "a wait when it is closed", b.Wait(rawio.Park), net.ErrClosed)
		s := b.Stats()
		check.That(t, s.RxPackets != 0 && s.TxTooLong == 0 && a.Stats().TxTooLong != 0, "%+v after %+v", s, a.Stats())
	}
}

func TestSourceIsPacketLocal(t *testing.T) {
	// req 6951-3.1-1: the source address of each packet is the caller's choice.
	local := netip.MustParseAddr("127.0.0.7")
	a := openLink(t, udp.Config{Port: udp.AnyPort})
	linktest.WriteAll(t, a, rawio.Packet{Vec: [][]byte{linktest.Pattern(40)}, Local: addrPortOf(local, a),
		Remote: addrPortOf(v4, a)})
	p := linktest.ReadPackets(t, a, 1)[0]
	defer p.Release()
	check.That(t, p.Remote == addrPortOf(local, a) && p.Local == addrPortOf(v4, a),
		"came from %v to %v, want from %v", p.Remote,
		p.Local, local)
	bad := rawio.Packet{Vec: [][]byte{linktest.Pattern(40)}, Local: addrPortOf(v6, a), Remote: addrPortOf(v4, a)}
	n, err := a.WriteBatch([]rawio.Packet{bad})
	var family *mmsg.FamilyError
	check.That(t, n == 0 && errors.As(err, &family), "from IPv6 to IPv4: %d, %v", n, err)
}

// On the wire there is DF, the right length, and a UDP checksum.
func TestWireFormat(t *testing.T) {
	ns := testns.New(t)
	var tap int
	var l *udp.Link
	ns.Do(func() (err error) {
		if tap, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP); err != nil {
			return err
		}
		l, err = udp.Open(udp.Config{Mark: rawio.Mark{TTL: 3, Class: 0xbb}})
		return err
	})
	defer unix.Close(tap)
	defer l.Close()
	linktest.WriteAll(t, l, rawio.Packet{Vec: [][]byte{linktest.Pattern(40)}, Remote: netip.AddrPortFrom(v4, 1234),
		ECN: 2})
	b := make([]byte, 100)
	n, err := unix.Read(tap, b)
	// req 6951-5.2-1
	must.That(t, err == nil && n == 20+8+40 && b[9] == unix.IPPROTO_UDP &&
		string(b[28:n]) == string(linktest.Pattern(40)), "read %d octets, %v: % x", n, err, b[:n])
	ip, hdr := b[:20], b[20:28]
	check.That(t, ip[8] == 3 && ip[1] == 0xba, "TTL %d, TOS %#x", ip[8], ip[1])
	linktest.WriteAll(t, l, rawio.Packet{Vec: [][]byte{linktest.Pattern(40)}, Remote: netip.AddrPortFrom(v4, 1234)})
	_, err = unix.Read(tap, b)
	check.That(t, err == nil && ip[8] == 3 && ip[1] == 0xb8, "TTL %d, TOS %#x without ECN, %v", ip[8], ip[1], err)
	check.That(t, ip[6] == 0x40, "flags %#x, want DF", ip[6]) // DF, or else 6951-5.6-4 would hold
	// req 6951-5.3-1: ports; req 6951-5.3-2: length.
	want := []byte{9899 >> 8, 9899 & 255, 1234 >> 8, 1234 & 255, 0, 48}
	check.That(t, string(hdr[:6]) == string(want), "UDP header % x, want % x", hdr[:6], want)
	check.That(t, hdr[6]|hdr[7] != 0, "no UDP checksum") // req 6951-5.3-4
}

func TestICMPReports(t *testing.T) {
	for _, test := range []struct {
		name      string
		v6, bound bool
	}{{"IPv4, bound", false, true}, {"IPv4, unbound", false, false}, {"IPv6, unbound", true, false}} {
		t.Run(test.name, func(t *testing.T) {
			path, cfg := testns.NewPath(t, test.v6), udp.Config{}
			if test.bound {
				cfg.Local = path.From
			}
			l := openIn(t, path.Client, cfg)
			head := 28
			if test.v6 {
				head = 48
			}
			got := l.MTU(netip.Addr{}, path.To)
			check.That(t, got == 1500-head, "MTU = %d, want %d", got, 1500-head) // req 6951-5.6-1
			for _, report := range []struct {
				size int
				kind rawio.Kind
				mtu  int
			}{
				{1500 - head, rawio.KindPacketTooBig, 1300}, // from a router on the way
				// req 6951-5.5-3, req 6951-5.5-4: nobody listens on the port: as protocol
				// unreachable.
				{1300 - head, rawio.KindProtoUnreachable, 0},
			} {
				sent := linktest.Pattern(report.size)
				linktest.WriteAll(t, l, rawio.Packet{Vec: [][]byte{sent}, Remote: netip.AddrPortFrom(path.To, 0)})
				p := linktest.ReadPackets(t, l, 1)[0]
				check.That(t, p.Kind == report.kind && p.MTU == report.mtu && p.Local == addrPortOf(path.From, l) &&
					p.Remote == netip.AddrPortFrom(path.To, udp.DefaultPort),
					"kind %v MTU %d local %v remote %v, want %+v", p.Kind, p.MTU, p.Local, p.Remote, report)
				check.That(t, len(p.Data) >= 8 && string(p.Data) == string(sent[:len(p.Data)]),
					"the quote is not the beginning of our packet: % x", p.Data)
				p.Release()
			}
			s := l.Stats()
			check.That(t, s.RxICMP == 2 && s.TxErrors+s.TxTooLong == 0, "stats %+v", s)
		})
	}
}

// An ICMP message of which a send call has told reaches a reader that always finds packets.
func TestICMPReportBesidePackets(t *testing.T) {
	l, peer := openLink(t, udp.Config{Port: udp.AnyPort}), openLink(t, udp.Config{Port: udp.AnyPort})
	closed := openLink(t, udp.Config{Port: udp.AnyPort})
	nobody := addrPortOf(v4, closed)
	closed.Close()
	for range 3 {
		linktest.WriteAll(t, l, rawio.Packet{Vec: [][]byte{linktest.Pattern(100)}, Remote: nobody})
		// is told of it
		linktest.WriteAll(t, l, rawio.Packet{Vec: [][]byte{linktest.Pattern(100)}, Remote: addrPortOf(v4, peer)})
		linktest.WriteAll(t, peer, rawio.Packet{Vec: [][]byte{linktest.Pattern(40)}, Remote: addrPortOf(v4, l)})
		in := make([]rawio.Packet, 8)
		n := must.Get(l.ReadBatch(in))(t)
		kinds := map[rawio.Kind]int{}
		for i := range in[:n] {
			kinds[in[i].Kind]++
			in[i].Release()
		}
		must.That(t, kinds[rawio.KindSCTP] == 1 && kinds[rawio.KindProtoUnreachable] == 1,
			"%v, want a packet and a report", kinds)
	}
}

// A report says something that has the verification tag of our packet, and whose code does.
func TestICMPReportThatSaysNothingIsIgnored(t *testing.T) {
	ns := testns.New(t)
	l := openIn(t, ns, udp.Config{})
	for _, row := range []struct {
		code   uint8
		octets int // of our packet
	}{{3, 7}, {13, 40}, {3, 8}} {
		quote := append([]byte{9899 >> 8, 9899 & 255, 0, 1, 0, 48, 0, 0}, linktest.Pattern(row.octets)...)
		linktest.SendUnreachable(t, ns.Do, row.code, unix.IPPROTO_UDP, v4, v4, quote)
	}
	p := linktest.ReadPackets(t, l, 1)[0]
	check.That(t, p.Kind == rawio.KindProtoUnreachable && p.Remote == netip.AddrPortFrom(v4, 1) &&
		string(p.Data) == string(linktest.Pattern(8)), "%v of %v, % x", p.Kind, p.Remote, p.Data)
	p.Release()
	check.That(t, l.Stats().RxICMP == 1 && l.Stats().RxIgnored == 2, "stats %+v", l.Stats())
}

// It does not get lost when there is no room beside the packets, but comes with the next batch that
// has some.
func TestICMPReportWaitsForRoom(t *testing.T) {
	l, peer := openLink(t, udp.Config{Port: udp.AnyPort}), openLink(t, udp.Config{Port: udp.AnyPort})
	closed := openLink(t, udp.Config{Port: udp.AnyPort})
	nobody := addrPortOf(v4, closed)
	closed.Close()
	linktest.WriteAll(t, l, rawio.Packet{Vec: [][]byte{linktest.Pattern(100)}, Remote: nobody})
	// is told of it
	linktest.WriteAll(t, l, rawio.Packet{Vec: [][]byte{linktest.Pattern(100)}, Remote: addrPortOf(v4, peer)})
	for range 2 {
		linktest.WriteAll(t, peer, rawio.Packet{Vec: [][]byte{linktest.Pattern(40)}, Remote: addrPortOf(v4, l)})
	}
	full := linktest.ReadPackets(t, l, 1)
	must.Equal(t, "kind", full[0].Kind, rawio.KindSCTP)
	full[0].Release()
	in := make([]rawio.Packet, 2)
	n, err := l.ReadBatch(in)
	must.That(t, err == nil && n == 2 && in[0].Kind == rawio.KindSCTP && in[1].Kind == rawio.KindProtoUnreachable,
		"%d packets, kinds %v and %v, %v; want a packet and the report", n, in[0].Kind, in[1].Kind, err)
	in[0].Release()
	in[1].Release()
}

// As many packets as ReceiveBuffer says wait to be read, of any size that fills them.
func TestReceiveBufferHolds(t *testing.T) {
	for _, size := range []int{1440, 65000} {
		a, b := openLink(t, udp.Config{Port: udp.AnyPort, NoOffload: true}), openLink(t, udp.Config{Port: udp.AnyPort})
		n := min(b.ReceiveBuffer(), 4<<20) / size
		must.That(t, n >= 1, "a buffer of %d octets", b.ReceiveBuffer())
		out := make([]rawio.Packet, n)
		for i := range out {
			out[i] = rawio.Packet{Vec: [][]byte{linktest.Pattern(size)}, Remote: addrPortOf(v4, b)}
		}
		linktest.WriteAll(t, a, out...)
		for _, p := range linktest.ReadPackets(t, b, n) {
			p.Release()
		}
		check.That(t, b.Stats().RxOverflow == 0, "%d of %d packets of %d octets dropped", b.Stats().RxOverflow, n, size)
		for range 4 + b.ReceiveBuffer()/(1<<20) { // far more than it holds
			linktest.WriteAll(t, a, out...)
		}
		s := b.Stats()
		check.That(t, s.RxOverflow != 0 && s.RxOverflow <= a.Stats().TxPackets,
			"%d of %d packets of %d octets are said to be dropped", s.RxOverflow, a.Stats().TxPackets, size)
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, addr := range []netip.Addr{v4, v6} {
		for _, size := range []int{1440, 65000} {
			t.Run(fmt.Sprintf("%v %d octets", addr, size), func(t *testing.T) {
				a, b := openLink(t, udp.Config{Port: udp.AnyPort}),
					openLink(t, udp.Config{Local: addr, Port: udp.AnyPort})
				// 4 of 64 KB fit the buffer of an unprivileged socket
				move := linktest.BatchMover(t, a, b,
					rawio.Packet{Vec: [][]byte{linktest.Pattern(size)}, Remote: addrPortOf(addr, b), ECN: 2}, 4)
				for range 20 {
					move() // the buffer pools fill, the receiver finds its buffer size
				}
				check.Equal(t, "allocations a batch of 4", testing.AllocsPerRun(100, move), 0)
			})
		}
	}
}

// BenchmarkPump is the bare link: packets to itself on loopback, no protocol.
func BenchmarkPump(b *testing.B) {
	for _, addr := range []netip.Addr{v4, v6} {
		for _, test := range []struct{ size, count int }{{1440, 32}, {65000, 4}} {
			for _, poll := range []time.Duration{0, 50 * time.Microsecond} {
				b.Run(fmt.Sprintf("%v/%d/poll=%v", addr, test.size, poll), func(b *testing.B) {
					tx := openLink(b, udp.Config{Local: addr, Port: udp.AnyPort})
					rx := openLink(b, udp.Config{Local: addr, Port: udp.AnyPort, Poll: poll})
					move := linktest.BatchMover(b, tx, rx,
						rawio.Packet{Vec: [][]byte{linktest.Pattern(test.size)}, Remote: addrPortOf(addr, rx), ECN: 2},
						test.count)
					b.SetBytes(int64(test.size * test.count))
					b.ReportAllocs()
					for b.Loop() {
						move()
					}
				})
			}
		}
	}
}

// One port receives everything, of both families and at all addresses.
func TestOnePortForAllAddresses(t *testing.T) {
	// req 6951-5.1-2
	a := openLink(t, udp.Config{Port: udp.AnyPort})
	for _, l := range a.LocalAddrs() {
		check.Equal(t, "port", l.Port(), a.Port())
	}
	from := openLink(t, udp.Config{Port: udp.AnyPort})
	for _, addr := range []netip.Addr{v4, netip.MustParseAddr("127.0.0.7"), v6} {
		linktest.WriteAll(t, from, rawio.Packet{Vec: [][]byte{linktest.Pattern(40)}, Remote: addrPortOf(addr, a)})
		p := linktest.ReadPackets(t, a, 1)[0]
		check.Equal(t, "address it came to", p.Local, addrPortOf(addr, a))
		p.Release()
	}
}

// What the system believes of a path does not keep probes back.
func TestSystemsPathMTUIsSuspended(t *testing.T) {
	// req 8899-4.5-1
	testns.EachFamily(t, 1500, func(t *testing.T, nsA, nsB *testns.NS, pa, pb netip.Addr) {
		nsA.PathMTU(pb, "cable", 1300)
		a, b := openIn(t, nsA, udp.Config{}), openIn(t, nsB, udp.Config{})
		linktest.WriteAll(t, a, rawio.Packet{Vec: [][]byte{linktest.Pattern(1400)},
			Remote: netip.AddrPortFrom(pb, 9899)})
		p := linktest.ReadPackets(t, b, 1)[0]
		check.Equal(t, "octets", len(p.Data), 1400)
		p.Release()
	})
}

func TestPacketsHaveMarksOfTheirOwn(t *testing.T) {
	ns := testns.New(t)
	l := openIn(t, ns, udp.Config{})
	linktest.CheckMarks(t, ns.Do, l, netip.AddrPortFrom(v4, 1234))
	linktest.CheckMarks(t, ns.Do, l, netip.AddrPortFrom(v6, 1234))
}

// What the kernel refuses while a link is opened is told, but for IPv6 where the host has none:
// then it is a link of IPv4.
func TestRefusedSystemCallsOfOpen(t *testing.T) {
	opens := func(cfg udp.Config) func() (io.Closer, error) {
		cfg.Port = udp.AnyPort
		return func() (io.Closer, error) {
			l, err := udp.Open(cfg)
			if err == nil {
				linktest.WriteAll(t, l, rawio.Packet{Vec: [][]byte{linktest.Pattern(40)}, Remote: addrPortOf(v4, l)})
				n,
					err := l.WriteBatch(
					[]rawio.Packet{{Vec: [][]byte{linktest.Pattern(40)}, Remote: addrPortOf(v6, l), Fragment: 1280}})
				check.That(t, n == 0 && err != nil && l.Stats().TxErrors == 1, "%d packets to IPv6, %v, %+v", n, err,
					l.Stats())
			}
			return l, err
		}
	}
	testns.Refusals(t, opens(udp.Config{Shards: 2}),
		testns.DoesWithout("no IPv6", unix.EAFNOSUPPORT, unix.SYS_SOCKET, unix.AF_INET6),
		testns.DoesWithout("no address of IPv6", unix.EADDRNOTAVAIL, unix.SYS_BIND, -1, -1, unix.SizeofSockaddrInet6),
		testns.Fails("no port that is free in both families", unix.EADDRINUSE, unix.SYS_BIND, -1, -1,
			unix.SizeofSockaddrInet6),
		testns.Fails("no socket", unix.EMFILE, unix.SYS_SOCKET, unix.AF_INET),
		testns.Fails("no socket of IPv6", unix.EMFILE, unix.SYS_SOCKET, unix.AF_INET6),
		testns.Fails("no option", unix.ENOPROTOOPT, unix.SYS_SETSOCKOPT, -1, unix.IPPROTO_IPV6, unix.IPV6_RECVERR),
		testns.Fails("no name", unix.ENOBUFS, unix.SYS_GETSOCKNAME),
		testns.Fails("no port to share", unix.ENOPROTOOPT, unix.SYS_SETSOCKOPT, -1, unix.SOL_SOCKET, unix.SO_REUSEPORT),
	)
	testns.Refusals(t, opens(udp.Config{Local: v6}), testns.Fails("IPv6 alone, which is not there", unix.EAFNOSUPPORT,
		unix.SYS_SOCKET, unix.AF_INET6))
	testns.Refusals(t, opens(udp.Config{NoOffload: true, Local: v4}), // an option that is not needed is not asked for
		testns.DoesWithout("no coalescing", unix.EINVAL, unix.SYS_SETSOCKOPT, -1, unix.SOL_UDP, unix.UDP_GRO))
}
