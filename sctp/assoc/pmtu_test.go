package assoc_test

import (
	"bytes"
	"fmt"
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

// quiet has no heartbeats, so that every HEARTBEAT is a probe.
var quiet = &assoc.Config{HeartbeatInterval: -1}

func TestPathMTUIsFound(t *testing.T) {
	// req 8899-3-1, 8899-3-2, 8899-3-3, 8899-3-5: the road looks at each packet that it takes.
	for _, row := range []struct {
		name             string
		addrs            [2]netip.AddrPort
		link, mtu, quote int
		want             int
		within           time.Duration // of the setup
	}{
		// req 8899-6.2.1-1: the search begins with the association, and one that everything passes
		// takes a round trip for the base size and one for the largest, or one alone where that is
		// Ethernet's.
		{"loopback", sctptest.IPv4, 65535, 0, 0, 65532, 2 * sctptest.RoundTrip},
		{"Ethernet", sctptest.IPv4, 1500, 0, 0, 1500, sctptest.RoundTrip},
		{"Ethernet, IPv6", sctptest.IPv6, 1500, 0, 0, 1500, sctptest.RoundTrip},
		{"Ethernet, UDP", sctptest.UDP, 1500, 0, 0, 1500, sctptest.RoundTrip},
		{"the least IPv4 link", sctptest.IPv4, 576, 0, 0, 576, sctptest.RoundTrip},
		{"the least IPv6 link", sctptest.IPv6, 1280, 0, 0, 1280, sctptest.RoundTrip},
		// req 8899-6.2.1-5
		{"jumbo frames, then Ethernet, reported", sctptest.IPv4, 9000, 1500, 64, 1500, 3 * sctptest.RoundTrip},
		{"jumbo frames, then a tunnel in UDP, reported", sctptest.UDP, 9000, 1400, 64, 1400, 3 * sctptest.RoundTrip},
		// req 6951-5.5-2, 6951-5.6-3
		{"jumbo frames, then Ethernet, a black hole", sctptest.IPv4, 9000, 1500, 0, 1500, 2 * time.Second},
		{"jumbo frames in UDP, then Ethernet, a black hole", sctptest.UDP, 9000, 1500, 0, 1500, 2 * time.Second},
		{"less than the base size, reported", sctptest.IPv4, 1500, 1000, 64, 576, time.Second},
		{"less than the base size, a black hole", sctptest.IPv4, 1500, 1000, 0, 576, 4 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := sctptest.NewMTUPair(t, row.addrs, row.link, simnet.Params{MTU: row.mtu, Quote: row.quote})
			r.Join(quiet, quiet)
			r.Run(row.within)
			for i := range r.Hosts {
				r.WantMTU("after the search", i, row.want)
			}
			n := len(r.Probes(0))
			r.Run(8 * time.Minute)
			m := len(r.Probes(0))
			check.That(t, row.want < 1280 || m <= n+4, "%d probes, %d more in 8 minutes", n, m-n)
			data := r.Send(0, 100_000)
			r.Run(30 * time.Second)
			check.Slice(t, "octets that arrived", r.Hosts[1].Received.Bytes(), data)
		})
	}
}

func TestBaseSizeDependsOnTheHeaders(t *testing.T) {
	for _, row := range []struct {
		name  string
		addrs [2]netip.AddrPort
		want  int // SCTP packet
	}{
		{"IPv4", sctptest.IPv4, 1200},        // req 8899-5.1.2-2
		{"IPv4 and UDP", sctptest.UDP, 1192}, // req 8899-6.2.2-1
		{"IPv6", sctptest.IPv6, 1240},        // req 8899-5.1.2-3: 1280 with its header
		{"IPv6 and UDP", [2]netip.AddrPort{netip.MustParseAddrPort("[2001:db8::1]:9899"), netip.MustParseAddrPort("[2001:db8::2]:9899")}, 1232},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := sctptest.NewMTUPair(t, row.addrs, 9000, simnet.Params{})
			a, _ := r.Join(nil, nil)
			check.Equal(t, "MTU before the first answer", a.PathStats(0).MaxPacket, row.want)
			r.Run(0)
			p := r.Probes(0)
			must.That(t, len(p) == 1 && len(p[0].Pkt) == row.want, "%d probes", len(p))
		})
	}
}

