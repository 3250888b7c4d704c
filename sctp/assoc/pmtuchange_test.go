package assoc_test

import (
	"bytes"
	"fmt"
	"math/rand"
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

// The path's MaxPacket falls while data flows, and everything arrives: what was sent before in IP
// fragments, what comes after in smaller chunks.
func TestMTUFallsUnderTraffic(t *testing.T) {
	for _, row := range []struct {
		name   string
		addrs  [2]netip.AddrPort
		size   int // of a message
		to     int
		quote  int
		within time.Duration // until the MaxPacket is found
		want   int
	}{
		{"large messages, reported", sctptest.IPv4, 30_000, 1280, 64, time.Second, 1280},
		{"large messages, a black hole", sctptest.IPv4, 30_000, 1280, 0, 10 * time.Second, 1280}, // req 8899-4.3-1
		{"large messages, a black hole, IPv6", sctptest.IPv6, 30_000, 1280, 0, 10 * time.Second, 1280},
		{"large messages, a black hole, UDP", sctptest.UDP, 30_000, 1500, 0, 10 * time.Second, 1500},
		{"messages that share packets, a black hole", sctptest.IPv4, 900, 1280, 0, 20 * time.Second, 1280},
		{"below the base size, reported", sctptest.IPv4, 30_000, 800, 64, 10 * time.Second, 576},
		{"below the base size, a black hole", sctptest.IPv4, 30_000, 800, 0, 20 * time.Second, 576},
		{"below the base size, with chunks of less than that", sctptest.IPv4, 700, 576, 0, 20 * time.Second, 576},
		{"to the least IPv4 carries", sctptest.IPv4, 30_000, 576, 0, 20 * time.Second, 576},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := sctptest.NewMTUPair(t, row.addrs, 9000, simnet.Params{})
			cfg := &assoc.Config{HeartbeatInterval: -1, PathMaxRetrans: 5, SendBuffer: 1 << 22}
			a, _ := r.Join(cfg, quiet)
			want := r.Talk(0, 10, row.size)
			r.WantMTU("before", 0, 9000)
			// Let a window's worth be under way when it happens.
			for range 40 {
				want = append(want, r.Send(0, row.size)...)
			}
			r.Flush()
			n := len(r.Sent)
			r.SetMTU(row.to, row.quote)
			want = append(want, r.Talk(0, 20, row.size)...)
			r.Run(row.within)
			r.WantMTU("after", 0, row.want)
			want = append(want, r.Talk(0, 10, row.size)...)
			r.Run(time.Minute)
			must.Slice(t, "octets that arrived", r.Hosts[1].Received.Bytes(), want)
			fragments := 0
			for _, c := range r.Sent[n:] {
				if c.Fragment == 0 || c.From != 0 {
					continue
				}
				fragments++
				types := sctptest.ChunkTypes(c.Pkt)
				check.That(t, len(types) == 1 && types[0] == wire.ChunkData, "fragmented: %v", types) // req 8899-4.4-1
			}
			check.That(t, row.size <= 9000 || fragments != 0, "nothing had to be fragmented: the story is not told")
			_, down := r.Hosts[0].Event(assoc.EventPathDown)
			check.That(t, !down && a.State() == assoc.Established, "the path went down")
			r.SetMTU(9000, 0)
			r.Run(20 * time.Minute) // PMTU_RAISE_TIMER, req 8899-5.2-5
			r.WantMTU("when it has grown again", 0, 9000)
			r.Hosts[1].Received.Reset()
			want = r.Talk(0, 10, row.size)
			r.Run(time.Minute)
			check.Slice(t, "octets that arrived afterwards", r.Hosts[1].Received.Bytes(), want)
		})
	}
}

func TestEachDirectionHasItsMTU(t *testing.T) {
	r := sctptest.NewMTUPair(t, sctptest.IPv4, 9000, simnet.Params{})
	r.Path(1, func(p *simnet.Params) { p.MTU = 1500 })
	r.Join(quiet, quiet)
	r.Run(10 * time.Second)
	r.WantMTU("there", 0, 9000)
	r.WantMTU("and back", 1, 1500)
	want := [2][]byte{r.Send(0, 200_000), r.Send(1, 100_000)}
	r.Run(time.Minute)
	for i := range r.Hosts {
		check.Slice(t, "octets that arrived", r.Hosts[1-i].Received.Bytes(), want[i])
	}
}

