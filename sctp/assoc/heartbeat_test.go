package assoc_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestIdlePathIsHeartbeaten(t *testing.T) {
	w, a, _ := sctptest.Pair(t, nil, &assoc.Config{HeartbeatInterval: -1})
	start, held := w.Now, a.Held()
	w.Run(5 * time.Minute)
	more := a.Held() - held
	check.That(t, more < 0, "an association holds %d octets more when it is idle", more)
	beats := w.Seen(0, wire.ChunkHeartbeat)
	n := len(beats)
	must.That(t, n >= 9 && n <= 10, "%d HEARTBEATs in 5 minutes", n) // req 9260-8.3-1: every 30.5 to 31.5 s
	last := start
	for i, b := range beats[1:] {
		d := b.At.Sub(beats[i].At)
		check.That(t, d >= 30500*time.Millisecond && d <= 31600*time.Millisecond, "interval %v", d) // req 9260-8.3-8
		last = b.At
	}
	check.Equal(t, "HEARTBEATs where they are disabled", len(w.Seen(1, wire.ChunkHeartbeat)), 0)
	acks := w.Seen(1, wire.ChunkHeartbeatAck)
	check.That(t, len(acks) == len(beats) && acks[len(acks)-1].At.Sub(last) == sctptest.Latency, "%d answers",
		len(acks))
	s := a.PathStats(0)
	// req 9260-8.3-7
	check.That(t, s.SRTT == sctptest.RoundTrip && s.Errors == 0, "SRTT %v, %d errors", s.SRTT, s.Errors)
}

// A HEARTBEAT of an idle path may go with those of other associations, a little earlier than was
// drawn: no earlier than HB.interval and half an RTO after the last, which is what jitter allows.
// Nothing else may be early.
func TestHeartbeatMayGoEarlier(t *testing.T) {
	const interval = 30 * time.Second
	w, a, _ := sctptest.Pair(t, nil, &assoc.Config{HeartbeatInterval: -1})
	w.Run(a.NextTimeout().Sub(w.Now))
	last := w.Now
	for range 50 {
		rto := a.PathStats(0).RTO
		w.Run(sctptest.RoundTrip)
		w.Sent = nil
		next := a.NextTimeout()
		slack := a.Slack(next)
		// req 9260-8.3-8
		check.That(t, slack == rto/2 && next.Sub(last) <= interval+rto*3/2+sctptest.RoundTrip &&
			next.Add(-slack).Sub(last) >= interval+rto/2, "due %v after the last, or %v earlier", next.Sub(last), slack)
		w.Run(next.Add(-slack - 1).Sub(w.Now))
		a.HandleTimeout(w.Now)
		w.Flush()
		check.Equal(t, "HEARTBEATs before that", len(w.Seen(0, wire.ChunkHeartbeat)), 0)
		w.Run(next.Add(-slack).Sub(w.Now))
		a.HandleTimeout(w.Now)
		w.Flush()
		check.Equal(t, "HEARTBEATs then", len(w.Seen(0, wire.ChunkHeartbeat)), 1)
		check.Equal(t, "slack of the wait for the answer", a.Slack(a.NextTimeout()), 0)
		last = w.Now
	}
}

func TestBusyPathIsNotHeartbeaten(t *testing.T) {
	w, a, _ := sctptest.Pair(t, nil, nil)
	for range 60 {
		w.Send(a, 0, []byte("tick"))
		w.Run(5 * time.Second)
		sctptest.Drain(w.Peer())
	}
	n := len(w.Seen(0, wire.ChunkHeartbeat))
	check.That(t, n == 0, "%d HEARTBEATs on a busy path", n) // section 8.3: not idle
}

func TestDeadPeerIsNoticedByHeartbeats(t *testing.T) {
	w, a, _ := sctptest.Pair(t, &assoc.Config{HeartbeatInterval: 5 * time.Second, PathMaxRetrans: 2,
		AssocMaxRetrans: 4}, nil)
	w.Filter = func(int, wire.Packet) (int, time.Duration) { return 0, 0 }
	w.Run(10 * time.Minute)
	check.Equal(t, "HEARTBEATs", len(w.Seen(0, wire.ChunkHeartbeat)), 5)
	if e, ok := w.Hosts[0].Event(assoc.EventPathDown); !ok || e.Path != w.Hosts[1].Addr { // req 9260-8.2-2
		t.Errorf("EventPathDown %+v %v", e, ok)
	}
	// req 9260-8.1-3, 9260-8.1-4
	if err, ok := w.Hosts[0].DownErr(); !ok || !errors.Is(err, assoc.ErrTimeout) || a.State() != assoc.Closed {
		t.Errorf("ended: %v %v", ok, err)
	}
}