func TestProbeIsHeartbeatAndPad(t *testing.T) {
	r := sctptest.NewMTUPair(t, sctptest.UDP, 9000, simnet.Params{})
	r.Join(quiet, quiet)
	r.Run(time.Second)
	list := r.Probes(0) // req 8899-6.2-1, 8899-3-4

	// req 8899-4.1-2, 8899-6.2.2-1
	must.That(t, len(list) == 2 && len(list[0].Pkt) == 1192 && len(list[1].Pkt) == 8972, "%d probes", len(list))
	infos := make(map[string]bool)
	for _, c := range list {
		check.That(t, c.Pkt.ChecksumOK(), "wrong checksum") // req 6951-5.3-3
		h := must.Get(wire.AsHeartbeat(sctptest.ChunkOf(c.Pkt, wire.ChunkHeartbeat)))(t)
		infos[string(h.Info())] = true
		pad := sctptest.ChunkOf(c.Pkt, wire.ChunkPad)
		want := len(c.Pkt) - wire.CommonHeaderLen - (8 + len(h.Info()))
		// req 8899-6.2.1-2
		check.That(t, len(pad) == want && pad.Flags() == 0, "PAD of %d octets, want %d", len(pad), want)
	}
	check.That(t, len(infos) == 2, "the probes cannot be told apart") // req 8899-4.1-1
	s := r.Hosts[0].Assocs[0].Stats()
	check.That(t, s.MTUProbesOut == 2 && s.MTUProbesAcked == 2, "statistics %+v", s)
}

func TestMTUSettings(t *testing.T) {
	for _, row := range []struct {
		name          string
		cfg           assoc.Config
		want, payload int
		probes        int
	}{
		{"searched for", assoc.Config{}, 9000, 9000 - 20 - 12 - 16 - 16, 2},
		{"limited by the user", assoc.Config{MTU: 1400}, 1400, 1400 - 20 - 12 - 16 - 16, 1},       // req 8899-5.1.2-4
		{"not searched for", assoc.Config{DisablePMTUD: true}, 9000, 9000 - 20 - 12 - 16 - 16, 0}, // req 8899-5-1
		{"not searched for, limited", assoc.Config{DisablePMTUD: true, MTU: 1500}, 1500, 1500 - 20 - 12 - 16 - 16, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := sctptest.NewMTUPair(t, sctptest.IPv4, 9000, simnet.Params{})
			cfg := row.cfg
			cfg.HeartbeatInterval = -1
			a, _ := r.Join(&cfg, quiet)
			r.Run(time.Second)
			r.WantMTU("settled", 0, row.want)
			check.That(t, a.MaxPayload() == row.payload && len(r.Probes(0)) == row.probes, "MaxPayload %d, %d probes",
				a.MaxPayload(), len(r.Probes(0)))
		})
	}
}

func TestUserHearsOfTheMTU(t *testing.T) {
	r := sctptest.NewMTUPair(t, sctptest.IPv4, 9000, simnet.Params{})
	a, _ := r.Join(quiet, quiet)
	var sizes []int // req 8899-3-13
	r.Hosts[0].OnEvent = func(a *assoc.Assoc, e assoc.Event) {
		if e.Kind == assoc.EventMTUChanged && e.Path == r.Hosts[1].Addr {
			sizes = append(sizes, a.MaxPayload())
		}
	}
	r.Run(time.Second)
	r.SetMTU(1280, 64)
	r.Send(0, 8000)
	r.Run(time.Second)
	got := fmt.Sprint(sizes)
	check.That(t, got == "[8936 1156 1216]" && a.MaxPayload() == 1216, "MaxPayload %s", got)
}