// The link's own MaxPacket is read anew: an interface may change.
func TestInterfaceChangesItsMTU(t *testing.T) {
	r := sctptest.NewMTUPair(t, sctptest.IPv4, 1500, simnet.Params{})
	r.Join(quiet, quiet)
	r.Run(time.Second)
	r.Hosts[0].Link = 9000
	r.Run(11 * time.Minute)
	r.WantMTU("grown", 0, 9000)
	// It falls under traffic: nothing that the link refuses is lost, and nothing waits for a timer.
	want := r.Talk(0, 20, 30_000)
	want = append(want, r.Send(0, 300_000)...)
	r.Flush()
	a, begun := r.Hosts[0].Assocs[0], r.Now
	before := a.Stats()
	r.Hosts[0].Link = 1400
	r.SetMTU(1400, 0)
	r.Run(25 * time.Millisecond) // a round trip is 20, over which packets are spread
	r.WantMTU("shrunken", 0, 1400)
	check.That(t, r.RunUntil(r.Now.Add(time.Minute), func() bool { return r.Hosts[1].Received.Len() == len(want) }) &&
		bytes.Equal(r.Hosts[1].Received.Bytes(), want), "%d octets of %d arrived", r.Hosts[1].Received.Len(), len(want))
	s := a.Stats()
	d := r.Now.Sub(begun)
	check.That(t, d <= 300*time.Millisecond && s.PacketsRefused != 0 && s.Timeouts == before.Timeouts &&
		s.FastRetransmits == before.FastRetransmits,
		"%v, %d packets refused, %d timeouts, %d fast retransmits", d, s.PacketsRefused, s.Timeouts-before.Timeouts,
		s.FastRetransmits-before.FastRetransmits)
	// Below the base size, and below what any path carries, it comes to an end too.
	for _, link := range []int{900, 400} {
		r.Hosts[0].Link = link
		r.Talk(0, 10, 3_000)
	}
	check.Equal(t, "state", a.State(), assoc.Established)
	// What would be refused again, is none of its own, or comes too late, is not sent again.
	s, mtu := a.Stats(), a.PathStats(0).MaxPacket
	for _, row := range []struct {
		name   string
		octets int
		remote netip.AddrPort
		ends   bool
	}{
		{"no longer than the path's MTU", 200, r.Hosts[1].Addr, false},
		{"to an address that is not the peer's", 9000, netip.MustParseAddrPort("10.9.9.9:0"), false},
		{"of an association that has ended", 9000, r.Hosts[1].Addr, true},
	} {
		if row.ends {
			a.Abort(r.Now, nil)
		}
		again := a.HandleTooLong(r.Now, &rawio.Packet{Vec: [][]byte{make([]byte, row.octets)}, Remote: row.remote})
		check.That(t, !again && a.Stats().PacketsRefused == s.PacketsRefused && a.PathStats(0).MaxPacket == mtu,
			"%s: sent again %v, %d refused, MTU %d", row.name, again, a.Stats().PacketsRefused-s.PacketsRefused,
			a.PathStats(0).MaxPacket)
	}
}

// Timeouts have other causes. Back at the base size, the search finds that nothing has changed.
func TestOutageIsNoBlackHole(t *testing.T) {
	r := sctptest.NewMTUPair(t, sctptest.IPv4, 9000, simnet.Params{})
	a, _ := r.Join(&assoc.Config{HeartbeatInterval: -1}, quiet)
	want := r.Talk(0, 10, 30_000)
	for i := range r.Hosts {
		r.Path(i, func(p *simnet.Params) { p.Loss = 1 })
	}
	want = append(want, r.Send(0, 30_000)...)
	r.Run(6 * time.Second)
	for i := range r.Hosts {
		r.Path(i, func(p *simnet.Params) { p.Loss = 0 })
	}
	r.Run(40 * time.Second)
	r.WantMTU("after an outage", 0, 9000)
	check.That(t, bytes.Equal(r.Hosts[1].Received.Bytes(), want) && a.State() == assoc.Established,
		"%d octets of %d arrived", r.Hosts[1].Received.Len(), len(want))
}