func TestPathComesBack(t *testing.T) {
	w, a, _ := sctptest.Pair(t, &assoc.Config{HeartbeatInterval: 5 * time.Second, PathMaxRetrans: 1,
		AssocMaxRetrans: 100}, nil)
	w.Filter = func(int, wire.Packet) (int, time.Duration) { return 0, 0 }
	w.Run(40 * time.Second)
	if s := a.PathStats(0); s.State != assoc.PathInactive || s.Errors != 2 { // req 9260-8.3-5: counting stops
		t.Fatalf("state %v, %d errors", s.State, s.Errors)
	}
	w.Filter = nil
	w.Run(2 * time.Minute)
	if s := a.PathStats(0); s.State != assoc.PathActive || s.Errors != 0 { // req 9260-8.2-3
		t.Fatalf("state %v, %d errors", s.State, s.Errors)
	}
	_, ok := w.Hosts[0].Event(assoc.EventPathUp)
	check.That(t, ok, "no EventPathUp")
}

func TestUnacknowledgedDataFailsPathThenAssociation(t *testing.T) {
	w, a, _ := sctptest.Pair(t, &assoc.Config{RFC9260: true, PathMaxRetrans: 2, AssocMaxRetrans: 4,
		HeartbeatInterval: -1}, nil)
	w.Filter = func(int, wire.Packet) (int, time.Duration) { return 0, 0 }
	start := w.Now
	w.Send(a, 0, []byte("into the void"))
	var pathDown time.Duration
	w.Hosts[0].OnEvent = func(_ *assoc.Assoc, e assoc.Event) {
		if e.Kind == assoc.EventPathDown {
			pathDown = w.Now.Sub(start)
		}
	}
	w.RunUntil(w.Now.Add(time.Hour), func() bool { return a.State() == assoc.Closed })
	// T3 after 1, 2, 4 s: the third error exceeds 2
	check.That(t, pathDown == 7*time.Second, "path down after %v", pathDown)
	d := w.Now.Sub(start)
	// 1+2+4+8+16: the fifth exceeds 4, req 9260-8.1-3
	check.That(t, d == 31*time.Second, "association down after %v", d)
	check.Equal(t, "transmissions", len(w.Seen(0, wire.ChunkData)), 5)
	e, ok := w.Hosts[0].Event(assoc.EventSendFailed)
	check.That(t, ok && !e.Unsent, "EventSendFailed %+v %v", e, ok)
}

// loseRuns drops n packets with a chunk of that type, lets one pass, and so on.
func loseRuns(t wire.ChunkType, n int) func(int, wire.Packet) (int, time.Duration) {
	i := 0
	return func(from int, pkt wire.Packet) (int, time.Duration) {
		if from == 0 && sctptest.Has(pkt, t) {
			if i++; i%(n+1) != 0 {
				return 0, 0
			}
		}
		return 1, 0
	}
}

