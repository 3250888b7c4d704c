package assoc_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestShutdownChunksOnTheWire(t *testing.T) {
	l := passiveLab(t, &assoc.Config{HeartbeatInterval: -1})
	l.send(l.tag, l.data("one"))
	l.tsn++ // a gap: the second is not in sequence
	l.send(l.tag, l.data("three"))
	m := assoc.Message{Body: [2][]byte{[]byte("mine")}}
	if err := l.a.Send(l.now, &m); err != nil {
		t.Fatal(err)
	}
	l.flush()
	if err := l.a.Shutdown(l.now); err != nil {
		t.Fatal(err)
	}
	l.expect(l.flush(), "") // data is outstanding
	l.inState(assoc.ShutdownPending)
	out := l.send(l.tag, l.sack(l.hostTSN))
	l.expect(out, "SHUTDOWN SACK")
	// req 9260-3.3.8-1, 9260-9.2-2
	if c := chunkOf(out[0], wire.ChunkShutdown); !bytes.Equal(c, []byte{7, 0, 0, 8, 0, 0, 3, 0xe8}) { // TSN 1000
		t.Errorf("SHUTDOWN % x", c)
	}
	l.inState(assoc.ShutdownSent)
	if got := l.a.NextTimeout(); got != l.now.Add(l.a.PathStats(0).RTO) { // req 9260-9.2-3
		t.Errorf("T2-shutdown expires at %v", got)
	}
	out = l.send(l.tag, wire.AppendShutdownAck(nil))
	if c := chunkOf(out[0], wire.ChunkShutdownComplete); !bytes.Equal(c, []byte{14, 0, 0, 4}) { // req 9260-3.3.13-1
		t.Errorf("SHUTDOWN COMPLETE % x", c)
	}

	l = passiveLab(t, nil)
	out = l.send(l.tag, wire.AppendShutdown(nil, l.hostTSN-1))
	if c := chunkOf(out[0], wire.ChunkShutdownAck); !bytes.Equal(c, []byte{8, 0, 0, 4}) { // req 9260-3.3.9-1
		t.Errorf("SHUTDOWN ACK % x", c)
	}
}

func TestShutdownBeforeAnyDataNamesTheInitialTSNMinusOne(t *testing.T) {
	// req 9260-14-2
	l := passiveLab(t, nil)
	if err := l.a.Shutdown(l.now); err != nil {
		t.Fatal(err)
	}
	out := l.flush()
	if s, err := wire.AsShutdown(chunkOf(out[0], wire.ChunkShutdown)); err != nil || s.CumTSN() != l.tsn-1 {
		t.Errorf("SHUTDOWN acknowledges %d, the peer's Initial TSN is %d", s.CumTSN(), l.tsn)
	}
}

func TestNoSideStaysHalfOpen(t *testing.T) {
	// req 9260-1.5.1-1, 9260-11.1-3
	w, a, b := pair(t, nil, nil)
	payload := bytes.Repeat([]byte("x"), 20_000)
	w.send(a, 0, payload)
	w.send(b, 0, payload)
	if err := a.Shutdown(w.now); err != nil {
		t.Fatal(err)
	}
	m := assoc.Message{Body: [2][]byte{[]byte("more")}}
	told := w.runUntil(w.now.Add(time.Minute), func() bool { _, ok := w.hosts[1].event(assoc.EventPeerShutdown); return ok })
	if !told {
		t.Fatal("the peer was not told")
	}
	for _, x := range []*assoc.Assoc{a, b} {
		if err := x.Send(w.now, &m); !errors.Is(err, assoc.ErrClosing) {
			t.Errorf("Send in %v: %v", x.State(), err)
		}
	}
	w.run(time.Minute)
	for _, x := range []*assoc.Assoc{a, b} {
		if got := drain(x); x.State() != assoc.Closed || len(got) != 1 || !bytes.Equal(got[0], payload) {
			t.Errorf("%v with %d messages of the other side", x.State(), len(got))
		}
	}
}

func TestNoHeartbeatsOnceShuttingDown(t *testing.T) {
	// req 9260-8.3-2
	cfg := &assoc.Config{HeartbeatInterval: time.Second, AssocMaxRetrans: 100, RTOMax: 10 * time.Second}
	l := passiveLab(t, cfg)
	if err := l.a.Shutdown(l.now); err != nil {
		t.Fatal(err)
	}
	sent := l.flush()
	sent = append(sent, l.wait(40*time.Second)...)
	l.inState(assoc.ShutdownSent)
	l = passiveLab(t, cfg)
	sent = append(sent, l.send(l.tag, wire.AppendShutdown(nil, l.hostTSN-1))...)
	sent = append(sent, l.wait(40*time.Second)...)
	l.inState(assoc.ShutdownAckSent)
	if len(sent) < 10 {
		t.Errorf("only %d packets", len(sent))
	}
	for _, p := range sent {
		if has(p, wire.ChunkHeartbeat) {
			t.Fatalf("HEARTBEAT: %q", describe(sent))
		}
	}
}