func TestLostProbesAreNeitherCongestionNorErrors(t *testing.T) {
	r := sctptest.NewMTUPair(t, sctptest.IPv4, 9000, simnet.Params{MTU: 1500})
	cfg := &assoc.Config{HeartbeatInterval: -1, PathMaxRetrans: 1, AssocMaxRetrans: 1}
	a, _ := r.Join(cfg, quiet)
	r.Send(0, 1000)
	r.Run(3 * sctptest.RoundTrip)
	before := a.PathStats(0)
	r.Run(time.Minute)
	p := a.PathStats(0)
	// req 8899-3-10, 8899-6.2.1-3
	s := a.Stats()
	check.That(t, s.MTUProbesOut-s.MTUProbesAcked >= 3 && p.Errors == 0 && p.State == assoc.PathActive &&
		s.Retransmits == 0 && s.Timeouts == 0, "path %+v, %+v", p, s)
	check.That(t, p.Cwnd == before.Cwnd && p.Ssthresh == before.Ssthresh && p.RTO == before.RTO,
		// req 8899-3-11: nor did raising the size
		"cwnd %d, ssthresh %d, RTO %v, before %+v", p.Cwnd, p.Ssthresh, p.RTO, before)
}

func TestProbesPassClosedWindows(t *testing.T) {
	r := sctptest.NewMTUPair(t, sctptest.IPv4, 9000, simnet.Params{})
	_, b := r.Join(quiet, &assoc.Config{HeartbeatInterval: -1, RecvBuffer: 1500})
	// The receiver's buffer is full, and cwnd used up, before the first probe is answered.
	b.SetUpper(nil, nil)
	r.Send(0, 20_000)
	r.Run(2 * sctptest.RoundTrip)
	r.WantMTU("with data waiting", 0, 9000) // req 8899-3-12
}

func TestProbeAnswersAnErrorCounter(t *testing.T) {
	// The HEARTBEAT ACK of a probe clears the counters that HEARTBEATs raise: req 8899-6.2.1-3.
	r := sctptest.NewMTUPair(t, sctptest.IPv4, 1500, simnet.Params{})
	a, _ := r.Join(&assoc.Config{HeartbeatInterval: time.Second, PotentiallyFailedMaxRetrans: 4}, quiet)
	r.Run(time.Second)
	r.Path(0, func(p *simnet.Params) { p.Loss = 1 })
	r.RunUntil(r.Now.Add(time.Minute), func() bool { return a.PathStats(0).Errors >= 2 })
	r.Path(0, func(p *simnet.Params) { p.Loss = 0 })
	acked := a.Stats().MTUProbesAcked
	r.Hosts[0].Link = 9000
	must.That(t, a.PathStats(0).Errors >= 2, "no errors")
	r.Path(1, func(p *simnet.Params) { p.Loss = 0 })
	r.RunUntil(r.Now.Add(20*time.Minute), func() bool { return a.Stats().MTUProbesAcked > acked })
	check.Equal(t, "errors", a.PathStats(0).Errors, 0)
}

func TestSearchFollowsThePathsState(t *testing.T) {
	r := sctptest.NewMTUPair(t, sctptest.IPv4, 9000, simnet.Params{})
	cfg := &assoc.Config{HeartbeatInterval: time.Second, PathMaxRetrans: 1, AssocMaxRetrans: 1000}
	a, _ := r.Join(cfg, quiet)
	r.Run(time.Second)
	r.WantMTU("up", 0, 9000)
	r.Path(0, func(p *simnet.Params) { p.Loss = 1 })
	r.RunUntil(r.Now.Add(time.Minute), func() bool { return a.PathStats(0).State == assoc.PathInactive })
	n := len(r.Probes(0))
	r.SetMTU(1500, 0)
	r.Run(time.Hour) // req 8899-5.2-5: DISABLED while there is no connectivity
	check.Equal(t, "probes, none of a path that is down", len(r.Probes(0)), n)
	r.Path(0, func(p *simnet.Params) { p.Loss = 0 })
	r.RunUntil(r.Now.Add(10*time.Minute), func() bool { return a.PathStats(0).State == assoc.PathActive })
	r.Run(sctptest.RoundTrip / 2)
	got := len(r.Probes(0)[n].Pkt)
	check.That(t, got == 1200, "the first probe has %d octets", got) // req 8899-6.2.1-1: BASE again
	r.Run(10 * time.Second)
	r.WantMTU("up again", 0, 1500)
}