func TestAnAnswerClearsTheAssociationErrorCounter(t *testing.T) {
	cfg := assoc.Config{AssocMaxRetrans: 2, PathMaxRetrans: 2, HeartbeatInterval: 2 * time.Second}
	t.Run("HEARTBEAT ACK", func(t *testing.T) { // req 9260-8.1-6
		w, a, _ := sctptest.Pair(t, &cfg, nil)
		w.Filter = loseRuns(wire.ChunkHeartbeat, 2)
		w.Run(10 * time.Minute)
		n := len(w.Seen(0, wire.ChunkHeartbeat))
		check.That(t, a.State() == assoc.Established && n >= 20, "%v after %d HEARTBEATs", a.State(), n)
	})
	t.Run("HEARTBEAT ACK after the RTO", func(t *testing.T) { // req 9260-8.3-7: whenever it comes
		slow := cfg
		slow.RTOMin, slow.RTOInitial, slow.RTOMax = 100*time.Millisecond, 200*time.Millisecond, 300*time.Millisecond
		w, a, _ := sctptest.Pair(t, &slow, nil)
		w.Filter = func(_ int, pkt wire.Packet) (int, time.Duration) {
			if sctptest.Has(pkt, wire.ChunkHeartbeatAck) {
				return 1, 350 * time.Millisecond
			}
			return 1, 0
		}
		w.Run(10 * time.Minute)
		want := 350*time.Millisecond + 2*sctptest.Latency
		n, s := len(w.Seen(0, wire.ChunkHeartbeat)), a.PathStats(0)
		check.That(t, a.State() == assoc.Established && n >= 20 && s.SRTT.Round(time.Millisecond) == want,
			"%v after %d HEARTBEATs, SRTT %v", a.State(), n, s.SRTT)
	})
	t.Run("acknowledged DATA", func(t *testing.T) { // req 9260-8.1-5
		quiet := cfg
		quiet.HeartbeatInterval = -1
		w, a, _ := sctptest.Pair(t, &quiet, nil)
		w.Filter = loseRuns(wire.ChunkData, 2)
		for range 10 {
			w.Send(a, 0, []byte("x"))
			w.Run(5 * time.Minute) // Karn: the RTO stays backed off
		}
		n := len(w.Seen(0, wire.ChunkData))
		check.That(t, a.State() == assoc.Established && n == 30, "%v after %d transmissions", a.State(), n)
	})
}

func TestProbesAreLimitedPerRTO(t *testing.T) {
	l := sctptest.NewLab(t)
	l.Listen(&assoc.Config{HeartbeatInterval: -1, HBMaxBurst: 2})
	var list [][]byte
	for i := range byte(5) {
		list = append(list, wire.AppendAddressParam(nil, netip.AddrFrom4([4]byte{10, 0, 1, i + 1})))
	}
	l.Initiate(list...)
	l.Send(l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
	must.Equal(t, "paths", l.A.NumPaths(), 6)
	beats := func(d time.Duration) (n int) {
		for _, p := range l.Wait(d) {
			if sctptest.Has(p, wire.ChunkHeartbeat) {
				n++
			}
		}
		return n
	}
	if n := beats(900 * time.Millisecond); n != 2 { // req 9260-5.4-6
		t.Errorf("%d probes in the first RTO", n)
	}
	check.Equal(t, "probes in the second RTO", beats(time.Second), 2)
	l.Wait(10 * time.Minute) // req 9260-5.4-5: unanswered probes do not end the association
	l.InState(assoc.Established)
}

func TestHeartbeatIsAnsweredUnchanged(t *testing.T) {
	for _, row := range []struct {
		name string
		lab  func(*testing.T) *sctptest.Lab
		want string
	}{
		{"COOKIE-WAIT: not answered", func(t *testing.T) *sctptest.Lab { return sctptest.Active(t, nil) }, ""},
		// req 9260-8.3-3
		{"COOKIE-ECHOED: answered", func(t *testing.T) *sctptest.Lab { return sctptest.Echoed(t, nil) },
			"HEARTBEAT ACK"},
		{"ESTABLISHED: answered", func(t *testing.T) *sctptest.Lab { return sctptest.Passive(t, nil) }, "HEARTBEAT ACK"},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := row.lab(t)
			// A second TLV behind the info comes back too, req 9260-8.3-6, 9260-3.3.6-2.
			value := append(wire.AppendParam(nil, wire.ParamHeartbeatInfo, []byte("some info")),
				wire.AppendParam(nil, 0x8765, []byte("more!"))[:9]...)
			out := l.Send(l.Tag, wire.AppendChunk(nil, wire.ChunkHeartbeat, 0, value))
			l.Expect(out, row.want)
			check.That(t, row.want == "" || string(sctptest.ChunkOf(out[0], wire.ChunkHeartbeatAck).Value()) ==
				string(value),
				"changed on the way")
		})
	}
}