// Losses at random leave probes and data alike; the size that is found in the end is still the
// path's.
func TestSearchUnderLoss(t *testing.T) {
	for seed := range int64(20) {
		r := sctptest.NewMTUPair(t, sctptest.IPv4, 9000, simnet.Params{MTU: 1500})
		rnd := rand.New(rand.NewSource(seed))
		for i := range r.Hosts {
			r.Path(i, func(p *simnet.Params) { p.Loss = 0.2 * rnd.Float64() })
		}
		a, _ := r.Join(quiet, quiet)
		var want []byte
		for range 5 {
			want = append(want, r.Send(0, 20_000)...)
			r.Run(time.Minute)
		}
		r.Run(40 * time.Minute)
		got := a.PathStats(0).MaxPacket
		check.That(t, got <= 1480 && got >= 1200, "seed %d: path MTU %d", seed, got)
		check.That(t, bytes.Equal(r.Hosts[1].Received.Bytes(), want),
			"seed %d: %d octets of %d arrived", seed, r.Hosts[1].Received.Len(), len(want))
	}
}

// A peer restart begins the search anew.
func TestRestartBeginsTheSearchAnew(t *testing.T) {
	r := sctptest.NewMTUPair(t, sctptest.IPv4, 1500, simnet.Params{})
	r.Join(quiet, quiet)
	r.Run(time.Second)
	e := r.Hosts[0]
	e.Endpoint.Remove(r.Now, e.Assocs[0])
	e.Assocs = nil
	n := len(r.Probes(1))
	a := must.Get(e.Endpoint.Connect(r.Now, quiet, sctptest.PortA, e.Addr, []netip.AddrPort{r.Hosts[1].Addr},
		sctptest.PortB))(t)
	e.Adopt(a)
	r.Run(time.Second)
	_, ok := r.Hosts[1].Event(assoc.EventRestart)
	must.That(t, ok, "no restart")
	check.Equal(t, "probes", len(r.Probes(1)), n+1)
	r.WantMTU("there", 0, 1500)
	r.WantMTU("and back", 1, 1500)
}

// Each destination has a search of its own, which starts when it is confirmed.
func TestEachDestinationHasItsSearch(t *testing.T) {
	// req 9260-7.3-1
	// req 8899-5.2-1
	l := sctptest.NewLab(t)
	l.Host.Reboot(7, rawio.DontFragment)
	l.Listen(quiet)
	second := netip.MustParseAddrPort("10.0.1.1:0")
	l.Initiate(wire.AppendAddressParam(nil, second.Addr()))
	sizes := func(out []wire.Packet, to *[]int) {
		for _, p := range out {
			if sctptest.Has(p, wire.ChunkPad) {
				*to = append(*to, len(p))
			}
		}
	}
	var first, other []int
	out := l.Send(l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
	sizes(out, &first)
	// the unconfirmed one is not searched yet, req 8899-6.2.1-1
	must.That(t, fmt.Sprint(first) == "[1452]", "probes %v", first)
	answer := func(out []wire.Packet, from netip.AddrPort, pad bool) []wire.Packet {
		for _, p := range out {
			if c := sctptest.ChunkOf(p, wire.ChunkHeartbeat); c != nil && sctptest.Has(p, wire.ChunkPad) == pad {
				return l.SendFrom(from, l.Tag, wire.AppendChunk(nil, wire.ChunkHeartbeatAck, 0, c.Value()))
			}
		}
		return nil
	}
	all := append(out, l.Wait(0)...)
	sizes(answer(all, second, false), &other) // confirms the second address
	check.Equal(t, "other probes", fmt.Sprint(other), "[1452]")
	sizes(answer(out, l.Peer, true), &first)
	check.Equal(t, "first probes", fmt.Sprint(first), "[1452]")
	a, b := l.A.PathStats(0).MaxPacket, l.A.PathStats(1).MaxPacket
	check.That(t, a == 1452 && b == 1200, "path MTUs %d and %d", a, b)
}

// A cookie that is longer than the base size is sent in fragments, and so is nothing else.
func TestLongCookieIsFragmented(t *testing.T) {
	l := sctptest.NewLab(t)
	l.Host.Reboot(7, rawio.DontFragment)
	l.Connect(quiet)
	l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag,
		sctptest.InitAckChunk(l.PeerTag, l.TSN, make([]byte, 1300))))
	l.A.PollTransmit(l.Now, l.Host.Batch)
	p := l.Host.Batch.Pkts
	check.That(t, len(p) == 1 && p[0].Len() == 12+4+1300 && p[0].Fragment == 1220,
		"%d packets, the first of %d octets, to be fragmented to %d", len(p), p[0].Len(), p[0].Fragment)
}

