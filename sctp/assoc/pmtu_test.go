package assoc_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"
	"time"

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
		addrs            [2]string
		link, mtu, quote int
		want             int
		within           time.Duration // of the setup
	}{
		// req 8899-6.2.1-1: the search begins with the association, and one that everything passes takes
		// a round trip for the base size and one for the largest.
		{"loopback", roadIPv4, 65535, 0, 0, 65532, 2 * roundTrip},
		{"Ethernet", roadIPv4, 1500, 0, 0, 1500, 2 * roundTrip},
		{"Ethernet, IPv6", roadIPv6, 1500, 0, 0, 1500, 2 * roundTrip},
		{"Ethernet, UDP", roadUDP, 1500, 0, 0, 1500, 2 * roundTrip},
		{"the least IPv4 link", roadIPv4, 576, 0, 0, 576, roundTrip},
		{"the least IPv6 link", roadIPv6, 1280, 0, 0, 1280, roundTrip},
		{"jumbo frames, then Ethernet, reported", roadIPv4, 9000, 1500, 64, 1500, 3 * roundTrip}, // req 8899-6.2.1-5
		{"jumbo frames, then a tunnel in UDP, reported", roadUDP, 9000, 1400, 64, 1400, 3 * roundTrip},
		{"jumbo frames, then Ethernet, a black hole", roadIPv4, 9000, 1500, 0, 1500, 2 * time.Second}, // req 6951-5.5-2, 6951-5.6-3
		{"jumbo frames in UDP, then Ethernet, a black hole", roadUDP, 9000, 1500, 0, 1500, 2 * time.Second},
		{"less than the base size, reported", roadIPv4, 1500, 1000, 64, 576, time.Second},
		{"less than the base size, a black hole", roadIPv4, 1500, 1000, 0, 576, 4 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRoad(t, row.addrs, row.link, simnet.Params{MTU: row.mtu, Quote: row.quote})
			r.join(quiet, quiet)
			r.run(row.within)
			for i := range r.ends {
				r.wantMTU("after the search", i, row.want)
			}
			n := len(r.probes(0))
			r.run(8 * time.Minute)
			if m := len(r.probes(0)); row.want >= 1280 && m > n+4 {
				t.Errorf("%d probes, %d more in 8 minutes", n, m-n)
			}
			data := r.send(0, 100_000)
			r.run(30 * time.Second)
			if !bytes.Equal(r.ends[1].received.Bytes(), data) {
				t.Errorf("%d octets arrived", r.ends[1].received.Len())
			}
		})
	}
}

func TestBaseSizeDependsOnTheHeaders(t *testing.T) {
	for _, row := range []struct {
		name  string
		addrs [2]string
		want  int // SCTP packet
	}{
		{"IPv4", roadIPv4, 1200},        // req 8899-5.1.2-2
		{"IPv4 and UDP", roadUDP, 1192}, // req 8899-6.2.2-1
		{"IPv6", roadIPv6, 1240},        // req 8899-5.1.2-3: 1280 with its header
		{"IPv6 and UDP", [2]string{"[2001:db8::1]:9899", "[2001:db8::2]:9899"}, 1232},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRoad(t, row.addrs, 1500, simnet.Params{})
			a, _ := r.join(nil, nil)
			if got := a.PathStats(0).MTU; got != row.want {
				t.Errorf("%d octets before the first answer", got)
			}
			r.run(0)
			if p := r.probes(0); len(p) != 1 || len(p[0].pkt) != row.want {
				t.Fatalf("%d probes", len(p))
			}
		})
	}
}