func TestHeartbeatOnTheWire(t *testing.T) {
	second := wire.AppendAddressParam(nil, netip.MustParseAddr("10.0.0.10"))
	l := sctptest.NewLab(t)
	l.Listen(&assoc.Config{HeartbeatInterval: 5 * time.Second, HBMaxBurst: 8, PathMaxRetrans: 1000,
		AssocMaxRetrans: 1000})
	l.Initiate(second)
	start := l.Now
	var list []sctptest.SentPacket
	var at []time.Duration
	l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag, wire.AppendCookieEcho(nil, l.Cookie)))
	for l.Now.Sub(start) < time.Minute {
		for _, p := range l.Collect() {
			if sctptest.Has(p.Pkt, wire.ChunkHeartbeat) {
				list = append(list, p)
				at = append(at, l.Now.Sub(start))
			}
		}
		l.Now = l.A.NextTimeout()
		l.A.HandleTimeout(l.Now)
	}
	paths, infos := map[string]bool{}, map[string]bool{}
	for i, p := range list {
		c := sctptest.ChunkOf(p.Pkt, wire.ChunkHeartbeat)
		h, err := wire.AsHeartbeat(c)
		// req 9260-3.3.5-1: one parameter, of type 1
		must.That(t, err == nil && c.Type() == 4 && c[4] == 0 && c[5] == 1 && len(c) == 8+len(h.Info()),
			"HEARTBEAT % x", c)
		addr := p.To.Addr().As16()
		sent := uint64(start.Add(at[i]))
		var stamp [8]byte
		for k := range stamp {
			stamp[k] = byte(sent >> (56 - 8*k))
		}
		info := string(h.Info())
		// req 9260-3.3.5-2
		check.That(t, strings.Contains(info, string(addr[:])) && strings.Contains(info, string(stamp[:])),
			"HEARTBEAT to %v at %v: info % x", p.To, at[i], info)
		paths[p.To.Addr().String()] = true
		infos[string(h.Info()[:4])], infos[string(h.Info()[4:8])] = true, true
	}
	// req 9260-3.3.5-3: 64 bits, never the same
	check.That(t, len(list) >= 8 && len(paths) == 2 && len(infos) == 2*len(list),
		"%d HEARTBEATs to %d addresses with %d nonces", len(list), len(paths), len(infos))
}

// A second answer to one HEARTBEAT, which may come at any time later, says nothing.
func TestHeartbeatAckCountsOnce(t *testing.T) {
	// req 9260-8.3-7
	l := sctptest.Passive(t, nil)
	must.OK(t, l.A.RequestHeartbeat(l.Now, l.Peer.Addr()))
	out := l.Flush()
	l.Expect(out, "HEARTBEAT")
	ack := wire.AppendChunk(nil, wire.ChunkHeartbeatAck, 0, sctptest.ChunkOf(out[0], wire.ChunkHeartbeat).Value())
	l.Now = l.Now.Add(10 * time.Millisecond)
	l.Send(l.Tag, ack)
	before := l.A.PathStats(0)
	must.Equal(t, "SRTT", before.SRTT, 10*time.Millisecond)
	l.Now = l.Now.Add(5 * time.Second)
	l.Send(l.Tag, ack)
	s := l.A.PathStats(0)
	check.That(t, s.SRTT == before.SRTT && s.RTO == before.RTO, "SRTT %v, RTO %v after the second answer", s.SRTT,
		s.RTO)
}

// A path that has become shorter is asked whether it has where the congestion controller needs to
// know, once in an RTO, unless HEARTBEATs are disabled.
func TestShorterPathIsAsked(t *testing.T) {
	for i, row := range []struct {
		controller cc.Factory
		interval   time.Duration
		late       time.Duration // so much later it answers than SACKs come
		beats      int
	}{{cc.NewBBR, time.Hour, 0, 1}, {cc.NewBBR, -1, 0, 0}, {cc.NewReno, time.Hour, 0, 0},
		{cc.NewBBR, time.Hour, sctptest.Latency, 5}} {
		w, a, b := sctptest.Pair(t, &assoc.Config{NewController: row.controller, HeartbeatInterval: row.interval}, nil)
		w.Net.Connect(w.Hosts[0].Addr.Addr(), w.Hosts[1].Addr.Addr(), simnet.Params{Delay: sctptest.Latency / 4})
		w.Filter = func(_ int, pkt wire.Packet) (int, time.Duration) {
			if sctptest.Has(pkt, wire.ChunkHeartbeatAck) {
				return 1, row.late
			}
			return 1, 0
		}
		w.RunUntil(w.Now.Add(5*time.Second), w.Trickle(a, b, 100*time.Millisecond).Done)
		check.That(t, len(w.Seen(0, wire.ChunkHeartbeat)) == row.beats, "row %d: %d HEARTBEATs", i,
			len(w.Seen(0, wire.ChunkHeartbeat)))
	}
}