// Without the feature, or where the system fragments on its own, the link's MaxPacket is the
// path's.
func TestWithoutDontFragmentTheMTUIsFixed(t *testing.T) {
	// req 6951-5.6-4
	w, a, b := sctptest.Pair(t, nil, nil)
	w.Run(time.Minute)
	for _, x := range []*assoc.Assoc{a, b} {
		s := x.Stats()
		check.That(t, s.MTUProbesOut == 0 && x.PathStats(0).MaxPacket == sctptest.MTU, "path MTU %d, %d probes",
			x.PathStats(0).MaxPacket, s.MTUProbesOut)
	}
}

// A probe that comes when the peer has ended the association is answered by ABORT. The shutdown was
// graceful all the same.
func TestLateProbeDoesNotSpoilTheShutdown(t *testing.T) {
	r := sctptest.NewMTUPair(t, sctptest.IPv4, 1500, simnet.Params{})
	a, b := r.Join(quiet, quiet)
	r.Run(time.Second)
	must.OK(t, a.Shutdown(r.Now))
	r.RunUntil(r.Now.Add(time.Second), func() bool { return b.State() == assoc.ShutdownAckSent })
	pkt := wire.AppendAbort(nil, true)
	for _, row := range []struct {
		name string
		tag  uint32
		ends bool
	}{
		{"a tag that is not ours", b.PeerTag() ^ 1, false},
		{"the tag of what we have sent", b.PeerTag(), true},
	} {
		r.Hosts[1].Receive(r.Now, &rawio.Packet{Data: sctptest.Packet(sctptest.PortA, sctptest.PortB, row.tag, pkt),
			Local: r.Hosts[1].Addr, Remote: r.Hosts[0].Addr})
		must.Equal(t, row.name+": ended", b.State() == assoc.Closed, row.ends)
	}
	r.Flush()
	err, ok := r.Hosts[1].DownErr()
	check.That(t, ok && err == assoc.ErrShutdown, "ended by %v", err)
}

// The path is down when its MaxPacket falls, and what is outstanding is too long for it: reports
// count then too, and without them T3-rtx finds the black hole. Else nothing would ever arrive, not
// even a HEARTBEAT, as none is sent while T3-rtx runs.
func TestMTUFallsDuringAnOutage(t *testing.T) {
	for name, quote := range map[string]int{"reported": 64, "a black hole": 0} {
		t.Run(name, func(t *testing.T) {
			r := sctptest.NewMTUPair(t, sctptest.IPv4, 1500, simnet.Params{})
			a, _ := r.Join(&assoc.Config{HeartbeatInterval: -1, PathMaxRetrans: 1}, quiet)
			want := r.Talk(0, 10, 5000)
			for i := range r.Hosts {
				r.Path(i, func(p *simnet.Params) { p.Loss = 1 })
			}
			want = append(want, r.Send(0, 5000)...)
			must.That(t, r.RunUntil(r.Now.Add(time.Minute), func() bool {
				return a.PathStats(0).State == assoc.PathInactive
			}),
				"the path is up")
			for i := range r.Hosts {
				r.Path(i, func(p *simnet.Params) { p.Loss, p.MTU, p.Quote = 0, 576, quote })
			}
			r.Run(2 * time.Minute)
			r.WantMTU("after an outage", 0, 576)
			check.That(t, bytes.Equal(r.Hosts[1].Received.Bytes(), want) && a.State() == assoc.Established,
				"%v: %d octets of %d arrived", a.State(), r.Hosts[1].Received.Len(), len(want))
		})
	}
}