func TestAnswersToOtherProbesAreIgnored(t *testing.T) {
	// req 8899-3-14
	r := sctptest.NewMTUPair(t, sctptest.IPv4, 9000,
		simnet.Params{Duplicate: 1, Jitter: 5 * time.Millisecond, Reorder: 0.5, ReorderDelay: 3 * time.Second})
	a, _ := r.Join(quiet, quiet)
	for range 30 {
		r.Run(time.Second)
		s := a.PathStats(0)
		must.That(t, s.MaxPacket <= 8980 && s.MaxPacket >= 556, "path MTU %d", s.MaxPacket)
	}
	s := a.Stats()
	check.That(t, s.MTUProbesAcked <= s.MTUProbesOut && s.MTUProbesAcked != 0, "%d probes, %d answers",
		s.MTUProbesOut, s.MTUProbesAcked)
	// An answer that gives a size for itself, and one to the probe before.
	for _, row := range []struct {
		name   string
		change func(info []byte)
	}{
		{"another nonce", func(info []byte) { info[0] ^= 1 }},
		{"another size", func(info []byte) { info[9] ^= 1 }},
	} {
		r := sctptest.NewMTUPair(t, sctptest.IPv4, 1500, simnet.Params{})
		a, _ := r.Join(quiet, quiet)
		r.Run(0)
		h, _ := wire.AsHeartbeat(sctptest.ChunkOf(r.Probes(0)[0].Pkt, wire.ChunkHeartbeat))
		info := bytes.Clone(h.Info())
		row.change(info)
		pkt := sctptest.Packet(sctptest.PortB, sctptest.PortA, a.LocalTag(), wire.AppendHeartbeatAck(nil, info))
		a.HandlePacket(r.Now, &rawio.Packet{Data: pkt, Local: r.Hosts[0].Addr, Remote: r.Hosts[1].Addr})
		check.Equal(t, row.name+": probes acknowledged", a.Stats().MTUProbesAcked, 0)
	}
}

// Where an answer takes longer than PROBE_TIMER at first, it counts all the same.
func TestSearchOnALongPath(t *testing.T) {
	// req 8899-3-14
	r := sctptest.NewMTUPair(t, sctptest.IPv4, 1500, simnet.Params{})
	for i := range r.Hosts {
		r.Path(i, func(p *simnet.Params) { p.Delay = 1200 * time.Millisecond })
	}
	r.Join(quiet, quiet)
	r.Run(10 * time.Second)
	for i := range r.Hosts {
		r.WantMTU("found", i, 1500)
		n := len(r.Probes(i))
		check.That(t, n <= 5, "%d probes", n)
	}
}

