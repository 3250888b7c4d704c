package assoc_test

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func at(addr string) netip.AddrPort { return netip.MustParseAddrPort(addr) }

// portOf returns the UDP port that the association sends to.
func portOf(a *assoc.Assoc, path int) uint16 { return a.PathStats(path).Remote.Port() }

// The peer's UDP port is that of its last packet that is proved to be its own.
func TestPortIsLearnedBehindTheTagCheck(t *testing.T) {
	// req 6951-5.4-2
	heartbeat := wire.AppendHeartbeat(nil, []byte("x"))
	for _, row := range []struct {
		name string
		tag  func(l *lab) uint32
		pkt  []byte
		want uint16
	}{
		{"the right tag: learned", func(l *lab) uint32 { return l.tag }, heartbeat, 4444},
		{"another tag: not", func(l *lab) uint32 { return l.tag ^ 1 }, heartbeat, 9899},
		{"no tag: not", func(l *lab) uint32 { return 0 }, heartbeat, 9899},
		{"an INIT, which has no tag: not", func(l *lab) uint32 { return 0 }, initChunk(5, 5), 9899},
		{"a cookie that nobody has signed: not", func(l *lab) uint32 { return l.tag }, wire.AppendCookieEcho(nil, make([]byte, 300)), 9899},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := bareLab(t)
			l.h.addr, l.peer = at("10.0.0.1:9899"), at("10.0.0.9:9899")
			l.listen(quiet)
			l.shake()
			l.deliver(at("10.0.0.9:4444"), packet(portA, portB, row.tag(l), row.pkt))
			if got := portOf(l.a, 0); got != row.want {
				t.Errorf("port %d, want %d", got, row.want)
			}
		})
	}
}

// Behind a NAT the port may be another one with each packet of the setup, and each answer goes to the
// port of the packet that it answers.
func TestAnswersGoToThePortOfTheQuestion(t *testing.T) {
	// req 6951-5.4-4
	l := bareLab(t)
	l.h.addr = at("10.0.0.1:9899")
	l.listen(quiet)
	to := func(from string, pkt []byte) (list []netip.AddrPort) {
		l.deliver(at(from), pkt)
		l.h.settle()
		l.h.ep.PollTransmit(l.now, l.h.batch)
		if l.a != nil {
			l.a.PollTransmit(l.now, l.h.batch)
		}
		for _, p := range l.h.batch.Pkts {
			list = append(list, p.Remote)
			if c := chunkOf(bytes.Join(p.Vec, nil), wire.ChunkInitAck); c != nil {
				l.noteInitAck(bytes.Join(p.Vec, nil))
			}
		}
		l.h.batch.Reset()
		return list
	}
	for _, step := range []struct {
		what, from string
		pkt        func() []byte
	}{
		{"out of the blue", "10.0.0.9:1001", func() []byte { return packet(portA, portB, 7, wire.AppendCookieAck(nil), dataChunk(1, 0, 0, "x")) }},
		{"INIT", "10.0.0.9:1002", func() []byte { return packet(portA, portB, 0, initChunk(l.peerTag, l.tsn)) }},
		{"COOKIE ECHO", "10.0.0.9:1003", func() []byte { return packet(portA, portB, l.tag, wire.AppendCookieEcho(nil, l.cookie)) }},
		{"HEARTBEAT", "10.0.0.9:1004", func() []byte { return packet(portA, portB, l.tag, wire.AppendHeartbeat(nil, []byte("x"))) }},
		{"natively", "10.0.0.9:0", func() []byte { return packet(portA, portB, l.tag, wire.AppendHeartbeat(nil, []byte("x"))) }},
		{"INIT for the association", "10.0.0.9:1005", func() []byte { return packet(portA, portB, 0, initChunk(9, 9)) }},
	} {
		list := to(step.from, step.pkt())
		if step.what == "out of the blue" {
			continue // of that kind nothing is answered
		}
		if len(list) != 1 || list[0] != at(step.from) {
			t.Errorf("%s from %s: answers to %v", step.what, step.from, list)
		}
		if step.what == "natively" && portOf(l.a, 0) != 0 { // req 6951-5.4-3
			t.Errorf("port %d after a native packet", portOf(l.a, 0))
		}
	}
	if got := portOf(l.a, 0); got != 0 { // an INIT has no tag
		t.Errorf("port %d after an INIT", got)
	}
	blue := bareLab(t)
	blue.h.addr = at("10.0.0.1:9899")
	l = blue
	if list := to("10.0.0.9:1001", packet(portA, portB, 7, dataChunk(1, 0, 0, "x"))); len(list) != 1 || list[0].Port() != 1001 {
		t.Errorf("out of the blue: answers to %v", list)
	}
}

