package assoc_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// addrs parses addresses that are separated by spaces.
func addrs(list string) (out []netip.Addr) {
	for _, s := range strings.Fields(list) {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

// listed returns the addresses in an INIT or INIT ACK, as they are on the wire.
func listed(t *testing.T, pkt wire.Packet, c wire.ChunkType) (out []netip.Addr) {
	t.Helper()
	init, err := wire.AsInit(chunkOf(pkt, c))
	if err != nil {
		t.Fatal(err)
	}
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
		{"one address: none is listed, it is the packet's source", "10.0.0.1", "10.0.0.9", "", "10.0.0.1"}, // req 9260-3.3.2.1-4, 5043-7.2-2
		{"two: both are", "10.0.0.1 10.1.0.1", "10.0.0.9", "10.0.0.1 10.1.0.1", "10.0.0.1"},
		{"both families", "10.0.0.1 2001:db8::1", "10.0.0.9", "10.0.0.1 2001:db8::1", "10.0.0.1"},                // req 9260-3.3.2.1-2
		{"IPv4-mapped: as IPv4", "::ffff:10.0.0.1 ::ffff:10.1.0.1", "10.0.0.9", "10.0.0.1 10.1.0.1", "10.0.0.1"}, // req 9260-3.3.2.1.2-1, 9260-3.3.2.1.2-2
		{"loopback is nobody else's business", "127.0.0.1 10.0.0.1 10.1.0.1", "10.0.0.9", "10.0.0.1 10.1.0.1", "10.0.0.1"},
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
			cfg := &assoc.Config{LocalAddrs: addrs(row.own)}
			peer := netip.AddrPortFrom(netip.MustParseAddr(row.peer), 0)
			l := bareLab(t)
			a, err := l.h.ep.Connect(l.now, cfg, portB, netip.AddrPort{}, []netip.AddrPort{peer}, portA)
			if err != nil {
				t.Fatal(err)
			}
			l.h.adopt(a)
			if got := a.LocalAddr().Addr(); got != netip.MustParseAddr(row.from) {
				t.Errorf("the INIT leaves from %v", got)
			}
			if got := listed(t, l.flush()[0], wire.ChunkInit); !slices.Equal(got, addrs(row.want)) {
				t.Errorf("INIT lists %v", got)
			}
			l = bareLab(t)
			l.listen(cfg)
			l.h.addr = netip.AddrPortFrom(netip.MustParseAddr(row.from), 0)
			if got := listed(t, l.sendFrom(peer, 0, initChunk(1, 1))[0], wire.ChunkInitAck); !slices.Equal(got, addrs(row.want)) {
				t.Errorf("INIT ACK lists %v", got)
			}
		})
	}
}