func TestReportsAreValidated(t *testing.T) {
	// req 8899-4.6.1-2, 8899-4.6.1-3, 8899-4.6.1-4, 8899-6.2.1-4, 6951-5.5-1
	for _, row := range []struct {
		name    string
		mtu     int
		from    string // where the quoted packet was sent to
		quote   func(tag uint32) []byte
		counted bool
	}{
		{"our packet: taken", 1300, "10.0.0.2:0", func(tag uint32) []byte { return sctptest.Packet(sctptest.PortA, sctptest.PortB, tag)[:8] }, true},
		{"another tag", 1300, "10.0.0.2:0", func(tag uint32) []byte { return sctptest.Packet(sctptest.PortA, sctptest.PortB, tag^1) }, false},
		{"7 octets", 1300, "10.0.0.2:0", func(tag uint32) []byte { return sctptest.Packet(sctptest.PortA, sctptest.PortB, tag)[:7] }, false},
		{"another source port", 1300, "10.0.0.2:0", func(tag uint32) []byte { return sctptest.Packet(sctptest.PortA+1, sctptest.PortB, tag) }, false},
		{"another destination port", 1300, "10.0.0.2:0", func(tag uint32) []byte { return sctptest.Packet(sctptest.PortA, sctptest.PortB+1, tag) }, false},
		{"sent to another address", 1300, "10.0.0.3:0", func(tag uint32) []byte { return sctptest.Packet(sctptest.PortA, sctptest.PortB, tag) }, false},
		{"an absurd size", 68, "10.0.0.2:0", func(tag uint32) []byte { return sctptest.Packet(sctptest.PortA, sctptest.PortB, tag) }, false},
		// req 8899-3-7
		{"a larger size", 9000, "10.0.0.2:0",
			func(tag uint32) []byte { return sctptest.Packet(sctptest.PortA, sctptest.PortB, tag) }, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := sctptest.NewMTUPair(t, sctptest.IPv4, 1500, simnet.Params{})
			a, _ := r.Join(quiet, quiet)
			r.Run(time.Second)
			n := len(r.Probes(0))
			p := rawio.Packet{Kind: rawio.KindPacketTooBig, MTU: row.mtu, Data: row.quote(a.PeerTag()),
				Local: r.Hosts[0].Addr, Remote: netip.MustParseAddrPort(row.from)}
			r.Hosts[0].Receive(r.Now, &p)
			want := 1500
			if row.counted {
				want = 1220 // req 8899-4.6.2-1, 8899-4.6.2-3: not what the report says
			}
			r.WantMTU("reported", 0, want)
			r.Run(time.Second)
			var sizes []int
			for _, c := range r.Probes(0)[n:] {
				sizes = append(sizes, len(c.Pkt)+20)
			}
			check.That(t, (!row.counted || fmt.Sprint(sizes) == "[1220 1300]") && (row.counted || len(sizes) == 0),
				"probes %v", sizes)
		})
	}
}

// Answers to what was asked before a shutdown began are answers: a peer does nothing wrong by them.
func TestAnswersThatMeetAShutdownAreNoFault(t *testing.T) {
	r := sctptest.NewMTUPair(t, sctptest.IPv4, 9000, simnet.Params{})
	a, _ := r.Join(nil, nil)
	for a.Stats().MTUProbesOut < 2 {
		r.Run(time.Millisecond)
	}
	before, mtu := a.Stats().Counters, a.PathStats(0).MaxPacket
	must.OK(t, a.RequestHeartbeat(r.Now, a.PeerAddr().Addr()))
	r.Run(time.Millisecond)
	err := a.Shutdown(r.Now)
	must.That(t, err == nil && a.State() == assoc.ShutdownSent, "%v in %v", err, a.State())
	r.Run(time.Second)
	s := a.Stats().Counters
	check.That(t, a.State() == assoc.Closed && s.BadHeartbeatAcks == 0 && a.PathStats(0).MaxPacket == mtu &&
		s.MTUProbesAcked == before.MTUProbesOut && s.HeartbeatAcksIn == before.HeartbeatAcksIn+1,
		"in %v: %d bad answers, %d to %d probes, %d to HEARTBEATs", a.State(), s.BadHeartbeatAcks, s.MTUProbesAcked,
		before.MTUProbesOut, s.HeartbeatAcksIn)
}

// Over a path whose round trip is longer than the least PROBE_TIMER no probe is given up before its
// answer can be there.
func TestProbesOfALongRoundTrip(t *testing.T) {
	r := sctptest.NewMTUPair(t, sctptest.IPv4, 1500, simnet.Params{})
	slow := simnet.Params{Delay: 700 * time.Millisecond}
	r.Net.SetLink(sctptest.IPv4[0].Addr(), sctptest.IPv4[1].Addr(), slow)
	r.Net.SetLink(sctptest.IPv4[1].Addr(), sctptest.IPv4[0].Addr(), slow)
	a, _ := r.Join(quiet, quiet)
	r.Talk(0, 3, 100)
	r.Run(time.Minute)
	s := a.Stats()
	check.That(t, s.MTUProbesOut == 1 && s.MTUProbesAcked == 1 && a.PathStats(0).MaxPacket == 1480,
		"%d probes, %d answered, path MTU %d", s.MTUProbesOut, s.MTUProbesAcked, a.PathStats(0).MaxPacket)
}
