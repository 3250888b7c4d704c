package assoc_test

import (
	"bytes"
	"net/netip"
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

func addrPort(addr string) netip.AddrPort { return netip.MustParseAddrPort(addr) }

// portOf returns the UDP port that the association sends to.
func portOf(a *assoc.Assoc, path int) uint16 { return a.PathStats(path).Remote.Port() }

// The peer's UDP port is that of its last packet that is proved to be its own.
func TestPortIsLearnedBehindTheTagCheck(t *testing.T) {
	// req 6951-5.4-2
	heartbeat := wire.AppendHeartbeat(nil, []byte("x"))
	for _, row := range []struct {
		name string
		tag  func(l *sctptest.Lab) uint32
		pkt  []byte
		want uint16
	}{
		{"the right tag: learned", func(l *sctptest.Lab) uint32 { return l.Tag }, heartbeat, 4444},
		{"another tag: not", func(l *sctptest.Lab) uint32 { return l.Tag ^ 1 }, heartbeat, 9899},
		{"no tag: not", func(l *sctptest.Lab) uint32 { return 0 }, heartbeat, 9899},
		{"an INIT, which has no tag: not", func(l *sctptest.Lab) uint32 { return 0 }, sctptest.InitChunk(5, 5), 9899},
		{"a cookie that nobody has signed: not", func(l *sctptest.Lab) uint32 { return l.Tag }, wire.AppendCookieEcho(nil, make([]byte, 300)), 9899},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := sctptest.NewLab(t)
			l.Host.Addr, l.Peer = addrPort("10.0.0.1:9899"), addrPort("10.0.0.9:9899")
			l.Listen(quiet)
			l.Handshake()
			l.Deliver(addrPort("10.0.0.9:4444"), sctptest.Packet(sctptest.PortA, sctptest.PortB, row.tag(l), row.pkt))
			check.Equal(t, "port", portOf(l.A, 0), row.want)
		})
	}
}

// Behind a NAT the port may be another one with each packet of the setup, and each answer goes to
// the port of the packet that it answers.
func TestAnswersGoToThePortOfTheQuestion(t *testing.T) {
	// req 6951-5.4-4
	l := sctptest.NewLab(t)
	l.Host.Addr = addrPort("10.0.0.1:9899")
	l.Listen(quiet)
	to := func(from string, pkt []byte) (list []netip.AddrPort) {
		l.Deliver(addrPort(from), pkt)
		l.Host.Settle(l.Now)
		l.Host.Endpoint.PollTransmit(l.Now, l.Host.Batch)
		if l.A != nil {
			l.A.PollTransmit(l.Now, l.Host.Batch)
		}
		for _, p := range l.Host.Batch.Pkts {
			list = append(list, p.Remote)
			if c := sctptest.ChunkOf(bytes.Join(p.Vec, nil), wire.ChunkInitAck); c != nil {
				l.NoteInitAck(bytes.Join(p.Vec, nil))
			}
		}
		l.Host.Batch.Reset()
		return list
	}
	for _, step := range []struct {
		what, from string
		pkt        func() []byte
	}{
		{"out of the blue", "10.0.0.9:1001", func() []byte {
			return sctptest.Packet(sctptest.PortA, sctptest.PortB, 7, wire.AppendCookieAck(nil),
				sctptest.DataChunk(1, 0, 0, "x"))
		}},
		{"INIT", "10.0.0.9:1002", func() []byte {
			return sctptest.Packet(sctptest.PortA, sctptest.PortB, 0, sctptest.InitChunk(l.PeerTag, l.TSN))
		}},
		{"COOKIE ECHO", "10.0.0.9:1003", func() []byte {
			return sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
		}},
		{"HEARTBEAT", "10.0.0.9:1004", func() []byte {
			return sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag, wire.AppendHeartbeat(nil, []byte("x")))
		}},
		{"natively", "10.0.0.9:0", func() []byte {
			return sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag, wire.AppendHeartbeat(nil, []byte("x")))
		}},
		{"INIT for the association", "10.0.0.9:1005", func() []byte { return sctptest.Packet(sctptest.PortA, sctptest.PortB, 0, sctptest.InitChunk(9, 9)) }},
	} {
		list := to(step.from, step.pkt())
		if step.what == "out of the blue" {
			continue // of that kind nothing is answered
		}
		check.That(t, len(list) == 1 && list[0] == addrPort(step.from), "%s from %s: answers to %v", step.what,
			step.from,
			list)
		if step.what == "natively" {
			check.Equal(t, "port after a native packet", portOf(l.A, 0), 0) // req 6951-5.4-3
		}
	}
	got := portOf(l.A, 0)
	check.That(t, got == 0, "port %d after an INIT", got) // an INIT has no tag
	blue := sctptest.NewLab(t)
	blue.Host.Addr = addrPort("10.0.0.1:9899")
	l = blue
	list := to("10.0.0.9:1001", sctptest.Packet(sctptest.PortA, sctptest.PortB, 7, sctptest.DataChunk(1, 0, 0, "x")))
	check.That(t, len(list) == 1 && list[0].Port() == 1001, "out of the blue: answers to %v", list)
}

