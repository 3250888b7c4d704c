package assoc_test

import (
	"bytes"
	"fmt"
	"math/rand"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// talk sends n messages of size octets every 50 ms from an end, and returns what they hold.
func (r *road) talk(from, n, size int) (all []byte) {
	r.t.Helper()
	for range n {
		all = append(all, r.send(from, size)...)
		r.run(50 * time.Millisecond)
	}
	return all
}

// The path's MTU falls while data flows, and everything arrives: what was sent before in IP fragments,
// what comes after in smaller chunks.
func TestMTUFallsUnderTraffic(t *testing.T) {
	for _, row := range []struct {
		name   string
		addrs  [2]string
		size   int // of a message
		to     int
		quote  int
		within time.Duration // until the MTU is found
		want   int
	}{
		{"large messages, reported", roadIPv4, 30_000, 1280, 64, time.Second, 1280},
		{"large messages, a black hole", roadIPv4, 30_000, 1280, 0, 10 * time.Second, 1280}, // req 8899-4.3-1
		{"large messages, a black hole, IPv6", roadIPv6, 30_000, 1280, 0, 10 * time.Second, 1280},
		{"large messages, a black hole, UDP", roadUDP, 30_000, 1500, 0, 10 * time.Second, 1500},
		{"messages that share packets, a black hole", roadIPv4, 900, 1280, 0, 20 * time.Second, 1280},
		{"below the base size, reported", roadIPv4, 30_000, 800, 64, 10 * time.Second, 576},
		{"below the base size, a black hole", roadIPv4, 30_000, 800, 0, 20 * time.Second, 576},
		{"below the base size, with chunks of less than that", roadIPv4, 700, 576, 0, 20 * time.Second, 576},
		{"to the least IPv4 carries", roadIPv4, 30_000, 576, 0, 20 * time.Second, 576},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRoad(t, row.addrs, 9000, simnet.Params{})
			cfg := &assoc.Config{HeartbeatInterval: -1, PathMaxRetrans: 5, SendBuffer: 1 << 22}
			a, _ := r.join(cfg, quiet)
			want := r.talk(0, 10, row.size)
			r.wantMTU("before", 0, 9000)
			// Let a window's worth be under way when it happens.
			for range 40 {
				want = append(want, r.send(0, row.size)...)
			}
			r.flush()
			n := len(r.sent)
			r.mtu(row.to, row.quote)
			want = append(want, r.talk(0, 20, row.size)...)
			r.run(row.within)
			r.wantMTU("after", 0, row.want)
			want = append(want, r.talk(0, 10, row.size)...)
			r.run(time.Minute)
			if got := r.ends[1].received.Bytes(); !bytes.Equal(got, want) {
				t.Fatalf("%d octets of %d arrived, or others", len(got), len(want))
			}
			fragments := 0
			for _, c := range r.sent[n:] {
				if c.Fragment == 0 || c.from != 0 {
					continue
				}
				fragments++
				if types := chunkTypes(c.pkt); len(types) != 1 || types[0] != wire.ChunkData { // req 8899-4.4-1
					t.Errorf("fragmented: %v", types)
				}
			}
			if row.size > 9000 && fragments == 0 {
				t.Error("nothing had to be fragmented: the story is not told")
			}
			if _, down := r.ends[0].event(assoc.EventPathDown); down || a.State() != assoc.Established {
				t.Error("the path went down")
			}
			r.mtu(9000, 0)
			r.run(20 * time.Minute) // PMTU_RAISE_TIMER, req 8899-5.2-5
			r.wantMTU("when it has grown again", 0, 9000)
			r.ends[1].received.Reset()
			want = r.talk(0, 10, row.size)
			r.run(time.Minute)
			if !bytes.Equal(r.ends[1].received.Bytes(), want) {
				t.Error("lost afterwards")
			}
		})
	}
}

func TestEachDirectionHasItsMTU(t *testing.T) {
	r := newRoad(t, roadIPv4, 9000, simnet.Params{})
	r.path(1, func(p *simnet.Params) { p.MTU = 1500 })
	r.join(quiet, quiet)
	r.run(10 * time.Second)
	r.wantMTU("there", 0, 9000)
	r.wantMTU("and back", 1, 1500)
	want := [2][]byte{r.send(0, 200_000), r.send(1, 100_000)}
	r.run(time.Minute)
	for i := range r.ends {
		if !bytes.Equal(r.ends[1-i].received.Bytes(), want[i]) {
			t.Errorf("%d octets of %d arrived", r.ends[1-i].received.Len(), len(want[i]))
		}
	}
}