func TestProbeIsHeartbeatAndPad(t *testing.T) {
	r := newRoad(t, roadUDP, 1500, simnet.Params{})
	r.join(quiet, quiet)
	r.run(time.Second)
	list := r.probes(0)                                                         // req 8899-6.2-1, 8899-3-4
	if len(list) != 2 || len(list[0].pkt) != 1192 || len(list[1].pkt) != 1472 { // req 8899-4.1-2, 8899-6.2.2-1
		t.Fatalf("%d probes", len(list))
	}
	infos := make(map[string]bool)
	for _, c := range list {
		if !c.pkt.ChecksumOK() { // req 6951-5.3-3
			t.Error("wrong checksum")
		}
		h, err := wire.AsHeartbeat(chunkOf(c.pkt, wire.ChunkHeartbeat))
		if err != nil {
			t.Fatal(err)
		}
		infos[string(h.Info())] = true
		pad := chunkOf(c.pkt, wire.ChunkPad)
		if want := len(c.pkt) - wire.CommonHeaderLen - (8 + len(h.Info())); len(pad) != want || pad.Flags() != 0 { // req 8899-6.2.1-2
			t.Errorf("PAD of %d octets, want %d", len(pad), want)
		}
	}
	if len(infos) != 2 { // req 8899-4.1-1
		t.Error("the probes cannot be told apart")
	}
	if s := r.ends[0].a.Stats(); s.MTUProbesOut != 2 || s.MTUProbesAcked != 2 {
		t.Errorf("statistics %+v", s)
	}
}

func TestMTUSettings(t *testing.T) {
	for _, row := range []struct {
		name          string
		cfg           assoc.Config
		want, payload int
		probes        int
	}{
		{"searched for", assoc.Config{}, 9000, 9000 - 20 - 12 - 16 - 16, 2},
		{"limited by the user", assoc.Config{MTU: 1400}, 1400, 1400 - 20 - 12 - 16 - 16, 2},       // req 8899-5.1.2-4
		{"not searched for", assoc.Config{DisablePMTUD: true}, 9000, 9000 - 20 - 12 - 16 - 16, 0}, // req 8899-5-1
		{"not searched for, limited", assoc.Config{DisablePMTUD: true, MTU: 1500}, 1500, 1500 - 20 - 12 - 16 - 16, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRoad(t, roadIPv4, 9000, simnet.Params{})
			cfg := row.cfg
			cfg.HeartbeatInterval = -1
			a, _ := r.join(&cfg, quiet)
			r.run(time.Second)
			r.wantMTU("settled", 0, row.want)
			if a.MaxPayload() != row.payload || len(r.probes(0)) != row.probes {
				t.Errorf("MaxPayload %d, %d probes", a.MaxPayload(), len(r.probes(0)))
			}
		})
	}
	if _, err := (&assoc.Config{MTU: 575}).Complete(); fmt.Sprint(err) != "sctp: Config.MTU must be 0 or at least 576 octets" {
		t.Error(err)
	}
}

func TestUserHearsOfTheMTU(t *testing.T) {
	r := newRoad(t, roadIPv4, 9000, simnet.Params{})
	a, _ := r.join(quiet, quiet)
	var sizes []int // req 8899-3-13
	r.ends[0].onEvent = func(a *assoc.Assoc, e assoc.Event) {
		if e.Kind == assoc.EventMTUChanged && e.Path == r.ends[1].addr {
			sizes = append(sizes, a.MaxPayload())
		}
	}
	r.run(time.Second)
	r.mtu(1280, 64)
	r.send(0, 8000)
	r.run(time.Second)
	if got := fmt.Sprint(sizes); got != "[8936 1156 1216]" || a.MaxPayload() != 1216 {
		t.Errorf("MaxPayload %s", got)
	}
}

func TestLostProbesAreNeitherCongestionNorErrors(t *testing.T) {
	r := newRoad(t, roadIPv4, 9000, simnet.Params{MTU: 1500})
	cfg := &assoc.Config{HeartbeatInterval: -1, PathMaxRetrans: 1, AssocMaxRetrans: 1}
	a, _ := r.join(cfg, quiet)
	r.run(roundTrip)
	before := a.PathStats(0)
	r.run(time.Minute)
	p := a.PathStats(0)
	// req 8899-3-10, 8899-6.2.1-3
	if s := a.Stats(); s.MTUProbesOut-s.MTUProbesAcked < 3 || p.Errors != 0 || p.State != assoc.PathActive || s.Retransmits != 0 || s.Timeouts != 0 {
		t.Errorf("path %+v, %+v", p, s)
	}
	if p.Cwnd != before.Cwnd || p.Ssthresh != before.Ssthresh || p.RTO != before.RTO { // req 8899-3-11: nor did raising the size
		t.Errorf("cwnd %d, ssthresh %d, RTO %v, before %+v", p.Cwnd, p.Ssthresh, p.RTO, before)
	}
}