func TestAddressesThatArePassedOver(t *testing.T) {
	for _, row := range []struct {
		name, own, source, listed string
		want                      string // destinations of the association
	}{
		{"none listed: the source", "", "10.0.0.9", "", "10.0.0.9"},                                      // req 9260-5.1.2-1
		{"the source counts too", "", "10.0.0.9", "10.0.0.10 10.0.0.11", "10.0.0.9 10.0.0.10 10.0.0.11"}, // req 9260-5.1.2-3
		{"each once", "", "10.0.0.9", "10.0.0.10 10.0.0.9 10.0.0.10", "10.0.0.9 10.0.0.10"},
		{"no host has these", "", "10.0.0.9", "0.0.0.0 255.255.255.255 239.0.0.1 :: ff02::1", "10.0.0.9"},
		{"loopback from elsewhere", "", "10.0.0.9", "127.0.0.1 ::1", "10.0.0.9"},
		{"loopback from here", "", "127.0.0.9", "127.0.0.1 10.0.0.1", "127.0.0.9 127.0.0.1 10.0.0.1"},
		{"private ones of a public peer", "", "192.0.2.9", "10.0.0.1 192.168.0.1 fd00::1 100.64.0.9 198.51.100.9", "192.0.2.9 198.51.100.9"},
		{"public ones of a private peer", "", "10.0.0.9", "198.51.100.9", "10.0.0.9 198.51.100.9"},
		{"link-local ones from elsewhere", "", "2001:db8::9", "fe80::9 169.254.1.1", "2001:db8::9"},
		{"link-local ones of this link", "", "fe80::9%eth0", "fe80::10 2001:db8::9", "fe80::9%eth0 fe80::10%eth0 2001:db8::9"},
		{"those of a family that no own address has", "10.0.0.1 10.1.0.1", "10.0.0.9", "2001:db8::9 10.0.0.10", "10.0.0.9 10.0.0.10"}, // req 9260-5.1.2-8, 9260-5.1.2-9, 9260-5.1.2-10
		{"beyond the eighth", "", "10.0.0.1", "10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.6 10.0.0.7 10.0.0.8 10.0.0.9 10.0.0.10",
			"10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.6 10.0.0.7 10.0.0.8"},
	} {
		t.Run(row.name, func(t *testing.T) {
			cfg := &assoc.Config{LocalAddrs: addrs(row.own)}
			peer := netip.AddrPortFrom(netip.MustParseAddr(row.source), 0)
			var params [][]byte
			for _, a := range addrs(row.listed) {
				params = append(params, wire.AppendAddressParam(nil, a))
			}
			check := func(side string, a *assoc.Assoc) {
				t.Helper()
				var got []netip.Addr
				for _, p := range paths(a) {
					got = append(got, p.Remote.Addr())
				}
				if !slices.Equal(got, addrs(row.want)) {
					t.Errorf("%s: destinations %v", side, got)
				}
			}
			l := bareLab(t)
			l.peer = peer
			a, err := l.h.ep.Connect(l.now, cfg, portB, netip.AddrPort{}, []netip.AddrPort{peer}, portA)
			if err != nil {
				t.Fatal(err)
			}
			l.h.adopt(a)
			init, _ := wire.AsInit(chunkOf(l.flush()[0], wire.ChunkInit))
			l.send(init.Tag(), initAckChunk(l.peerTag, l.tsn, []byte("cookie!!"), params...))
			check("initiator", a)

			l = bareLab(t)
			l.listen(cfg)
			l.peer = peer
			l.initiate(params...)
			l.send(l.tag, wire.AppendCookieEcho(nil, l.cookie))
			check("responder", l.a)
		})
	}
}

func TestSupportedAddressTypes(t *testing.T) {
	types := func(pkt wire.Packet) string {
		init, _ := wire.AsInit(chunkOf(pkt, wire.ChunkInit))
		return fmt.Sprintf("%x", []byte(paramOf(init, wire.ParamSupportedAddrTypes)))
	}
	for _, row := range []struct{ name, own, peer, want string }{
		{"not known: nothing is said", "", "10.0.0.9", ""},
		{"IPv4 only", "10.0.0.1 10.1.0.1", "10.0.0.9", "000c00060005"}, // req 9260-5.1.2-7, 9260-3.3.2.1.5-1, 9260-3.3.2.1.5-2
		{"IPv6 only", "2001:db8::1", "2001:db8::9", "000c00060006"},
		{"both: nothing is said", "10.0.0.1 2001:db8::1", "10.0.0.9", ""},
	} {
		l := bareLab(t)
		a, err := l.h.ep.Connect(l.now, &assoc.Config{LocalAddrs: addrs(row.own)}, portB, netip.AddrPort{},
			[]netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr(row.peer), 0)}, portA)
		if err != nil {
			t.Fatal(err)
		}
		l.h.adopt(a)
		if got := types(l.flush()[0]); got != row.want {
			t.Errorf("%s: %q", row.name, got)
		}
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
		{"IPv4, with an IPv6 address: both", wire.AppendAddressParam(v4, netip.MustParseAddr("2001:db8::9")), "10.0.0.1 10.1.0.1 2001:db8::1"}, // req 9260-5.1.2-11
		{"host names only: ignored", odd, "10.0.0.1 10.1.0.1 2001:db8::1"},                                                                     // req 9260-3.3.2.1.5-3
	} {
		l := bareLab(t)
		l.listen(&assoc.Config{LocalAddrs: addrs("10.0.0.1 10.1.0.1 2001:db8::1")})
		if got := listed(t, l.send(0, initChunk(1, 1, row.params))[0], wire.ChunkInitAck); !slices.Equal(got, addrs(row.want)) {
			t.Errorf("%s: INIT ACK lists %v", row.name, got)
		}
	}
}