// The link's own MTU is read anew: an interface may change.
func TestInterfaceChangesItsMTU(t *testing.T) {
	r := newRoad(t, roadIPv4, 1500, simnet.Params{})
	r.join(quiet, quiet)
	r.run(time.Second)
	r.ends[0].link = 9000
	r.run(11 * time.Minute)
	r.wantMTU("grown", 0, 9000)
	r.ends[0].link = 1400
	r.mtu(1400, 0)
	want := r.talk(0, 20, 30_000)
	r.run(20 * time.Second)
	r.wantMTU("shrunken", 0, 1400)
	r.run(time.Minute)
	if !bytes.Equal(r.ends[1].received.Bytes(), want) {
		t.Errorf("%d octets of %d arrived", r.ends[1].received.Len(), len(want))
	}
}

// Timeouts have other causes. Back at the base size, the search finds that nothing has changed.
func TestOutageIsNoBlackHole(t *testing.T) {
	r := newRoad(t, roadIPv4, 9000, simnet.Params{})
	a, _ := r.join(&assoc.Config{HeartbeatInterval: -1}, quiet)
	want := r.talk(0, 10, 30_000)
	for i := range r.ends {
		r.path(i, func(p *simnet.Params) { p.Loss = 1 })
	}
	want = append(want, r.send(0, 30_000)...)
	r.run(6 * time.Second)
	for i := range r.ends {
		r.path(i, func(p *simnet.Params) { p.Loss = 0 })
	}
	r.run(40 * time.Second)
	r.wantMTU("after an outage", 0, 9000)
	if !bytes.Equal(r.ends[1].received.Bytes(), want) || a.State() != assoc.Established {
		t.Errorf("%d octets of %d arrived", r.ends[1].received.Len(), len(want))
	}
}

// Losses at random leave probes and data alike; the size that is found in the end is still the path's.
func TestSearchUnderLoss(t *testing.T) {
	for seed := range int64(20) {
		r := newRoad(t, roadIPv4, 9000, simnet.Params{MTU: 1500})
		rnd := rand.New(rand.NewSource(seed))
		for i := range r.ends {
			r.path(i, func(p *simnet.Params) { p.Loss = 0.2 * rnd.Float64() })
		}
		a, _ := r.join(quiet, quiet)
		var want []byte
		for range 5 {
			want = append(want, r.send(0, 20_000)...)
			r.run(time.Minute)
		}
		r.run(40 * time.Minute)
		if got := a.PathStats(0).MTU; got > 1480 || got < 1200 {
			t.Errorf("seed %d: path MTU %d", seed, got)
		}
		if !bytes.Equal(r.ends[1].received.Bytes(), want) {
			t.Errorf("seed %d: %d octets of %d arrived", seed, r.ends[1].received.Len(), len(want))
		}
	}
}

// A peer restart begins the search anew.
func TestRestartBeginsTheSearchAnew(t *testing.T) {
	r := newRoad(t, roadIPv4, 1500, simnet.Params{})
	r.join(quiet, quiet)
	r.run(time.Second)
	e := r.ends[0]
	e.ep.Remove(e.assocs[0])
	e.assocs = nil
	n := len(r.probes(1))
	a, err := e.ep.Connect(r.now, quiet, portA, e.addr, []netip.AddrPort{r.ends[1].addr}, portB)
	if err != nil {
		t.Fatal(err)
	}
	e.adopt(a)
	r.run(time.Second)
	if _, ok := r.ends[1].event(assoc.EventRestart); !ok {
		t.Fatal("no restart")
	}
	if m := len(r.probes(1)); m != n+2 {
		t.Errorf("%d probes", m-n)
	}
	r.wantMTU("there", 0, 1500)
	r.wantMTU("and back", 1, 1500)
}

// Each destination has a search of its own, which starts when it is confirmed.
func TestEachDestinationHasItsSearch(t *testing.T) {
	// req 9260-7.3-1
	// req 8899-5.2-1
	l := bareLab(t)
	l.h.ep = newSearchingEndpoint()
	l.listen(quiet)
	second := netip.MustParseAddrPort("10.0.1.1:0")
	l.initiate(wire.AppendAddressParam(nil, second.Addr()))
	sizes := func(out []wire.Packet, to *[]int) {
		for _, p := range out {
			if has(p, wire.ChunkPad) {
				*to = append(*to, len(p))
			}
		}
	}
	var first, other []int
	out := l.send(l.tag, wire.AppendCookieEcho(nil, l.cookie))
	sizes(out, &first)
	if fmt.Sprint(first) != "[1200]" { // the unconfirmed one is not searched yet, req 8899-6.2.1-1
		t.Fatalf("probes %v", first)
	}
	answer := func(out []wire.Packet, from netip.AddrPort, pad bool) []wire.Packet {
		for _, p := range out {
			if c := chunkOf(p, wire.ChunkHeartbeat); c != nil && has(p, wire.ChunkPad) == pad {
				return l.sendFrom(from, l.tag, wire.AppendChunk(nil, wire.ChunkHeartbeatAck, 0, c.Value()))
			}
		}
		return nil
	}
	all := append(out, l.wait(0)...)
	sizes(answer(all, second, false), &other) // confirms the second address
	if fmt.Sprint(other) != "[1200]" {
		t.Errorf("probes %v", other)
	}
	sizes(answer(out, l.peer, true), &first)
	if fmt.Sprint(first) != "[1200 1452]" {
		t.Errorf("probes %v", first)
	}
	if a, b := l.a.PathStats(0).MTU, l.a.PathStats(1).MTU; a != 1200 || b != 1200 {
		t.Errorf("path MTUs %d and %d", a, b)
	}
}