// Each address of the peer has a port of its own.
func TestPortsAreOfAddresses(t *testing.T) {
	// req 6951-5.1-3
	l := sctptest.NewLab(t)
	l.Host.Addr, l.Peer = addrPort("10.0.0.1:9899"), addrPort("10.0.0.9:1001")
	l.Listen(quiet)
	second := addrPort("10.0.1.9:2002")
	l.Initiate(wire.AppendAddressParam(nil, second.Addr()))
	l.Send(l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
	l.Deliver(second, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag, wire.AppendHeartbeat(nil, []byte("x"))))
	l.Host.Batch.Reset()
	a, b := portOf(l.A, 0), portOf(l.A, 1)
	check.That(t, a == 1001 && b == 2002, "ports %d and %d", a, b)
	l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag, wire.AppendHeartbeat(nil, []byte("y"))))
	a, b = portOf(l.A, 0), portOf(l.A, 1)
	check.That(t, a == 1001 && b == 2002, "ports %d and %d after a packet from the first", a, b)
}

// A NAT gives the association other ports while data flows, on either side.
func TestRebindingUnderTraffic(t *testing.T) {
	r := sctptest.NewMTUPair(t, sctptest.UDP, 1500, simnet.Params{})
	a, b := r.Join(quiet, quiet)
	var want [2][]byte
	for i := range 20 {
		port := uint16(20000 + i)
		r.Hosts[i%2].Addr = netip.AddrPortFrom(r.Hosts[i%2].Addr.Addr(), port)
		want[0] = append(want[0], r.Send(0, 20_000+i)...)
		want[1] = append(want[1], r.Send(1, 10_000+i)...)
		r.Run(time.Second)
		must.Equal(t, "port", portOf([]*assoc.Assoc{b, a}[i%2], 0), port)
	}
	for i := range r.Hosts {
		check.Slice(t, "octets that arrived", r.Hosts[1-i].Received.Bytes(), want[i])
	}
	r.WantMTU("another port has the same header", 0, 1500)
}

// A path that is encapsulated has 8 octets less for SCTP, and gains them when that ends.
func TestEncapsulationChangesTheMTU(t *testing.T) {
	for _, row := range []struct {
		name     string
		addrs    [2]netip.AddrPort
		search   bool
		becomes  uint16
		mtu      int // SCTP packet
		thenBack int
	}{
		{"begins", sctptest.IPv4, true, 9899, 1472, 1480}, // req 6951-5.6-1
		{"ends", sctptest.UDP, true, 0, 1480, 1472},       // req 6951-5.6-2
		{"begins, not searched for", sctptest.IPv4, false, 9899, 1472, 1480},
		{"ends, not searched for", sctptest.UDP, false, 0, 1480, 1472},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := sctptest.NewMTUPair(t, row.addrs, 1500, simnet.Params{MTU: 1500})
			cfg := &assoc.Config{HeartbeatInterval: -1, DisablePMTUD: !row.search}
			a, b := r.Join(cfg, quiet)
			r.Run(time.Second)
			was := r.Hosts[1].Addr
			var events int
			r.Hosts[0].OnEvent = func(_ *assoc.Assoc, e assoc.Event) {
				if e.Kind == assoc.EventMTUChanged {
					events++
				}
			}
			payload := a.MaxPayload()
			heard := func(from netip.AddrPort, want int) {
				t.Helper()
				pkt := sctptest.Packet(sctptest.PortB, sctptest.PortA, a.LocalTag(),
					wire.AppendHeartbeat(nil, []byte("x")))
				p := rawio.Packet{Data: pkt, Local: r.Hosts[0].Addr, Remote: from}
				r.Hosts[0].Receive(r.Now, &p)
				got := a.PathStats(0)
				check.That(t, got.MaxPacket == want && got.Remote == from, "path MTU %d, want %d, to %v",
					got.MaxPacket, want,
					got.Remote)
			}
			heard(netip.AddrPortFrom(was.Addr(), row.becomes), row.mtu)
			check.Equal(t, "MaxPayload", a.MaxPayload(), payload+row.mtu-row.thenBack)
			heard(netip.AddrPortFrom(was.Addr(), row.becomes), row.mtu)
			heard(was, row.thenBack)
			r.Flush()
			check.Equal(t, "events", events, 2)
			_ = b
		})
	}
}

