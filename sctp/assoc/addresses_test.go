package assoc_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// parseAddrs parses addresses that are separated by spaces.
func parseAddrs(list string) (out []netip.Addr) {
	for _, s := range strings.Fields(list) {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

// listedAddrs returns the addresses in an INIT or INIT ACK, as they are on the wire.
func listedAddrs(t *testing.T, pkt wire.Packet, c wire.ChunkType) (out []netip.Addr) {
	t.Helper()
	init := must.Get(wire.AsInit(sctptest.ChunkOf(pkt, c)))(t)
	ps := init.Params()
	for p, ok := ps.Next(); ok; p, ok = ps.Next() {
		switch p.Type() {
		case wire.ParamIPv4, wire.ParamIPv6:
			a, _ := netip.AddrFromSlice(p.Value())
			out = append(out, a)
		}
	}
	return out
}

func TestAnnouncedAddresses(t *testing.T) {
	for _, row := range []struct {
		name, own, peer string
		want            string // listed in INIT and INIT ACK
		from            string // source of the INIT
	}{
		// req 9260-3.3.2.1-4, 5043-7.2-2
		{"one address: none is listed, it is the packet's source", "10.0.0.1", "10.0.0.9", "", "10.0.0.1"},
		{"two: both are", "10.0.0.1 10.1.0.1", "10.0.0.9", "10.0.0.1 10.1.0.1", "10.0.0.1"},
		// req 9260-3.3.2.1-2
		{"both families", "10.0.0.1 2001:db8::1", "10.0.0.9", "10.0.0.1 2001:db8::1", "10.0.0.1"},
		// req 9260-3.3.2.1.2-1, 9260-3.3.2.1.2-2
		{"IPv4-mapped: as IPv4", "::ffff:10.0.0.1 ::ffff:10.1.0.1", "10.0.0.9", "10.0.0.1 10.1.0.1", "10.0.0.1"},
		{"loopback is nobody else's business", "127.0.0.1 10.0.0.1 10.1.0.1", "10.0.0.9", "10.0.0.1 10.1.0.1", "10.0.0.1"},
		{"nor where it is all there is of its family", "127.0.0.1 2001:db8::1 2001:db8:1::1", "2001:db8::9", "2001:db8::1 2001:db8:1::1", "2001:db8::1"},
		{"loopback is, on this host", "127.0.0.1 10.0.0.1", "127.0.0.9", "127.0.0.1 10.0.0.1", "127.0.0.1"},
		{"private ones mean nothing to a public peer", "10.0.0.1 198.51.100.1 203.0.113.1", "192.0.2.9", "198.51.100.1 203.0.113.1", "198.51.100.1"},
		{"nor do those of carriers", "100.64.0.1 198.51.100.1 203.0.113.1", "192.0.2.9", "198.51.100.1 203.0.113.1", "198.51.100.1"},
		{"nor unique local ones", "fd00::1 2001:db8::1 2001:db8:1::1", "2001:db8:2::9", "2001:db8::1 2001:db8:1::1", "2001:db8::1"},
		{"public ones do to a private peer", "10.0.0.1 198.51.100.1", "10.0.0.9", "10.0.0.1 198.51.100.1", "10.0.0.1"},
		{"behind a NAT there is nothing to tell", "10.0.0.1 10.1.0.1", "192.0.2.9", "", "10.0.0.1"},
		{"link-local ones are for their own link", "fe80::1%eth0 fe80::2%eth1 2001:db8::1", "fe80::9%eth0", "fe80::1 2001:db8::1", "fe80::1%eth0"},
		{"and for no other peer", "fe80::1%eth0 2001:db8::1 2001:db8:1::1", "2001:db8::9", "2001:db8::1 2001:db8:1::1", "2001:db8::1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			cfg := &assoc.Config{LocalAddrs: parseAddrs(row.own)}
			peer := netip.AddrPortFrom(netip.MustParseAddr(row.peer), 0)
			l := sctptest.NewLab(t)
			a := l.Dial(cfg, netip.AddrPort{}, peer)
			check.Equal(t, "where the INIT leaves from", a.LocalAddr().Addr(), netip.MustParseAddr(row.from))
			check.Slice(t, "INIT lists", listedAddrs(t, l.Flush()[0], wire.ChunkInit), parseAddrs(row.want))
			l = sctptest.NewLab(t)
			l.Listen(cfg)
			l.Host.Addr = netip.AddrPortFrom(netip.MustParseAddr(row.from), 0)
			check.Slice(t, "INIT ACK lists", listedAddrs(t, l.SendFrom(peer, 0, sctptest.InitChunk(1, 1))[0],
				wire.ChunkInitAck), parseAddrs(row.want))
		})
	}
}

func TestAddressesThatArePassedOver(t *testing.T) {
	for _, row := range []struct {
		name, own, source, listed string
		want                      string // destinations of the association
	}{
		// req 9260-5.1.2-1
		{"none listed: the source", "", "10.0.0.9", "", "10.0.0.9"},
		// req 9260-5.1.2-3
		{"the source counts too", "", "10.0.0.9", "10.0.0.10 10.0.0.11", "10.0.0.9 10.0.0.10 10.0.0.11"},
		{"each once", "", "10.0.0.9", "10.0.0.10 10.0.0.9 10.0.0.10", "10.0.0.9 10.0.0.10"},
		{"no host has these", "", "10.0.0.9", "0.0.0.0 255.255.255.255 239.0.0.1 :: ff02::1", "10.0.0.9"},
		{"loopback from elsewhere", "", "10.0.0.9", "127.0.0.1 ::1", "10.0.0.9"},
		{"loopback from here", "", "127.0.0.9", "127.0.0.1 10.0.0.1", "127.0.0.9 127.0.0.1 10.0.0.1"},
		{"loopback from next door", "", "169.254.1.9", "127.0.0.1 169.254.1.1 10.0.0.1", "169.254.1.9 169.254.1.1 10.0.0.1"},
		{"private ones of a public peer", "", "192.0.2.9", "10.0.0.1 192.168.0.1 fd00::1 100.64.0.9 198.51.100.9", "192.0.2.9 198.51.100.9"},
		{"public ones of a private peer", "", "10.0.0.9", "198.51.100.9", "10.0.0.9 198.51.100.9"},
		{"link-local ones from elsewhere", "", "2001:db8::9", "fe80::9 169.254.1.1", "2001:db8::9"},
		{"link-local ones of this link", "", "fe80::9%eth0", "fe80::10 2001:db8::9", "fe80::9%eth0 fe80::10%eth0 2001:db8::9"},
		// req 9260-5.1.2-8, 9260-5.1.2-9
		{"those of the other family, with one own address", "", "10.0.0.9", "2001:db8::9 10.0.0.10 2001:db8::10",
			"10.0.0.9 10.0.0.10"},
		{"and over IPv6", "", "2001:db8::9", "10.0.0.9 2001:db8::10 198.51.100.9", "2001:db8::9 2001:db8::10"},
		{"and over a link", "", "fe80::9%eth0", "10.0.0.9 2001:db8::9 198.51.100.9", "fe80::9%eth0 2001:db8::9"},
		{"those of a family of which the peer is told no own address", "198.51.100.1 fd00::1", "192.0.2.9", "2001:db8::9 198.51.100.9", "192.0.2.9 198.51.100.9"},
		{"nor where it reaches no farther than its link", "10.0.0.1 fe80::1%eth0", "10.0.0.9", "fd00::9 10.0.0.10", "10.0.0.9 10.0.0.10"},
		{"a family of eight does not keep out the other", "", "2001:db8::1", "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.6 10.0.0.7 10.0.0.8 10.0.0.9 2001:db8::2", "2001:db8::1 2001:db8::2"},
		// req 9260-5.1.2-8, 9260-5.1.2-9, 9260-5.1.2-10
		{"those of a family that no own address has", "10.0.0.1 10.1.0.1", "10.0.0.9",
			"2001:db8::9 10.0.0.10 10.0.0.11", "10.0.0.9 10.0.0.10 10.0.0.11"},
		{"beyond the eighth", "", "10.0.0.1",
			"10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.6 10.0.0.7 10.0.0.8 10.0.0.9 10.0.0.10",
			"10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.6 10.0.0.7 10.0.0.8"},
	} {
		t.Run(row.name, func(t *testing.T) {
			cfg := &assoc.Config{LocalAddrs: parseAddrs(row.own)}
			peer := netip.AddrPortFrom(netip.MustParseAddr(row.source), 0)
			var params [][]byte
			for _, a := range parseAddrs(row.listed) {
				params = append(params, wire.AppendAddressParam(nil, a))
			}
			check := func(side string, a *assoc.Assoc) {
				t.Helper()
				var got []netip.Addr
				for _, p := range sctptest.Paths(a) {
					got = append(got, p.Remote.Addr())
				}
				check.Slice(t, side+": destinations", got, parseAddrs(row.want))
			}
			own := sctptest.IPv4[0]
			if row.own != "" {
				own = netip.AddrPortFrom(parseAddrs(row.own)[0], 0)
			}
			l := sctptest.NewLab(t)
			l.Peer, l.Host.Addr = peer, own
			a := l.Dial(cfg, netip.AddrPort{}, peer)
			init, _ := wire.AsInit(sctptest.ChunkOf(l.Flush()[0], wire.ChunkInit))
			l.Send(init.Tag(), sctptest.InitAckChunk(l.PeerTag, l.TSN, []byte("cookie!!"), params...))
			check("initiator", a)

			l = sctptest.NewLab(t)
			l.Peer, l.Host.Addr = peer, own
			l.Listen(cfg)
			l.Initiate(params...)
			l.Send(l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
			check("responder", l.A)
		})
	}
}

func TestSupportedAddressTypes(t *testing.T) {
	types := func(pkt wire.Packet) string {
		init, _ := wire.AsInit(sctptest.ChunkOf(pkt, wire.ChunkInit))
		return fmt.Sprintf("%x", []byte(sctptest.ParamOf(init, wire.ParamSupportedAddrTypes)))
	}
	for _, row := range []struct{ name, own, peer, want string }{
		// req 9260-5.1.2-7
		{"one own address, which the link chooses: that of the peer", "", "10.0.0.9", "000c00060005"},
		{"and over IPv6", "", "2001:db8::9", "000c00060006"},
		{"both, of which the peer is told one", "10.0.0.1 fd00::1", "192.0.2.9", "000c00060005"},
		// req 9260-5.1.2-7, 9260-3.3.2.1.5-1, 9260-3.3.2.1.5-2
		{"IPv4 only", "10.0.0.1 10.1.0.1", "10.0.0.9", "000c00060005"},
		{"IPv6 only", "2001:db8::1", "2001:db8::9", "000c00060006"},
		{"both: nothing is said", "10.0.0.1 2001:db8::1", "10.0.0.9", ""},
	} {
		l := sctptest.NewLab(t)
		l.Dial(&assoc.Config{LocalAddrs: parseAddrs(row.own)}, netip.AddrPort{},
			netip.AddrPortFrom(netip.MustParseAddr(row.peer), 0))
		check.Equal(t, row.name, types(l.Flush()[0]), row.want)
	}
	v4, v6 := wire.AppendSupportedAddrTypes(nil, wire.ParamIPv4), wire.AppendSupportedAddrTypes(nil, wire.ParamIPv6)
	odd := wire.AppendParam(nil, wire.ParamSupportedAddrTypes, []byte{0, 11})
	for _, row := range []struct {
		name   string
		params []byte
		want   string
	}{
		{"all", nil, "10.0.0.1 10.1.0.1 2001:db8::1"},
		{"IPv4 only", v4, "10.0.0.1 10.1.0.1"},
		{"IPv6, asked for over IPv4: both", v6, "10.0.0.1 10.1.0.1 2001:db8::1"}, // req 9260-5.1.2-11
		// req 9260-5.1.2-11
		{"IPv4, with an IPv6 address: both", wire.AppendAddressParam(v4, netip.MustParseAddr("2001:db8::9")),
			"10.0.0.1 10.1.0.1 2001:db8::1"},
		// req 9260-3.3.2.1.5-3
		{"host names only: ignored", odd, "10.0.0.1 10.1.0.1 2001:db8::1"},
	} {
		l := sctptest.NewLab(t)
		l.Listen(&assoc.Config{LocalAddrs: parseAddrs("10.0.0.1 10.1.0.1 2001:db8::1")})
		check.Slice(t, row.name+": INIT ACK lists", listedAddrs(t, l.Send(0, sctptest.InitChunk(1, 1, row.params))[0],
			wire.ChunkInitAck), parseAddrs(row.want))
	}
	l := sctptest.NewLab(t)
	l.Listen(&assoc.Config{LocalAddrs: parseAddrs("10.0.0.1 10.1.0.1 2001:db8::1 2001:db8:1::1")})
	ack := l.Post(netip.MustParseAddrPort("[2001:db8::9]:0"), 0, sctptest.InitChunk(1, 1, v6))[0].Pkt
	check.Slice(t, "IPv6, asked for over IPv6", listedAddrs(t, ack, wire.ChunkInitAck),
		parseAddrs("2001:db8::1 2001:db8:1::1"))
}

func TestSourceOfEachPath(t *testing.T) {
	for _, row := range []struct{ name, own, peers, want string }{
		{"of the same network", "10.1.0.1 10.2.0.1", "10.2.0.9 10.1.0.9", "10.2.0.1 10.1.0.1"},
		{"the longer prefix", "192.168.2.1 192.168.1.1", "192.168.2.9 192.168.2.10", "192.168.2.1 192.168.2.1"},
		{"sixteen bits in common", "10.2.0.1 10.1.128.1", "10.1.0.9", "10.1.128.1"},
		{"fifteen say nothing", "10.9.0.1 10.3.0.1", "10.2.0.9", "10.9.0.1"},
		{"48 bits of IPv6", "2001:db8:2::1 2001:db8:1:8000::1", "2001:db8:1::9", "2001:db8:1:8000::1"},
		{"47 say nothing", "2001:db9::1 2001:db8::1", "2001:db8:1::9", "2001:db9::1"},
		// req 9260-6.4.1-2
		{"with nothing in common: one each", "198.51.100.1 203.0.113.1", "192.0.2.8 192.0.2.9",
			"198.51.100.1 203.0.113.1"},
		{"of the same family", "10.1.0.1 2001:db8::1", "2001:db8:1::9 10.2.0.9", "2001:db8::1 10.1.0.1"},
		{"peers of a family that there is not are left out", "10.1.0.1 10.2.0.1", "2001:db8::9 10.1.0.9", "10.1.0.1"},
	} {
		l := sctptest.NewLab(t)
		var to []netip.AddrPort
		for _, p := range parseAddrs(row.peers) {
			to = append(to, netip.AddrPortFrom(p, 0))
		}
		a := must.Get(l.Host.Endpoint.Join(l.Now, &assoc.Config{LocalAddrs: parseAddrs(row.own)}, sctptest.PortB,
			netip.AddrPort{}, to, sctptest.PortA, nil))(t)
		var got []netip.Addr
		for _, p := range sctptest.Paths(a) {
			got = append(got, p.Local.Addr())
			check.That(t, p.State == assoc.PathActive, "%s: %v is %v", row.name, p.Remote, p.State) // req 9260-5.4-1
		}
		check.Slice(t, row.name, got, parseAddrs(row.want))
	}
	l := sctptest.NewLab(t)
	_, err := l.Host.Endpoint.Connect(l.Now, &assoc.Config{LocalAddrs: parseAddrs("10.1.0.1 ::1")}, sctptest.PortB,
		netip.AddrPort{},
		[]netip.AddrPort{netip.MustParseAddrPort("[2001:db8::9]:0")}, sctptest.PortA)
	check.That(t, errors.Is(err, assoc.ErrNoSource) && errors.Is(err, syscall.EADDRNOTAVAIL),
		"no own address of the family: %v", err)
}

// A peer that does not answer is tried from each own address that may reach it and is as near as
// the first, in turn.
func TestSourcesTakeTurns(t *testing.T) {
	l := sctptest.NewLab(t)
	a := l.Dial(&assoc.Config{LocalAddrs: parseAddrs("10.1.0.1 198.51.100.1 203.0.113.1 2001:db8::1 198.18.0.1")},
		netip.AddrPort{}, netip.MustParseAddrPort("192.0.2.9:0"))
	var got []netip.Addr
	for range 7 {
		l.Host.Poll(l.Now, func(_ *assoc.Assoc, p *rawio.Packet) { got = append(got, p.Local.Addr()) })
		l.Now = a.NextTimeout()
		a.HandleTimeout(l.Now)
	}
	check.Slice(t, "INITs from", got,
		parseAddrs("198.51.100.1 198.51.100.1 203.0.113.1 198.18.0.1 198.51.100.1 203.0.113.1 198.18.0.1"))
}

// Where the peer sends to another own address than it is sent from, that one is the next to be
// tried.
func TestSourceThatThePeerKnowsIsNext(t *testing.T) {
	l := sctptest.Passive(t, &assoc.Config{LocalAddrs: parseAddrs("10.0.0.1 10.0.0.2 10.0.0.3")})
	l.Host.Addr = netip.MustParseAddrPort("10.0.0.3:0")
	l.Send(l.Tag, l.Data("x"))
	must.OK(t, l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{{1}}}))
	was := l.A.PathStats(0).Local
	for n := 0; l.A.PathStats(0).Local == was && n < 20; n++ {
		l.Flush()
		l.Now = l.A.NextTimeout()
		l.A.HandleTimeout(l.Now)
	}
	check.Equal(t, "source", l.A.PathStats(0).Local, l.Host.Addr)
}

