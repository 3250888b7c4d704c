package raw_test

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/testns"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/linktest"
	"github.com/rddp-go/rddp/rawio/internal/mmsg"
	"github.com/rddp-go/rddp/rawio/raw"
)

// Packets for a port that was given up do not come in any more, and those for the others still do.
func TestUnboundPortIsClosed(t *testing.T) {
	ns := testns.New(t)
	for _, addr := range []netip.Addr{v4, v6} {
		l := openLink(t, ns, raw.Config{Local: addr, Ports: []uint16{20001, 20002}})
		send := func(port uint16) {
			t.Helper()
			linktest.WriteAll(t, l, rawio.Packet{Vec: [][]byte{fakePacket(1, port, 40)}, Remote: addrPortOf(addr)})
		}
		send(20001)
		p := linktest.ReadPackets(t, l, 1)[0]
		p.Release()
		l.UnbindPort(20001)
		send(20001)
		send(20002)
		p = linktest.ReadPackets(t, l, 1)[0]
		got := uint16(p.Data[2])<<8 | uint16(p.Data[3])
		check.That(t, got == 20002, "%v: a packet for port %d", addr, got)
		p.Release()
		l.UnbindPort(20002)
	}
}

// A port that is bound at some addresses is heard at these alone.
func TestPortIsHeardWhereItIsBound(t *testing.T) {
	ns, other, prefix := testns.New(t), testns.New(t), netip.MustParsePrefix
	testns.Veth(ns, other, "one", 1500, prefix("fd01::1/64"), prefix("fd01::2/64"))
	testns.Veth(ns, other, "two", 1500, prefix("fd02::1/64"), prefix("fd02::2/64"))
	var all []netip.Addr
	for _, s := range []string{"127.0.0.2", "fd02::1", "127.0.0.1", "127.0.0.3", "::1", "fd01::1"} {
		all = append(all, netip.MustParseAddr(s))
	}
	l, bound := openLink(t, ns, raw.Config{}), all[2:]
	ns.Do(func() error { return l.BindPort(20001, bound...) })
	for _, a := range all {
		linktest.WriteAll(t, l, rawio.Packet{Vec: [][]byte{fakePacket(1, 20001, 40)}, Remote: addrPortOf(a)})
	}
	heard := make(map[netip.Addr]int)
	for _, p := range linktest.ReadPackets(t, l, len(bound)) {
		heard[p.Local.Addr()]++
		p.Release()
	}
	for _, a := range bound {
		check.Equal(t, "packets to "+a.String(), heard[a], 1)
	}
	c := openLink(t, ns, raw.Config{Local: all[1]})
	for _, local := range []netip.AddrPort{{}, addrPortOf(netip.IPv6Unspecified())} {
		linktest.WriteAll(t, c, rawio.Packet{Vec: [][]byte{fakePacket(1, 20001, 40)}, Local: local,
			Remote: addrPortOf(all[5])})
		p := linktest.ReadPackets(t, l, 1)[0]
		check.Equal(t, "where a packet of a link with one address comes from", p.Remote, addrPortOf(all[1]))
		p.Release()
	}
}

// A packet cannot leave from an address of one family to one of the other.
func TestSourceOfTheOtherFamilyIsRefused(t *testing.T) {
	ns := testns.New(t)
	l := openLink(t, ns, raw.Config{})
	for _, p := range []rawio.Packet{{Local: addrPortOf(v4), Remote: addrPortOf(v6)},
		{Local: addrPortOf(v6), Remote: addrPortOf(v4)}} {
		p.Vec = [][]byte{fakePacket(1, 20001, 40)}
		var family *mmsg.FamilyError
		n, err := l.WriteBatch([]rawio.Packet{p})
		check.That(t, n == 0 && errors.As(err, &family), "from %v to %v: %d sent, %v", p.Local, p.Remote, n, err)
	}
}