func TestSourceOfEachPath(t *testing.T) {
	for _, row := range []struct{ name, own, peers, want string }{
		{"of the same network", "10.1.0.1 10.2.0.1", "10.2.0.9 10.1.0.9", "10.2.0.1 10.1.0.1"},
		{"the longer prefix", "192.168.1.1 192.168.2.1", "192.168.2.9 192.168.2.10", "192.168.2.1 192.168.2.1"},
		{"with nothing in common: one each", "198.51.100.1 203.0.113.1", "192.0.2.8 192.0.2.9", "198.51.100.1 203.0.113.1"}, // req 9260-6.4.1-2
		{"of the same family", "10.1.0.1 2001:db8::1", "2001:db8:1::9 10.2.0.9", "2001:db8::1 10.1.0.1"},
		{"peers of a family that there is not are left out", "10.1.0.1 10.2.0.1", "2001:db8::9 10.1.0.9", "10.1.0.1"},
	} {
		l := bareLab(t)
		var to []netip.AddrPort
		for _, p := range addrs(row.peers) {
			to = append(to, netip.AddrPortFrom(p, 0))
		}
		a, err := l.h.ep.Connect(l.now, &assoc.Config{LocalAddrs: addrs(row.own)}, portB, netip.AddrPort{}, to, portA)
		if err != nil {
			t.Fatal(err)
		}
		var got []netip.Addr
		for _, p := range paths(a) {
			got = append(got, p.Local.Addr())
			if p.State != assoc.PathActive { // req 9260-5.4-1
				t.Errorf("%s: %v is %v", row.name, p.Remote, p.State)
			}
		}
		if !slices.Equal(got, addrs(row.want)) {
			t.Errorf("%s: %v", row.name, got)
		}
	}
	l := bareLab(t)
	if _, err := l.h.ep.Connect(l.now, &assoc.Config{LocalAddrs: addrs("10.1.0.1")}, portB, netip.AddrPort{},
		[]netip.AddrPort{netip.MustParseAddrPort("[2001:db8::9]:0")}, portA); !errors.Is(err, assoc.ErrNoSource) || !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Errorf("no own address of the family: %v", err)
	}
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
		_, err := (&assoc.Config{LocalAddrs: addrs(row.list)}).Complete()
		var ce *assoc.ConfigError
		if errors.As(err, &ce) == row.ok || ce != nil && ce.Field != "LocalAddrs" {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

// A host with two networks talks with a peer that has one address, in either of them.
func TestPathGetsAnotherSourceWhenItsOwnFails(t *testing.T) {
	setup := func(t *testing.T) *multi {
		w := newMulti(t, 2)
		w.addrs[1] = addrs("10.9.0.2")
		for _, l := range w.addrs[0] {
			w.net.Connect(l, w.addrs[1][0], simnet.Params{Delay: latency})
		}
		w.listen(&steady)
		return w
	}
	config := func(w *multi) *assoc.Config {
		cfg := steady
		cfg.LocalAddrs = w.addrs[0]
		return &cfg
	}
	t.Run("in the middle of a transfer", func(t *testing.T) {
		w := setup(t)
		a := w.connect(config(w), w.addrs[1][0])
		w.run(3 * time.Second)
		b := w.hosts[1].assocs[0]
		s := w.startStream(a, b, 4000)
		w.runUntil(w.now.Add(300*time.Millisecond), s.done)
		if got := a.LocalAddr().Addr(); got != w.addrs[0][0] {
			t.Fatalf("began at %v", got)
		}
		w.net.Partition(w.addrs[0][0], w.addrs[1][0])
		cut := w.now
		rto := a.PathStats(0).RTO
		if !w.runUntil(w.now.Add(time.Hour), s.done) {
			t.Fatalf("%d messages sent, %d arrived", s.next, s.want)
		}
		if got := a.LocalAddr().Addr(); got != w.addrs[0][1] {
			t.Errorf("now at %v", got)
		}
		// The second error in a row makes the change, after RTO and 2 RTO.
		if p := s.pause(cut); p > 3*rto+4*roundTrip {
			t.Errorf("nothing arrived for %v", p)
		}
		if n := a.PathStats(0).Cwnd; n > 4404*2 && a.Stats().Timeouts < 2 { // req 9260-7.2.5-1
			t.Errorf("cwnd %d", n)
		}
	})
	t.Run("at the setup", func(t *testing.T) {
		w := setup(t)
		w.net.Partition(w.addrs[0][0], w.addrs[1][0])
		a := w.connect(config(w), w.addrs[1][0])
		if !w.runUntil(w.now.Add(time.Minute), func() bool { return a.State() == assoc.Established }) {
			t.Fatalf("state %v", a.State())
		}
	})
}

// Two endpoints with several addresses that set up an association with each other at the same time, by
// different addresses, end up with one.
func TestCollisionByDifferentAddresses(t *testing.T) {
	w := newMulti(t, 2)
	ca, cb := steady, steady
	ca.LocalAddrs, cb.LocalAddrs = w.addrs[0], w.addrs[1]
	a := w.connect(&ca, w.addrs[1][0], w.addrs[1][1])
	b, err := w.hosts[1].ep.Connect(w.now, &cb, portB, netip.AddrPort{}, []netip.AddrPort{netip.AddrPortFrom(w.addrs[0][1], 0)}, portA)
	if err != nil {
		t.Fatal(err)
	}
	w.hosts[1].adopt(b)
	w.run(5 * time.Second)
	for i, x := range []*assoc.Assoc{a, b} { // req 9260-5.1.2-5
		if x.State() != assoc.Established || len(w.hosts[i].assocs) != 1 || x.NumPaths() != 2 {
			t.Errorf("host %d: %v, %d associations, paths %+v", i, x.State(), len(w.hosts[i].assocs), paths(x))
		}
	}
	if a.LocalTag() != b.PeerTag() || b.LocalTag() != a.PeerTag() {
		t.Error("the tags do not match")
	}
}

func TestInitToAnAddressOfAnotherEndpoint(t *testing.T) {
	// req 9260-8.4-4: nobody listens there, though on this port.
	l := bareLab(t)
	l.listen(&assoc.Config{LocalAddrs: addrs("10.0.0.1 10.1.0.1")})
	l.h.addr = netip.MustParseAddrPort("10.2.0.1:0")
	l.expect(l.send(0, initChunk(1, 1)), "ABORT")
	l.h.addr = netip.MustParseAddrPort("10.1.0.1:0")
	l.expect(l.send(0, initChunk(1, 1)), "INIT ACK")
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
			l := bareLab(t)
			a, err := l.h.ep.Connect(l.now, nil, portB, l.h.addr, []netip.AddrPort{first, second}, portA)
			if err != nil {
				t.Fatal(err)
			}
			l.h.adopt(a)
			l.a = a
			init, _ := wire.AsInit(chunkOf(l.flush()[0], wire.ChunkInit))
			for range row.lost {
				l.wait(time.Second)
			}
			l.now = l.now.Add(30 * time.Millisecond)
			out := l.post(row.from, init.Tag(), initAckChunk(l.peerTag, l.tsn, []byte("cookie!!")))
			if text(out) != row.first.Addr().String()+": COOKIE ECHO" || a.PeerAddr() != row.first {
				t.Errorf("%s, primary path to %v", text(out), a.PeerAddr())
			}
			if p := pathTo(t, a, row.first.Addr()); p.SRTT != 30*time.Millisecond && row.lost == 0 {
				t.Errorf("%+v", p)
			}
		})
	}
}
