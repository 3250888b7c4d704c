package raw_test

import (
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/testns"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/linktest"
	"github.com/rddp-go/rddp/rawio/raw"
	"github.com/vishvananda/netlink"
)

func checkReport(t *testing.T, p rawio.Packet, kind rawio.Kind, mtu int, sent []byte, from, dst netip.Addr) {
	t.Helper()
	check.That(t, p.Kind == kind && p.MTU == mtu && p.Local == addrPortOf(from) && p.Remote == addrPortOf(dst),
		"kind %v MTU %d local %v remote %v, want %v %d %v %v", p.Kind, p.MTU, p.Local, p.Remote, kind, mtu, from, dst)
	check.That(t, len(p.Data) >= 8 && len(p.Data) <= len(sent) && string(p.Data) == string(sent[:len(p.Data)]),
		"the quote is not the beginning of our packet: % x", p.Data)
}

func TestICMPReports(t *testing.T) {
	for _, test := range []struct {
		name  string
		v6    bool
		bound bool // to the address, so that one socket is waited on
	}{
		{"IPv4, bound to its address", false, true},
		{"IPv4, unbound", false, false},
		{"IPv6, bound to its address", true, true},
		{"IPv6, unbound", true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := testns.NewPath(t, test.v6)
			cfg := raw.Config{Ports: []uint16{20001}}
			if test.bound {
				cfg.Local = path.From
			}
			l := openLink(t, path.Client, cfg)
			ip := 20
			if test.v6 {
				ip = 40
			}
			check.Equal(t, "MTU, the interface's less the header", l.MTU(path.From, path.To), 1500-ip)

			// req 9260-10-8: packet too big, from a router on the way.
			big := fakePacket(20001, 20002, 1500-ip)
			linktest.WriteAll(t, l, rawio.Packet{Vec: [][]byte{big}, Remote: addrPortOf(path.To)})
			p := linktest.ReadPackets(t, l, 1)[0]
			checkReport(t, p, rawio.KindPacketTooBig, path.MTU, big, path.From, path.To)
			p.Release()

			// A host without SCTP says so.
			small := fakePacket(20001, 20003, path.MTU-ip)
			linktest.WriteAll(t, l, rawio.Packet{Vec: [][]byte{small}, Remote: addrPortOf(path.To)})
			p = linktest.ReadPackets(t, l, 1)[0]
			checkReport(t, p, rawio.KindProtoUnreachable, 0, small, path.From, path.To)
			p.Release()

			// The pending error that goes along with a report fails no write and no read.
			for range 4 {
				linktest.WriteAll(t, l, rawio.Packet{Vec: [][]byte{small}, Remote: addrPortOf(path.To)})
			}
			s := l.Stats()
			check.That(t, s.TxErrors+s.TxTooLong+s.TxFull == 0 && s.TxPackets == 6, "stats %+v", s)
			server := openLink(t, path.Server, raw.Config{Ports: []uint16{20003}})
			linktest.WriteAll(t, l, rawio.Packet{Vec: [][]byte{small}, Remote: addrPortOf(path.To)})
			p = linktest.ReadPackets(t, server, 1)[0]
			linktest.WriteAll(t, server, rawio.Packet{Vec: [][]byte{fakePacket(20003, 20001, 50)}, Remote: p.Remote,
				Local: p.Local})
			p.Release()
			for p.Kind = rawio.KindProtoUnreachable; p.Kind != rawio.KindSCTP; { // behind reports of the four
				p = linktest.ReadPackets(t, l, 1)[0]
				p.Release()
			}
		})
	}
}

// The kernel believes a report from whoever knows the addresses, and remembers it for minutes. What
// it makes of it must not become the most that a new association's search tries.
func TestMTUIsNotWhatAReportSays(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		path, ip := testns.NewPath(t, v6), 20
		if v6 {
			ip = 40
		}
		l := openLink(t, path.Client, raw.Config{Local: path.From, Ports: []uint16{20001}})
		big := fakePacket(20001, 20002, 1500-ip)
		linktest.WriteAll(t, l, rawio.Packet{Vec: [][]byte{big}, Remote: addrPortOf(path.To)})
		p := linktest.ReadPackets(t, l, 1)[0]
		checkReport(t, p, rawio.KindPacketTooBig, path.MTU, big, path.From, path.To)
		p.Release()
		fresh := openLink(t, path.Client, raw.Config{Local: path.From})
		check.Equal(t, "MTU after a report, the interface's less the header", fresh.MTU(path.From, path.To), 1500-ip)
	}
}