func TestLocalAddrsAreJudged(t *testing.T) {
	for _, row := range []struct {
		name, list string
		ok         bool
	}{
		{"two", "10.0.0.1 10.0.0.2", true},
		{"the same twice, once mapped", "10.0.0.1 ::ffff:10.0.0.1", false},
		{"unspecified", "0.0.0.0", false},
		{"multicast", "239.0.0.1", false},
		{"nine", "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.6 10.0.0.7 10.0.0.8 10.0.0.9", false},
	} {
		_, err := (&assoc.Config{LocalAddrs: parseAddrs(row.list)}).Complete()
		var ce *assoc.ConfigError
		check.That(t, errors.As(err, &ce) != row.ok && (ce == nil || ce.Field == "LocalAddrs"), "%s: %v", row.name, err)
	}
}

// A host with two networks talks with a peer that has one address, in either of them.
func TestPathGetsAnotherSourceWhenItsOwnFails(t *testing.T) {
	setup := func(t *testing.T) *sctptest.Multi {
		w := sctptest.NewMulti(t, 2)
		w.Move(1, parseAddrs("10.9.0.2")...)
		for _, l := range w.Addrs[0] {
			w.Net.Connect(l, w.Addrs[1][0], simnet.Params{Delay: sctptest.Latency})
		}
		w.Listen(&steady)
		return w
	}
	config := func(w *sctptest.Multi) *assoc.Config {
		cfg := steady
		cfg.LocalAddrs = w.Addrs[0]
		return &cfg
	}
	t.Run("in the middle of a transfer", func(t *testing.T) {
		w := setup(t)
		a := w.Connect(config(w), w.Addrs[1][0])
		w.Run(3 * time.Second)
		b := w.Hosts[1].Assocs[0]
		s := w.StartStream(a, b, 4000)
		w.RunUntil(w.Now.Add(300*time.Millisecond), s.Done)
		must.Equal(t, "the address at first", a.LocalAddr().Addr(), w.Addrs[0][0])
		w.Net.Partition(w.Addrs[0][0], w.Addrs[1][0])
		cut := w.Now
		rto := a.PathStats(0).RTO
		w.RunUntil(w.Now.Add(time.Minute), func() bool { return a.LocalAddr().Addr() != w.Addrs[0][0] })
		if p := a.PathStats(0); p.Cwnd != 14400 || p.Ssthresh < 1<<30 { // req 9260-7.2.5-1
			t.Errorf("from another source, cwnd %d ssthresh %d", p.Cwnd, p.Ssthresh)
		}
		must.That(t, w.RunUntil(w.Now.Add(time.Hour), s.Done), "%d messages sent, %d arrived", s.Sent, s.Want)
		check.Equal(t, "the address now", a.LocalAddr().Addr(), w.Addrs[0][1])
		// The second error in a row makes the change, after RTO and 2 RTO.
		p := s.Pause(cut)
		check.That(t, p <= 3*rto+4*sctptest.RoundTrip, "nothing arrived for %v", p)
	})
	t.Run("at the setup", func(t *testing.T) {
		w := setup(t)
		w.Net.Partition(w.Addrs[0][0], w.Addrs[1][0])
		a := w.Connect(config(w), w.Addrs[1][0])
		must.That(t, w.RunUntil(w.Now.Add(time.Minute), func() bool { return a.State() == assoc.Established }),
			"state %v", a.State())
	})
}