// Each address of the peer has a port of its own.
func TestPortsAreOfAddresses(t *testing.T) {
	// req 6951-5.1-3
	l := bareLab(t)
	l.h.addr, l.peer = at("10.0.0.1:9899"), at("10.0.0.9:1001")
	l.listen(quiet)
	second := at("10.0.1.9:2002")
	l.initiate(wire.AppendAddressParam(nil, second.Addr()))
	l.send(l.tag, wire.AppendCookieEcho(nil, l.cookie))
	l.deliver(second, packet(portA, portB, l.tag, wire.AppendHeartbeat(nil, []byte("x"))))
	l.h.batch.Reset()
	if a, b := portOf(l.a, 0), portOf(l.a, 1); a != 1001 || b != 2002 {
		t.Errorf("ports %d and %d", a, b)
	}
	l.deliver(l.peer, packet(portA, portB, l.tag, wire.AppendHeartbeat(nil, []byte("y"))))
	if a, b := portOf(l.a, 0), portOf(l.a, 1); a != 1001 || b != 2002 {
		t.Errorf("ports %d and %d after a packet from the first", a, b)
	}
}

// A NAT gives the association other ports while data flows, on either side.
func TestRebindingUnderTraffic(t *testing.T) {
	r := newRoad(t, roadUDP, 1500, simnet.Params{})
	a, b := r.join(quiet, quiet)
	var want [2][]byte
	for i := range 20 {
		port := uint16(20000 + i)
		r.ends[i%2].addr = netip.AddrPortFrom(r.ends[i%2].addr.Addr(), port)
		want[0] = append(want[0], r.send(0, 20_000+i)...)
		want[1] = append(want[1], r.send(1, 10_000+i)...)
		r.run(time.Second)
		if got := portOf([]*assoc.Assoc{b, a}[i%2], 0); got != port {
			t.Fatalf("port %d, want %d", got, port)
		}
	}
	for i := range r.ends {
		if !bytes.Equal(r.ends[1-i].received.Bytes(), want[i]) {
			t.Errorf("%d octets of %d arrived", r.ends[1-i].received.Len(), len(want[i]))
		}
	}
	r.wantMTU("another port has the same header", 0, 1500)
}

// A path that is encapsulated has 8 octets less for SCTP, and gains them when that ends.
func TestEncapsulationChangesTheMTU(t *testing.T) {
	for _, row := range []struct {
		name     string
		addrs    [2]string
		search   bool
		becomes  uint16
		mtu      int // SCTP packet
		thenBack int
	}{
		{"begins", roadIPv4, true, 9899, 1472, 1480}, // req 6951-5.6-1
		{"ends", roadUDP, true, 0, 1480, 1472},       // req 6951-5.6-2
		{"begins, not searched for", roadIPv4, false, 9899, 1472, 1480},
		{"ends, not searched for", roadUDP, false, 0, 1480, 1472},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRoad(t, row.addrs, 1500, simnet.Params{MTU: 1500})
			cfg := &assoc.Config{HeartbeatInterval: -1, DisablePMTUD: !row.search}
			a, b := r.join(cfg, quiet)
			r.run(time.Second)
			was := r.ends[1].addr
			var events int
			r.ends[0].onEvent = func(_ *assoc.Assoc, e assoc.Event) {
				if e.Kind == assoc.EventMTUChanged {
					events++
				}
			}
			payload := a.MaxPayload()
			heard := func(from netip.AddrPort, want int) {
				t.Helper()
				pkt := packet(portB, portA, a.LocalTag(), wire.AppendHeartbeat(nil, []byte("x")))
				p := rawio.Packet{Data: pkt, Local: r.ends[0].addr, Remote: from}
				r.ends[0].receive(r.now, &p)
				if got := a.PathStats(0); got.MTU != want || got.Remote != from {
					t.Errorf("path MTU %d, want %d, to %v", got.MTU, want, got.Remote)
				}
			}
			heard(netip.AddrPortFrom(was.Addr(), row.becomes), row.mtu)
			if got := a.MaxPayload(); got != payload+row.mtu-row.thenBack {
				t.Errorf("MaxPayload %d, was %d", got, payload)
			}
			heard(netip.AddrPortFrom(was.Addr(), row.becomes), row.mtu)
			heard(was, row.thenBack)
			r.flush()
			if events != 2 {
				t.Errorf("%d events", events)
			}
			_ = b
		})
	}
}