// A report about a packet of another program, which uses the same address, is not ours.
func TestICMPForAnotherPortIsIgnored(t *testing.T) {
	path := testns.NewPath(t, false)
	l := openLink(t, path.Client, raw.Config{Local: path.From, Ports: []uint16{20001}})
	other := fakePacket(20002, 1, 40)
	mine := fakePacket(20001, 1, 40)
	linktest.WriteAll(t, l, rawio.Packet{Vec: [][]byte{other}, Remote: addrPortOf(path.To)},
		rawio.Packet{Vec: [][]byte{mine}, Remote: addrPortOf(path.To)})
	p := linktest.ReadPackets(t, l, 1)[0]
	checkReport(t, p, rawio.KindProtoUnreachable, 0, mine, path.From, path.To)
	p.Release()
	check.That(t, l.Stats().RxICMP == 1 && l.Stats().RxIgnored == 1, "stats %+v, want one report and one ignored",
		l.Stats())
}

func TestICMPPortUnreachableIsIgnored(t *testing.T) {
	// req 9260-10-3: port unreachable means nothing to native SCTP.
	path := testns.NewPath(t, false)
	l := openLink(t, path.Client, raw.Config{Local: path.From, Ports: []uint16{20001}})
	mine := fakePacket(20001, 1, 40)
	send := func(code uint8, sctp []byte) {
		linktest.SendUnreachable(t, path.Server.Do, code, 132, path.From, path.To, sctp)
	}
	send(3, mine)     // port unreachable
	send(2, mine[:7]) // without all of the verification tag
	send(2, mine)     // protocol unreachable
	p := linktest.ReadPackets(t, l, 1)[0]
	checkReport(t, p, rawio.KindProtoUnreachable, 0, mine, path.From, path.To)
	p.Release()
	check.That(t, l.Stats().RxICMP == 1 && l.Stats().RxIgnored == 2, "stats %+v, want one report and two ignored",
		l.Stats())
}

// A transmit queue that is full loses the packet, and says so.
func TestFullTransmitQueueLosesThePacketAndSaysSo(t *testing.T) {
	ns := testns.New(t)
	testns.Veth(ns, testns.New(t), "eth", 1500, netip.MustParsePrefix("10.1.0.1/24"),
		netip.MustParsePrefix("10.1.0.2/24"))
	l := openLink(t, ns, raw.Config{Ports: []uint16{20001}})
	p := rawio.Packet{Vec: [][]byte{fakePacket(20001, 1, 1400)}, Remote: addrPortOf(netip.MustParseAddr("10.1.0.2"))}
	linktest.WriteAll(t, l, p)
	r := linktest.ReadPackets(t, l, 1)[0] // an answer: the neighbor is known, and the queue empty
	r.Release()
	ns.Do(func() error {
		dev, err := netlink.LinkByName("eth")
		if err != nil {
			return err
		}
		return netlink.QdiscAdd(&netlink.Tbf{ // 1000 octets a second, and a queue of two packets; a tick is 64 ns
			QdiscAttrs: netlink.QdiscAttrs{LinkIndex: dev.Attrs().Index, Parent: netlink.HANDLE_ROOT,
				Handle: netlink.MakeHandle(1, 0)},
			Rate: 1000, Limit: 3000, Buffer: 3 * 1e9 / 64,
		})
	})
	n, err := l.WriteBatch([]rawio.Packet{p, p, p, p, p, p, p, p, p, p, p, p})
	check.That(t, n != 12 && err == rawio.ErrFull, "WriteBatch = %d, %v, want rawio.ErrFull", n, err)
	p.Fragment = 1000
	_, err = l.WriteBatch([]rawio.Packet{p})
	check.Equal(t, "in fragments", err, rawio.ErrFull)
	check.That(t, l.Stats().TxFull == 2 && l.Stats().TxPackets == uint64(n+1), "stats %+v", l.Stats())
}