func TestProbesPassClosedWindows(t *testing.T) {
	r := newRoad(t, roadIPv4, 9000, simnet.Params{})
	_, b := r.join(quiet, &assoc.Config{HeartbeatInterval: -1, RecvBuffer: 1500})
	// The receiver's buffer is full, and cwnd used up, before the first probe is answered.
	b.SetUpper(nil, nil)
	r.send(0, 20_000)
	r.run(2 * roundTrip)
	r.wantMTU("with data waiting", 0, 9000) // req 8899-3-12
}

func TestProbeAnswersAnErrorCounter(t *testing.T) {
	// The HEARTBEAT ACK of a probe clears the counters that HEARTBEATs raise: req 8899-6.2.1-3.
	r := newRoad(t, roadIPv4, 1500, simnet.Params{})
	a, _ := r.join(&assoc.Config{HeartbeatInterval: time.Second, PotentiallyFailedMaxRetrans: 4}, quiet)
	r.run(time.Second)
	r.path(0, func(p *simnet.Params) { p.Loss = 1 })
	r.until(r.now.Add(time.Minute), func() bool { return a.PathStats(0).Errors >= 2 })
	r.path(0, func(p *simnet.Params) { p.Loss = 0 })
	acked := a.Stats().MTUProbesAcked
	r.ends[0].link = 9000
	if a.PathStats(0).Errors < 2 {
		t.Fatal("no errors")
	}
	r.path(1, func(p *simnet.Params) { p.Loss = 0 })
	r.until(r.now.Add(20*time.Minute), func() bool { return a.Stats().MTUProbesAcked > acked })
	if e := a.PathStats(0).Errors; e != 0 {
		t.Errorf("%d errors", e)
	}
}

func TestSearchFollowsThePathsState(t *testing.T) {
	r := newRoad(t, roadIPv4, 9000, simnet.Params{})
	cfg := &assoc.Config{HeartbeatInterval: time.Second, PathMaxRetrans: 1, AssocMaxRetrans: 1000}
	a, _ := r.join(cfg, quiet)
	r.run(time.Second)
	r.wantMTU("up", 0, 9000)
	r.path(0, func(p *simnet.Params) { p.Loss = 1 })
	r.until(r.now.Add(time.Minute), func() bool { return a.PathStats(0).State == assoc.PathInactive })
	n := len(r.probes(0))
	r.mtu(1500, 0)
	r.run(time.Hour) // req 8899-5.2-5: DISABLED while there is no connectivity
	if m := len(r.probes(0)); m != n {
		t.Errorf("%d probes of a path that is down", m-n)
	}
	r.path(0, func(p *simnet.Params) { p.Loss = 0 })
	r.until(r.now.Add(10*time.Minute), func() bool { return a.PathStats(0).State == assoc.PathActive })
	r.run(roundTrip / 2)
	if got := len(r.probes(0)[n].pkt); got != 1200 { // req 8899-6.2.1-1: BASE again
		t.Errorf("the first probe has %d octets", got)
	}
	r.run(10 * time.Second)
	r.wantMTU("up again", 0, 1500)
}