// It may begin while a probe is under way: that is sent again in the size it then has.
func TestEncapsulationBeginsDuringTheSearch(t *testing.T) {
	r := sctptest.NewMTUPair(t, sctptest.IPv4, 1500, simnet.Params{MTU: 1500})
	a, _ := r.Join(quiet, quiet)
	r.Run(sctptest.RoundTrip) // the base size is confirmed and the largest under way
	for i := range r.Hosts {
		r.Hosts[i].Addr = netip.AddrPortFrom(r.Hosts[i].Addr.Addr(), 9899)
	}
	want := r.Send(1, 1000)
	r.Run(30 * time.Second)
	must.Slice(t, "octets that arrived", r.Hosts[0].Received.Bytes(), want)
	got := a.PathStats(0)
	check.That(t, got.MaxPacket == 1472 && got.Remote.Port() == 9899, "path MTU %d to %v", got.MaxPacket, got.Remote)
	data := r.Send(0, 50_000)
	r.Run(time.Minute)
	check.Slice(t, "octets that arrived", r.Hosts[1].Received.Bytes(), data)
}

// ICMP reports about encapsulated packets, which the link has taken out of their UDP headers.
func TestReportsAboutEncapsulatedPackets(t *testing.T) {
	l := sctptest.NewLab(t)
	l.Host.Addr, l.Peer = addrPort("10.0.0.1:9899"), addrPort("10.0.0.9:9899")
	l.Listen(quiet)
	l.Handshake()
	report := func(kind rawio.Kind, mtu int, quote []byte) {
		p := rawio.Packet{Kind: kind, MTU: mtu, Data: quote, Local: l.Host.Addr, Remote: l.Peer}
		l.Host.Receive(l.Now, &p)
	}
	quote := sctptest.Packet(sctptest.PortB, sctptest.PortA, l.PeerTag)
	report(rawio.KindPacketTooBig, 1400, quote[:8])
	check.Equal(t, "path MTU", l.A.PathStats(0).MaxPacket, 1400-20-8)
	// so long that nothing speaks against it
	l.Now = l.Now.Add(time.Minute)
	// req 6951-5.5-1
	report(rawio.KindProtoUnreachable, 0, sctptest.Packet(sctptest.PortB, sctptest.PortA, l.PeerTag^1)[:8])
	report(rawio.KindProtoUnreachable, 0, quote[:7])
	report(rawio.KindProtoUnreachable, 0, nil)
	l.InState(assoc.Established)
	report(rawio.KindProtoUnreachable, 0, quote[:8]) // req 6951-5.5-3: port unreachable, as the link says
	l.InState(assoc.Closed)
}

// Nothing but HEARTBEATs keeps a NAT's state alive on an idle path.
func TestIdlePathsKeepTheNATsState(t *testing.T) {
	// req 6951-3.2-3
	r := sctptest.NewMTUPair(t, sctptest.UDP, 1500, simnet.Params{})
	r.Join(nil, quiet)
	r.Run(time.Second)
	n := len(r.Sent)
	r.Run(10 * time.Minute)
	var last rawio.Time
	for _, c := range r.Sent[n:] {
		if c.From == 0 {
			check.That(t, last == 0 || c.At.Sub(last) <= 35*time.Second, "silent for %v", c.At.Sub(last))
			last = c.At
		}
	}
	check.That(t, last != 0, "silent")
}

// A single-homed association names no addresses: a NAT would have to translate them.
func TestSingleHomedSetupNamesNoAddresses(t *testing.T) {
	// req 6951-3.2-1, 6951-5.7-1
	r := sctptest.NewMTUPair(t, sctptest.UDP, 1500, simnet.Params{})
	r.Join(nil, nil)
	seen := 0
	for _, c := range r.Sent {
		for _, typ := range []wire.ChunkType{wire.ChunkInit, wire.ChunkInitAck} {
			ch := sctptest.ChunkOf(c.Pkt, typ)
			if ch == nil {
				continue
			}
			seen++
			init := must.Get(wire.AsInit(ch))(t)
			p := sctptest.ParamOf(init, wire.ParamIPv4)
			check.That(t, p == nil, "%v names %x", typ, []byte(p))
			if p := sctptest.ParamOf(init, wire.ParamIPv6); p != nil {
				t.Errorf("%v names %x", typ, []byte(p))
			}
		}
	}
	must.Equal(t, "setup chunks", seen, 2)
}

// The user says which port each address of the peer has at first, and which has none.
func TestPortsAreTheUsersChoice(t *testing.T) {
	// req 6951-6.1-1
	l := sctptest.NewLab(t)
	remotes := []netip.AddrPort{addrPort("10.0.0.9:1001"), addrPort("10.0.1.9:0"), addrPort("10.0.2.9:2002")}
	a := l.Dial(quiet, l.Host.Addr, remotes...)
	seen := make(map[netip.AddrPort]bool)
	for range 6 {
		a.PollTransmit(l.Now, l.Host.Batch)
		for _, p := range l.Host.Batch.Pkts {
			seen[p.Remote] = true
		}
		l.Host.Batch.Reset()
		l.Now = a.NextTimeout()
		a.HandleTimeout(l.Now)
	}
	for _, r := range remotes {
		check.That(t, seen[r], "no INIT to %v", r)
	}
	check.That(t, len(seen) == len(remotes), "sent to %v", seen)
}
