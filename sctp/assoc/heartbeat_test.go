package assoc_test

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestIdlePathIsHeartbeaten(t *testing.T) {
	w, a, _ := pair(t, nil, &assoc.Config{HeartbeatInterval: -1})
	start := w.now
	w.run(5 * time.Minute)
	beats := w.seen(0, wire.ChunkHeartbeat)
	if n := len(beats); n < 9 || n > 10 { // req 9260-8.3-1: every 30.5 to 31.5 s
		t.Fatalf("%d HEARTBEATs in 5 minutes", n)
	}
	last := start
	for i, b := range beats[1:] {
		if d := b.at.Sub(beats[i].at); d < 30500*time.Millisecond || d > 31600*time.Millisecond { // req 9260-8.3-8
			t.Errorf("interval %v", d)
		}
		last = b.at
	}
	if len(w.seen(1, wire.ChunkHeartbeat)) != 0 {
		t.Error("disabled heartbeats were sent")
	}
	if acks := w.seen(1, wire.ChunkHeartbeatAck); len(acks) != len(beats) || acks[len(acks)-1].at.Sub(last) != latency {
		t.Errorf("%d answers", len(acks))
	}
	if s := a.PathStats(0); s.SRTT != roundTrip || s.Errors != 0 { // req 9260-8.3-7
		t.Errorf("SRTT %v, %d errors", s.SRTT, s.Errors)
	}
}

func TestBusyPathIsNotHeartbeaten(t *testing.T) {
	w, a, _ := pair(t, nil, nil)
	for range 60 {
		w.send(a, 0, []byte("tick"))
		w.run(5 * time.Second)
		drain(w.peer())
	}
	if n := len(w.seen(0, wire.ChunkHeartbeat)); n != 0 { // section 8.3: not idle
		t.Errorf("%d HEARTBEATs on a busy path", n)
	}
}

func TestDeadPeerIsNoticedByHeartbeats(t *testing.T) {
	w, a, _ := pair(t, &assoc.Config{HeartbeatInterval: 5 * time.Second, PathMaxRetrans: 2, AssocMaxRetrans: 4}, nil)
	w.judge = func(int, wire.Packet) (int, time.Duration) { return 0, 0 }
	w.run(10 * time.Minute)
	if n := len(w.seen(0, wire.ChunkHeartbeat)); n != 5 {
		t.Errorf("%d HEARTBEATs", n)
	}
	if e, ok := w.hosts[0].event(assoc.EventPathDown); !ok || e.Path != w.hosts[1].addr { // req 9260-8.2-2
		t.Errorf("EventPathDown %+v %v", e, ok)
	}
	if err, ok := w.hosts[0].downErr(); !ok || !errors.Is(err, assoc.ErrTimeout) || a.State() != assoc.Closed { // req 9260-8.1-3, 9260-8.1-4
		t.Errorf("ended: %v %v", ok, err)
	}
}

func TestPathComesBack(t *testing.T) {
	w, a, _ := pair(t, &assoc.Config{HeartbeatInterval: 5 * time.Second, PathMaxRetrans: 1, AssocMaxRetrans: 100}, nil)
	w.judge = func(int, wire.Packet) (int, time.Duration) { return 0, 0 }
	w.run(40 * time.Second)
	if s := a.PathStats(0); s.State != assoc.PathInactive || s.Errors != 2 { // req 9260-8.3-5: counting stops
		t.Fatalf("state %v, %d errors", s.State, s.Errors)
	}
	w.judge = nil
	w.run(2 * time.Minute)
	if s := a.PathStats(0); s.State != assoc.PathActive || s.Errors != 0 { // req 9260-8.2-3
		t.Fatalf("state %v, %d errors", s.State, s.Errors)
	}
	if _, ok := w.hosts[0].event(assoc.EventPathUp); !ok {
		t.Error("no EventPathUp")
	}
}

func TestUnacknowledgedDataFailsPathThenAssociation(t *testing.T) {
	w, a, _ := pair(t, &assoc.Config{PathMaxRetrans: 2, AssocMaxRetrans: 4, HeartbeatInterval: -1}, nil)
	w.judge = func(int, wire.Packet) (int, time.Duration) { return 0, 0 }
	start := w.now
	w.send(a, 0, []byte("into the void"))
	var pathDown time.Duration
	w.hosts[0].onEvent = func(_ *assoc.Assoc, e assoc.Event) {
		if e.Kind == assoc.EventPathDown {
			pathDown = w.now.Sub(start)
		}
	}
	w.runUntil(w.now.Add(time.Hour), func() bool { return a.State() == assoc.Closed })
	if pathDown != 7*time.Second { // T3 after 1, 2, 4 s: the third error exceeds 2
		t.Errorf("path down after %v", pathDown)
	}
	if d := w.now.Sub(start); d != 31*time.Second { // 1+2+4+8+16: the fifth exceeds 4, req 9260-8.1-3
		t.Errorf("association down after %v", d)
	}
	if n := len(w.seen(0, wire.ChunkData)); n != 5 {
		t.Errorf("%d transmissions", n)
	}
	if e, ok := w.hosts[0].event(assoc.EventSendFailed); !ok || e.Unsent {
		t.Errorf("EventSendFailed %+v %v", e, ok)
	}
}