// A cookie that is longer than the base size is sent in fragments, and so is nothing else.
func TestLongCookieIsFragmented(t *testing.T) {
	l := bareLab(t)
	l.h.ep = newSearchingEndpoint()
	a, err := l.h.ep.Connect(l.now, quiet, portB, l.h.addr, []netip.AddrPort{l.peer}, portA)
	if err != nil {
		t.Fatal(err)
	}
	l.h.adopt(a)
	l.a = a
	out := l.flush()
	init, err := wire.AsInit(chunkOf(out[0], wire.ChunkInit))
	if err != nil {
		t.Fatal(err)
	}
	l.tag = init.Tag()
	l.deliver(l.peer, packet(portA, portB, l.tag, initAckChunk(l.peerTag, l.tsn, make([]byte, 1300))))
	a.PollTransmit(l.now, l.h.batch)
	if p := l.h.batch.Pkts; len(p) != 1 || p[0].Len() != 12+4+1300 || p[0].Fragment != 1220 {
		t.Errorf("%d packets, the first of %d octets, to be fragmented to %d", len(p), p[0].Len(), p[0].Fragment)
	}
}

// Without the feature, or where the system fragments on its own, the link's MTU is the path's.
func TestWithoutDontFragmentTheMTUIsFixed(t *testing.T) {
	// req 6951-5.6-4
	w, a, b := pair(t, nil, nil)
	w.run(time.Minute)
	for _, x := range []*assoc.Assoc{a, b} {
		if s := x.Stats(); s.MTUProbesOut != 0 || x.PathStats(0).MTU != testMTU {
			t.Errorf("path MTU %d, %d probes", x.PathStats(0).MTU, s.MTUProbesOut)
		}
	}
}

// A probe that comes when the peer has ended the association is answered by ABORT. The shutdown was
// graceful all the same.
func TestLateProbeDoesNotSpoilTheShutdown(t *testing.T) {
	r := newRoad(t, roadIPv4, 1500, simnet.Params{})
	a, b := r.join(quiet, quiet)
	r.run(time.Second)
	if err := a.Shutdown(r.now); err != nil {
		t.Fatal(err)
	}
	r.until(r.now.Add(time.Second), func() bool { return b.State() == assoc.ShutdownAckSent })
	pkt := wire.AppendAbort(nil, true)
	for _, row := range []struct {
		name string
		tag  uint32
		ends bool
	}{
		{"a tag that is not ours", b.PeerTag() ^ 1, false},
		{"the tag of what we have sent", b.PeerTag(), true},
	} {
		r.ends[1].receive(r.now, &rawio.Packet{Data: packet(portA, portB, row.tag, pkt), Local: r.ends[1].addr, Remote: r.ends[0].addr})
		if got := b.State() == assoc.Closed; got != row.ends {
			t.Fatalf("%s: ended %v", row.name, got)
		}
	}
	r.flush()
	if err, ok := r.ends[1].downErr(); !ok || err != assoc.ErrShutdown {
		t.Errorf("ended by %v", err)
	}
}

// The path is down when its MTU falls, and what is outstanding is too long for it: reports count then too, and without them
// T3-rtx finds the black hole. Else nothing would ever arrive, not even a HEARTBEAT, as none is sent while T3-rtx runs.
func TestMTUFallsDuringAnOutage(t *testing.T) {
	for name, quote := range map[string]int{"reported": 64, "a black hole": 0} {
		t.Run(name, func(t *testing.T) {
			r := newRoad(t, roadIPv4, 1500, simnet.Params{})
			a, _ := r.join(&assoc.Config{HeartbeatInterval: -1, PathMaxRetrans: 1}, quiet)
			want := r.talk(0, 10, 5000)
			for i := range r.ends {
				r.path(i, func(p *simnet.Params) { p.Loss = 1 })
			}
			want = append(want, r.send(0, 5000)...)
			if !r.until(r.now.Add(time.Minute), func() bool { return a.PathStats(0).State == assoc.PathInactive }) {
				t.Fatal("the path is up")
			}
			for i := range r.ends {
				r.path(i, func(p *simnet.Params) { p.Loss, p.MTU, p.Quote = 0, 576, quote })
			}
			r.run(2 * time.Minute)
			r.wantMTU("after an outage", 0, 576)
			if !bytes.Equal(r.ends[1].received.Bytes(), want) || a.State() != assoc.Established {
				t.Errorf("%v: %d octets of %d arrived", a.State(), r.ends[1].received.Len(), len(want))
			}
		})
	}
}