// Two endpoints with several addresses that set up an association with each other at the same time,
// by different addresses, end up with one.
func TestCollisionByDifferentAddresses(t *testing.T) {
	w := sctptest.NewMulti(t, 2)
	ca, cb := steady, steady
	ca.LocalAddrs, cb.LocalAddrs = w.Addrs[0], w.Addrs[1]
	a := w.Connect(&ca, w.Addrs[1][0], w.Addrs[1][1])
	b := must.Get(w.Hosts[1].Endpoint.Connect(w.Now, &cb, sctptest.PortB, netip.AddrPort{},
		[]netip.AddrPort{netip.AddrPortFrom(w.Addrs[0][1], 0)}, sctptest.PortA))(t)
	w.Hosts[1].Adopt(b)
	w.Run(5 * time.Second)
	for i, x := range []*assoc.Assoc{a, b} { // req 9260-5.1.2-5
		check.That(t, x.State() == assoc.Established && len(w.Hosts[i].Assocs) == 1 && x.NumPaths() == 2,
			"host %d: %v, %d associations, paths %+v", i, x.State(), len(w.Hosts[i].Assocs), sctptest.Paths(x))
	}
	check.That(t, a.LocalTag() == b.PeerTag() && b.LocalTag() == a.PeerTag(), "the tags do not match")
}