// loseRuns drops n packets with a chunk of that type, lets one pass, and so on.
func loseRuns(t wire.ChunkType, n int) func(int, wire.Packet) (int, time.Duration) {
	i := 0
	return func(from int, pkt wire.Packet) (int, time.Duration) {
		if from == 0 && has(pkt, t) {
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
		w, a, _ := pair(t, &cfg, nil)
		w.judge = loseRuns(wire.ChunkHeartbeat, 2)
		w.run(10 * time.Minute)
		if n := len(w.seen(0, wire.ChunkHeartbeat)); a.State() != assoc.Established || n < 20 {
			t.Errorf("%v after %d HEARTBEATs", a.State(), n)
		}
	})
	t.Run("acknowledged DATA", func(t *testing.T) { // req 9260-8.1-5
		quiet := cfg
		quiet.HeartbeatInterval = -1
		w, a, _ := pair(t, &quiet, nil)
		w.judge = loseRuns(wire.ChunkData, 2)
		for range 10 {
			w.send(a, 0, []byte("x"))
			w.run(5 * time.Minute) // Karn: the RTO stays backed off
		}
		if n := len(w.seen(0, wire.ChunkData)); a.State() != assoc.Established || n != 30 {
			t.Errorf("%v after %d transmissions", a.State(), n)
		}
	})
}

func TestProbesAreLimitedPerRTO(t *testing.T) {
	l := bareLab(t)
	l.listen(&assoc.Config{HeartbeatInterval: -1, HBMaxBurst: 2})
	var list [][]byte
	for i := range byte(5) {
		list = append(list, wire.AppendAddressParam(nil, netip.AddrFrom4([4]byte{10, 0, 1, i + 1})))
	}
	l.initiate(list...)
	l.send(l.tag, wire.AppendCookieEcho(nil, l.cookie))
	if l.a.NumPaths() != 6 {
		t.Fatalf("%d paths", l.a.NumPaths())
	}
	beats := func(d time.Duration) (n int) {
		for _, p := range l.wait(d) {
			if has(p, wire.ChunkHeartbeat) {
				n++
			}
		}
		return n
	}
	if n := beats(900 * time.Millisecond); n != 2 { // req 9260-5.4-6
		t.Errorf("%d probes in the first RTO", n)
	}
	if n := beats(time.Second); n != 2 {
		t.Errorf("%d probes in the second RTO", n)
	}
	l.wait(10 * time.Minute) // req 9260-5.4-5: unanswered probes do not end the association
	l.inState(assoc.Established)
}

func TestHeartbeatIsAnsweredUnchanged(t *testing.T) {
	for _, row := range []struct {
		name string
		lab  func(*testing.T) *lab
		want string
	}{
		{"COOKIE-WAIT: not answered", func(t *testing.T) *lab { return activeLab(t, nil) }, ""},
		{"COOKIE-ECHOED: answered", func(t *testing.T) *lab { return echoedLab(t, nil) }, "HEARTBEAT ACK"}, // req 9260-8.3-3
		{"ESTABLISHED: answered", func(t *testing.T) *lab { return passiveLab(t, nil) }, "HEARTBEAT ACK"},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := row.lab(t)
			// A second TLV behind the info comes back too, req 9260-8.3-6, 9260-3.3.6-2.
			value := append(wire.AppendParam(nil, wire.ParamHeartbeatInfo, []byte("some info")), wire.AppendParam(nil, 0x8765, []byte("more"))...)
			out := l.send(l.tag, wire.AppendChunk(nil, wire.ChunkHeartbeat, 0, value))
			l.expect(out, row.want)
			if row.want != "" && string(chunkOf(out[0], wire.ChunkHeartbeatAck).Value()) != string(value) {
				t.Error("changed on the way")
			}
		})
	}
}

func TestHeartbeatAckThatNobodyAskedForIsIgnored(t *testing.T) {
	l := passiveLab(t, nil)
	l.expect(l.send(l.tag, wire.AppendHeartbeatAck(nil, make([]byte, 32))), "")
	l.expect(l.send(l.tag, wire.AppendHeartbeatAck(nil, []byte("short"))), "")
	if s := l.a.PathStats(0); s.SRTT != 0 {
		t.Errorf("SRTT %v", s.SRTT)
	}
}