func TestAnyPacketInShutdownSentShowsThatThePeerLives(t *testing.T) {
	// req 9260-9.2-6
	l := passiveLab(t, &assoc.Config{HeartbeatInterval: -1, AssocMaxRetrans: 2})
	if err := l.a.Shutdown(l.now); err != nil {
		t.Fatal(err)
	}
	l.flush()
	for range 3 {
		for range 2 { // the limit
			l.now = l.a.NextTimeout()
			l.a.HandleTimeout(l.now)
			l.expect(l.flush(), "SHUTDOWN")
		}
		l.now = l.now.Add(100 * time.Millisecond)
		l.send(l.tag, wire.AppendHeartbeat(nil, []byte("still here")))
		if got := l.a.NextTimeout(); got != l.now.Add(l.a.PathStats(0).RTO) {
			t.Errorf("T2-shutdown was not restarted: %v", got)
		}
	}
	l.inState(assoc.ShutdownSent)
	l.wait(time.Hour)
	l.inState(assoc.Closed)
}

func TestNoDataInTheLastStates(t *testing.T) {
	// req 9260-6-1: DATA is sent in ESTABLISHED, SHUTDOWN-PENDING and SHUTDOWN-RECEIVED, and in no other state.
	var src *tap
	up := func(t *testing.T) *lab {
		src = &tap{}
		l := bareLab(t)
		l.h.source = src
		l.listen(&assoc.Config{HeartbeatInterval: -1})
		l.shake()
		return l
	}
	sends := func(l *lab) bool {
		src.n++
		return len(l.flush()) > 0
	}
	l := up(t)
	if !sends(l) {
		t.Error("no DATA in ESTABLISHED")
	}
	if err := l.a.Shutdown(l.now); err != nil {
		t.Fatal(err)
	}
	if l.inState(assoc.ShutdownPending); !sends(l) {
		t.Error("no DATA in SHUTDOWN-PENDING")
	}
	l.expect(l.send(l.tag, l.sack(l.hostTSN+1)), "SHUTDOWN")
	if l.inState(assoc.ShutdownSent); sends(l) {
		t.Error("DATA in SHUTDOWN-SENT")
	}
	l = up(t)
	sends(l)
	l.expect(l.send(l.tag, wire.AppendShutdown(nil, l.hostTSN-1)), "")
	if l.inState(assoc.ShutdownReceived); !sends(l) {
		t.Error("no DATA in SHUTDOWN-RECEIVED")
	}
	l.expect(l.send(l.tag, l.sack(l.hostTSN+1)), "SHUTDOWN ACK")
	if l.inState(assoc.ShutdownAckSent); sends(l) {
		t.Error("DATA in SHUTDOWN-ACK-SENT")
	}
}

// tap is a Source with n messages.
type tap struct{ n, acked int }

func (s *tap) Next(_ rawio.Time, _ int, m *assoc.Message) bool {
	if s.n == 0 {
		return false
	}
	s.n--
	*m = assoc.Message{Body: [2][]byte{[]byte("drop")}}
	return true
}

func (s *tap) Acked(rawio.Time, wire.StreamID, uint64) { s.acked++ }

func TestSackIsProcessedInItsStatesOnly(t *testing.T) {
	for _, row := range []struct {
		name    string
		lab     func(*testing.T) *lab
		process bool
	}{
		// req 9260-6-4
		{"ESTABLISHED", func(t *testing.T) *lab { return busyLab(t) }, true},
		{"SHUTDOWN-PENDING", func(t *testing.T) *lab {
			l := busyLab(t)
			_ = l.a.Shutdown(l.now)
			l.inState(assoc.ShutdownPending)
			return l
		}, true},
		{"SHUTDOWN-RECEIVED", func(t *testing.T) *lab {
			l := busyLab(t)
			l.send(l.tag, wire.AppendShutdown(nil, l.hostTSN-1))
			l.inState(assoc.ShutdownReceived)
			return l
		}, true},
		// req 9260-6-6: even one that would be an error.
		{"COOKIE-WAIT", func(t *testing.T) *lab { return activeLab(t, nil) }, false},
		{"SHUTDOWN-SENT", func(t *testing.T) *lab {
			l := passiveLab(t, nil)
			_ = l.a.Shutdown(l.now)
			l.flush()
			l.inState(assoc.ShutdownSent)
			return l
		}, false},
		{"SHUTDOWN-ACK-SENT", func(t *testing.T) *lab {
			l := passiveLab(t, nil)
			l.send(l.tag, wire.AppendShutdown(nil, l.hostTSN-1))
			l.inState(assoc.ShutdownAckSent)
			return l
		}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := row.lab(t)
			state := l.a.State()
			if row.process {
				l.send(l.tag, l.sack(l.hostTSN))
				if n := l.a.Stats().Outstanding; n != 0 {
					t.Errorf("%d octets outstanding after the SACK", n)
				}
				return
			}
			l.expect(l.send(l.tag, l.sack(l.hostTSN+5)), "")
			l.inState(state)
		})
	}
}

// busyLab is established with one message in flight.
func busyLab(t *testing.T) *lab {
	t.Helper()
	l := passiveLab(t, &assoc.Config{HeartbeatInterval: -1})
	if err := l.a.Send(l.now, &assoc.Message{Body: [2][]byte{[]byte("in flight")}}); err != nil {
		t.Fatal(err)
	}
	l.expect(l.flush(), "DATA")
	return l
}