// It may begin while a probe is under way: that is sent again in the size it then has.
func TestEncapsulationBeginsDuringTheSearch(t *testing.T) {
	r := newRoad(t, roadIPv4, 1500, simnet.Params{MTU: 1500})
	a, _ := r.join(quiet, quiet)
	r.run(roundTrip) // the base size is confirmed and the largest under way
	for i := range r.ends {
		r.ends[i].addr = netip.AddrPortFrom(r.ends[i].addr.Addr(), 9899)
	}
	want := r.send(1, 1000)
	r.run(30 * time.Second)
	if !bytes.Equal(r.ends[0].received.Bytes(), want) {
		t.Fatal("lost")
	}
	if got := a.PathStats(0); got.MTU != 1472 || got.Remote.Port() != 9899 {
		t.Errorf("path MTU %d to %v", got.MTU, got.Remote)
	}
	data := r.send(0, 50_000)
	r.run(time.Minute)
	if !bytes.Equal(r.ends[1].received.Bytes(), data) {
		t.Error("lost")
	}
}

// ICMP reports about encapsulated packets, which the link has taken out of their UDP headers.
func TestReportsAboutEncapsulatedPackets(t *testing.T) {
	l := bareLab(t)
	l.h.addr, l.peer = at("10.0.0.1:9899"), at("10.0.0.9:9899")
	l.listen(quiet)
	l.shake()
	report := func(kind rawio.Kind, mtu int, quote []byte) {
		p := rawio.Packet{Kind: kind, MTU: mtu, Data: quote, Local: l.h.addr, Remote: l.peer}
		l.h.receive(l.now, &p)
	}
	quote := packet(portB, portA, l.peerTag)
	report(rawio.KindPacketTooBig, 1400, quote[:8])
	if got := l.a.PathStats(0).MTU; got != 1400-20-8 {
		t.Errorf("path MTU %d", got)
	}
	l.now = l.now.Add(time.Minute)                                               // so long that nothing speaks against it
	report(rawio.KindProtoUnreachable, 0, packet(portB, portA, l.peerTag^1)[:8]) // req 6951-5.5-1
	report(rawio.KindProtoUnreachable, 0, quote[:7])
	report(rawio.KindProtoUnreachable, 0, nil)
	l.inState(assoc.Established)
	report(rawio.KindProtoUnreachable, 0, quote[:8]) // req 6951-5.5-3: port unreachable, as the link says
	l.inState(assoc.Closed)
}

// Nothing but HEARTBEATs keeps a NAT's state alive on an idle path.
func TestIdlePathsKeepTheNATsState(t *testing.T) {
	// req 6951-3.2-3
	r := newRoad(t, roadUDP, 1500, simnet.Params{})
	r.join(nil, quiet)
	r.run(time.Second)
	n := len(r.sent)
	r.run(10 * time.Minute)
	var last rawio.Time
	for _, c := range r.sent[n:] {
		if c.from == 0 {
			if last != 0 && c.at.Sub(last) > 35*time.Second {
				t.Errorf("silent for %v", c.at.Sub(last))
			}
			last = c.at
		}
	}
	if last == 0 {
		t.Error("silent")
	}
}

// A single-homed association names no addresses: a NAT would have to translate them.
func TestSingleHomedSetupNamesNoAddresses(t *testing.T) {
	// req 6951-3.2-1, 6951-5.7-1
	r := newRoad(t, roadUDP, 1500, simnet.Params{})
	r.join(nil, nil)
	seen := 0
	for _, c := range r.sent {
		for _, typ := range []wire.ChunkType{wire.ChunkInit, wire.ChunkInitAck} {
			ch := chunkOf(c.pkt, typ)
			if ch == nil {
				continue
			}
			seen++
			init, err := wire.AsInit(ch)
			if err != nil {
				t.Fatal(err)
			}
			if p := paramOf(init, wire.ParamIPv4); p != nil {
				t.Errorf("%v names %x", typ, []byte(p))
			}
			if p := paramOf(init, wire.ParamIPv6); p != nil {
				t.Errorf("%v names %x", typ, []byte(p))
			}
		}
	}
	if seen != 2 {
		t.Fatalf("%d setup chunks", seen)
	}
}

// The user says which port each address of the peer has at first, and which has none.
func TestPortsAreTheUsersChoice(t *testing.T) {
	// req 6951-6.1-1
	l := bareLab(t)
	remotes := []netip.AddrPort{at("10.0.0.9:1001"), at("10.0.1.9:0"), at("10.0.2.9:2002")}
	a, err := l.h.ep.Connect(l.now, quiet, portB, l.h.addr, remotes, portA)
	if err != nil {
		t.Fatal(err)
	}
	l.h.adopt(a)
	l.a = a
	seen := make(map[netip.AddrPort]bool)
	for range 6 {
		a.PollTransmit(l.now, l.h.batch)
		for _, p := range l.h.batch.Pkts {
			seen[p.Remote] = true
		}
		l.h.batch.Reset()
		l.now = a.NextTimeout()
		a.HandleTimeout(l.now)
	}
	for _, r := range remotes {
		if !seen[r] {
			t.Errorf("no INIT to %v", r)
		}
	}
	if len(seen) != len(remotes) {
		t.Errorf("sent to %v", seen)
	}
}