func TestInitToAnAddressOfAnotherEndpoint(t *testing.T) {
	// req 9260-8.4-4: nobody listens there, though on this port.
	l := sctptest.NewLab(t)
	l.Listen(&assoc.Config{LocalAddrs: parseAddrs("10.0.0.1 10.1.0.1")})
	l.Host.Addr = netip.MustParseAddrPort("10.2.0.1:0")
	l.Expect(l.Send(0, sctptest.InitChunk(1, 1)), "ABORT")
	l.Host.Addr = netip.MustParseAddrPort("10.1.0.1:0")
	l.Expect(l.Send(0, sctptest.InitChunk(1, 1)), "INIT ACK")
}

func TestFirstPrimaryPath(t *testing.T) {
	// req 9260-5.1.2-6
	first := netip.MustParseAddrPort("10.0.0.9:0")
	for _, row := range []struct {
		name  string
		lost  int // INITs before the one that is answered
		from  netip.AddrPort
		first netip.AddrPort
	}{
		{"the INIT is answered from where it went", 0, first, first},
		{"it is answered by another way", 0, second, first},
		{"it is answered from an address that nobody gave", 0, third, first},
		{"the second one is answered, which took the second address", 1, second, second},
		{"the answer to the first is late", 1, first, first},
		{"the second is answered from an address that nobody gave", 1, third, second},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := sctptest.NewLab(t)
			a := l.Dial(nil, l.Host.Addr, first, second)
			l.Flush()
			for range row.lost {
				l.Wait(time.Second)
			}
			l.Now = l.Now.Add(30 * time.Millisecond)
			out := l.Post(row.from, l.Tag, sctptest.InitAckChunk(l.PeerTag, l.TSN, []byte("cookie!!")))
			check.That(t, sctptest.Text(out) == row.first.Addr().String()+": COOKIE ECHO" && a.PeerAddr() == row.first,
				"%s, primary path to %v", sctptest.Text(out), a.PeerAddr())
			p := sctptest.PathTo(t, a, row.first.Addr())
			check.That(t, p.SRTT == 30*time.Millisecond || row.lost != 0, "%+v", p)
		})
	}
}