func TestAnswersToOtherProbesAreIgnored(t *testing.T) {
	// req 8899-3-14
	r := newRoad(t, roadIPv4, 9000, simnet.Params{Duplicate: 1, Jitter: 5 * time.Millisecond, Reorder: 0.5, ReorderDelay: 3 * time.Second})
	a, _ := r.join(quiet, quiet)
	for range 30 {
		r.run(time.Second)
		if s := a.PathStats(0); s.MTU > 8980 || s.MTU < 556 {
			t.Fatalf("path MTU %d", s.MTU)
		}
	}
	if s := a.Stats(); s.MTUProbesAcked > s.MTUProbesOut || s.MTUProbesAcked == 0 {
		t.Errorf("%d probes, %d answers", s.MTUProbesOut, s.MTUProbesAcked)
	}
	// An answer that gives a size for itself, and one to the probe before.
	for _, row := range []struct {
		name   string
		change func(info []byte)
	}{
		{"another nonce", func(info []byte) { info[0] ^= 1 }},
		{"another size", func(info []byte) { info[9] ^= 1 }},
	} {
		r := newRoad(t, roadIPv4, 1500, simnet.Params{})
		a, _ := r.join(quiet, quiet)
		r.run(0)
		h, _ := wire.AsHeartbeat(chunkOf(r.probes(0)[0].pkt, wire.ChunkHeartbeat))
		info := bytes.Clone(h.Info())
		row.change(info)
		pkt := packet(portB, portA, a.LocalTag(), wire.AppendHeartbeatAck(nil, info))
		a.HandlePacket(r.now, &rawio.Packet{Data: pkt, Local: r.ends[0].addr, Remote: r.ends[1].addr})
		if s := a.Stats(); s.MTUProbesAcked != 0 {
			t.Errorf("%s: taken for the answer", row.name)
		}
	}
}

// Where an answer takes longer than PROBE_TIMER at first, it counts all the same.
func TestSearchOnALongPath(t *testing.T) {
	// req 8899-3-14
	r := newRoad(t, roadIPv4, 1500, simnet.Params{})
	for i := range r.ends {
		r.path(i, func(p *simnet.Params) { p.Delay = 1200 * time.Millisecond })
	}
	r.join(quiet, quiet)
	r.run(10 * time.Second)
	for i := range r.ends {
		r.wantMTU("found", i, 1500)
		if n := len(r.probes(i)); n > 5 {
			t.Errorf("%d probes", n)
		}
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
		{"our packet: taken", 1300, "10.0.0.2:0", func(tag uint32) []byte { return packet(portA, portB, tag)[:8] }, true},
		{"another tag", 1300, "10.0.0.2:0", func(tag uint32) []byte { return packet(portA, portB, tag^1) }, false},
		{"7 octets", 1300, "10.0.0.2:0", func(tag uint32) []byte { return packet(portA, portB, tag)[:7] }, false},
		{"another source port", 1300, "10.0.0.2:0", func(tag uint32) []byte { return packet(portA+1, portB, tag) }, false},
		{"another destination port", 1300, "10.0.0.2:0", func(tag uint32) []byte { return packet(portA, portB+1, tag) }, false},
		{"sent to another address", 1300, "10.0.0.3:0", func(tag uint32) []byte { return packet(portA, portB, tag) }, false},
		{"an absurd size", 68, "10.0.0.2:0", func(tag uint32) []byte { return packet(portA, portB, tag) }, false},
		{"a larger size", 9000, "10.0.0.2:0", func(tag uint32) []byte { return packet(portA, portB, tag) }, false}, // req 8899-3-7
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRoad(t, roadIPv4, 1500, simnet.Params{})
			a, _ := r.join(quiet, quiet)
			r.run(time.Second)
			n := len(r.probes(0))
			p := rawio.Packet{Kind: rawio.KindPacketTooBig, MTU: row.mtu, Data: row.quote(a.PeerTag()),
				Local: r.ends[0].addr, Remote: netip.MustParseAddrPort(row.from)}
			r.ends[0].receive(r.now, &p)
			want := 1500
			if row.counted {
				want = 1220 // req 8899-4.6.2-1, 8899-4.6.2-3: not what the report says
			}
			r.wantMTU("reported", 0, want)
			r.run(time.Second)
			var sizes []int
			for _, c := range r.probes(0)[n:] {
				sizes = append(sizes, len(c.pkt)+20)
			}
			if row.counted && fmt.Sprint(sizes) != "[1220 1300]" || !row.counted && len(sizes) > 0 {
				t.Errorf("probes %v", sizes)
			}
		})
	}
}