func TestPeerWithoutAddressParametersHasOneAddress(t *testing.T) {
	// req 9260-5.1.2-1
	for _, l := range []*sctptest.Lab{sctptest.Passive(t, nil), sctptest.Established(t, nil)} {
		p := l.A.PathStats(0)
		check.That(t, l.A.NumPaths() == 1 && p.Remote == l.Peer && p.Local == l.Host.Addr,
			"%d paths, the first from %v to %v", l.A.NumPaths(), p.Local, p.Remote)
	}
	// The source of an INIT ACK is an address of the peer, whoever was sent the INIT.
	l, second := sctptest.Active(t, nil), netip.MustParseAddrPort("10.0.0.10:0")
	l.SendFrom(second, l.Tag, sctptest.InitAckChunk(l.PeerTag, l.TSN, []byte("cookie")))
	check.That(t, l.A.NumPaths() == 2 && l.A.PathStats(1).Remote == second &&
		l.A.PathStats(1).State == assoc.PathUnconfirmed,
		"%d paths after an INIT ACK from a second address", l.A.NumPaths()) // req 9260-5.1.2-1
}

func TestListedAddressesShareThePort(t *testing.T) {
	// req 9260-3.3.2.1-3: those of the INIT, with the packet's source, which it does not list.
	second, third := netip.MustParseAddrPort("10.0.0.10:0"), netip.MustParseAddrPort("[2001:db8::3]:0")
	l := sctptest.NewLab(t)
	l.Listen(&assoc.Config{LocalAddrs: parseAddrs("10.0.0.1 2001:db8::1")})
	l.Initiate(wire.AppendAddressParam(nil, second.Addr()), wire.AppendAddressParam(nil, third.Addr()))
	l.Post(l.Peer, l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
	beat := wire.AppendHeartbeat(nil, []byte("x"))
	for _, from := range []netip.AddrPort{l.Peer, second, third} {
		out := l.Post(from, l.Tag, beat)
		n := 0
		for _, p := range out {
			if p.To == from && sctptest.Has(p.Pkt, wire.ChunkHeartbeatAck) { // req 9260-3.3.6-1
				n++
			}
			// req 9260-1.3-2: one port of each side, whatever the address.
			check.That(t, p.Pkt.DstPort() == sctptest.PortA && p.Pkt.SrcPort() == sctptest.PortB,
				"sent from port %d to %d", p.Pkt.SrcPort(), p.Pkt.DstPort())
		}
		check.That(t, n == 1, "from %v: %s", from, sctptest.Text(out))
		l.Deliver(from, sctptest.Packet(sctptest.PortA+1, sctptest.PortB, l.Tag, beat))
		if out := l.Collect(); len(out) != 1 || !sctptest.Has(out[0].Pkt, wire.ChunkAbort) {
			t.Errorf("from another port of %v: %s, want the answer to a stranger", from, sctptest.Text(out))
		}
	}
}

func TestAbortForAHostNameGoesToTheSource(t *testing.T) {
	host := wire.AppendParam(nil, wire.ParamHostName, []byte("h\x00"))
	l := sctptest.NewLab(t)
	l.Listen(nil)
	from := netip.MustParseAddrPort("10.0.0.44:0")
	out := l.Post(from, 0, sctptest.InitChunk(l.PeerTag, 1, host, wire.AppendAddressParam(nil, l.Peer.Addr())))
	must.That(t, sctptest.Text(out) == "10.0.0.44: ABORT", "%v", sctptest.Text(out)) // req 9260-5.1.2-2
	code, c := sctptest.CauseOf(out[0].Pkt)
	// req 9260-3.3.10.5-1
	check.That(t, code == wire.CauseUnresolvableAddress && bytes.Equal(c[4:], host[:6]),
		"cause %v with % x, want the whole parameter", code, []byte(c))
	l = sctptest.Active(t, nil)
	out = l.Post(from, l.Tag, sctptest.InitAckChunk(l.PeerTag, 1, []byte("c"), host))
	check.That(t, sctptest.Text(out) == "10.0.0.44: ABORT", "%v", sctptest.Text(out))
}
