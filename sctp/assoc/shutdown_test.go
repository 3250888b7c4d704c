package assoc_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestShutdownDeliversEverythingFirst(t *testing.T) {
	w, a, b := pair(t, nil, nil)
	payload := bytes.Repeat([]byte("0123456789"), 3000)
	w.send(a, 0, payload)
	w.send(b, 0, payload)
	if err := a.Shutdown(w.now); err != nil {
		t.Fatal(err)
	}
	if a.State() != assoc.ShutdownPending { // req 9260-9.2-1
		t.Fatalf("state %v", a.State())
	}
	if err := a.Send(w.now, &assoc.Message{Body: [2][]byte{payload}}); !errors.Is(err, assoc.ErrClosing) { // req 9260-9.2-18
		t.Errorf("Send in SHUTDOWN-PENDING: %v", err)
	}
	w.run(time.Minute)
	for i, h := range w.hosts {
		if err, ok := h.downErr(); !ok || !errors.Is(err, assoc.ErrShutdown) {
			t.Errorf("host %d: %v %v", i, ok, err)
		}
		if _, failed := h.event(assoc.EventSendFailed); failed {
			t.Errorf("host %d: a message failed", i)
		}
	}
	if _, ok := w.hosts[1].event(assoc.EventPeerShutdown); !ok {
		t.Error("no EventPeerShutdown")
	}
	if got := drain(a); len(got) != 1 || !bytes.Equal(got[0], payload) {
		t.Errorf("a received %d messages", len(got))
	}
	if got := drain(b); len(got) != 1 || !bytes.Equal(got[0], payload) {
		t.Errorf("b received %d messages", len(got))
	}
	if c := w.seen(0, wire.ChunkShutdownComplete); len(c) != 1 || describe([]wire.Packet{c[0].pkt}) != "SHUTDOWN COMPLETE" { // req 9260-3-1
		t.Errorf("%d SHUTDOWN COMPLETE", len(c))
	} else if sc, _ := wire.AsShutdownComplete(chunkOf(c[0].pkt, wire.ChunkShutdownComplete)); sc.T() || c[0].pkt.VTag() != b.LocalTag() { // req 9260-8.5.1-5
		t.Error("SHUTDOWN COMPLETE with T = 1 or a wrong tag")
	}
}

func TestShutdownSurvivesLoss(t *testing.T) {
	for _, row := range []struct {
		name string
		lost wire.ChunkType
	}{
		{"SHUTDOWN lost", wire.ChunkShutdown},                                                      // req 9260-9.2-4
		{"SHUTDOWN ACK lost", wire.ChunkShutdownAck},                                               // req 9260-9.2-15
		{"SHUTDOWN COMPLETE lost: the answer out of the blue ends it", wire.ChunkShutdownComplete}, // req 9260-9.2-16
	} {
		t.Run(row.name, func(t *testing.T) {
			w, a, b := pair(t, nil, nil)
			w.judge = lose(row.lost, 1)
			if err := a.Shutdown(w.now); err != nil {
				t.Fatal(err)
			}
			w.run(10 * time.Second)
			for i, h := range w.hosts {
				if err, ok := h.downErr(); !ok || !errors.Is(err, assoc.ErrShutdown) {
					t.Errorf("host %d: %v %v", i, ok, err)
				}
			}
			if a.State() != assoc.Closed || b.State() != assoc.Closed {
				t.Errorf("states %v, %v", a.State(), b.State())
			}
		})
	}
}

func TestBothSidesShutDownAtOnce(t *testing.T) {
	w, a, b := pair(t, nil, nil)
	_ = a.Shutdown(w.now)
	_ = b.Shutdown(w.now)
	w.run(10 * time.Second) // req 9260-9.2-22
	for i, h := range w.hosts {
		if err, ok := h.downErr(); !ok || !errors.Is(err, assoc.ErrShutdown) {
			t.Errorf("host %d: %v %v", i, ok, err)
		}
	}
	if a.State() != assoc.Closed || b.State() != assoc.Closed {
		t.Errorf("states %v, %v", a.State(), b.State())
	}
}

func TestShutdownGivesUp(t *testing.T) {
	for _, row := range []struct {
		name string
		cfg  assoc.Config
		want error
		last string
	}{
		{"after Association.Max.Retrans SHUTDOWNs", assoc.Config{AssocMaxRetrans: 3}, assoc.ErrTimeout, "SHUTDOWN"},               // req 9260-9.2-5
		{"by T5-shutdown-guard", assoc.Config{AssocMaxRetrans: 1000, RTOMax: 4 * time.Second}, assoc.ErrShutdownTimeout, "ABORT"}, // req 9260-9.2-13
	} {
		t.Run(row.name, func(t *testing.T) {
			l := passiveLab(t, &row.cfg)
			start := l.now
			if err := l.a.Shutdown(l.now); err != nil {
				t.Fatal(err)
			}
			out := l.wait(10 * time.Minute)
			err, _ := l.h.downErr()
			if !errors.Is(err, row.want) {
				t.Errorf("ended by %v", err)
			}
			if got := describe(out[len(out)-1:]); got != row.last {
				t.Errorf("last packet %q", got)
			}
			if row.want == assoc.ErrTimeout && len(out) != 4 {
				t.Errorf("%d SHUTDOWNs in %v", len(out), l.now.Sub(start))
			}
		})
	}
}

func TestT2BacksOffAndStartsAfreshOnEachPacket(t *testing.T) {
	l := passiveLab(t, &assoc.Config{HeartbeatInterval: -1})
	if err := l.a.Shutdown(l.now); err != nil {
		t.Fatal(err)
	}
	l.expect(l.flush(), "SHUTDOWN")
	l.expect(l.wait(900*time.Millisecond), "")
	l.send(l.tag, wire.AppendHeartbeat(nil, []byte("still here"))) // req 9260-9.2-6
	l.expect(l.wait(900*time.Millisecond), "")
	l.expect(l.wait(200*time.Millisecond), "SHUTDOWN")
	l.expect(l.wait(1800*time.Millisecond), "") // 2 s after the first expiry, section 6.3.3
	l.expect(l.wait(300*time.Millisecond), "SHUTDOWN")
}

// A SHUTDOWN was lost, and the peer sends HEARTBEATs faster than T2-shutdown expires, each of which restarts it: the shutdown
// completes nevertheless. Found by internal/world, seed 668.
func TestShutdownReachesAPeerThatSendsHeartbeats(t *testing.T) {
	l := passiveLab(t, &assoc.Config{HeartbeatInterval: -1})
	if err := l.a.Shutdown(l.now); err != nil {
		t.Fatal(err)
	}
	l.expect(l.flush(), "SHUTDOWN")
	for range 3 {
		l.expect(l.wait(900*time.Millisecond), "")
		l.expect(l.send(l.tag, wire.AppendHeartbeat(nil, []byte("are you there?"))), "SHUTDOWN")
	}
	l.expect(l.send(l.tag, wire.AppendShutdownAck(nil)), "SHUTDOWN COMPLETE")
	l.inState(assoc.Closed)
}

func TestDataBeforeShutdownAsksForImmediateSacks(t *testing.T) {
	l := passiveLab(t, &assoc.Config{HeartbeatInterval: -1})
	if err := l.a.Send(l.now, &assoc.Message{Body: [2][]byte{[]byte("last")}}); err != nil {
		t.Fatal(err)
	}
	if err := l.a.Shutdown(l.now); err != nil {
		t.Fatal(err)
	}
	out := l.flush()
	l.expect(out, "DATA")
	if d, _ := wire.AsData(chunkOf(out[0], wire.ChunkData)); !d.I() { // req 9260-6.1-22
		t.Error("no I bit in SHUTDOWN-PENDING")
	}
}

func TestDataInShutdownSentIsAnsweredByShutdown(t *testing.T) {
	l := passiveLab(t, &assoc.Config{HeartbeatInterval: -1})
	if err := l.a.Shutdown(l.now); err != nil {
		t.Fatal(err)
	}
	l.expect(l.flush(), "SHUTDOWN")
	out := l.send(l.tag, l.data("late"))
	l.expect(out, "SHUTDOWN") // req 9260-9.2-10
	sh, _ := wire.AsShutdown(chunkOf(out[0], wire.ChunkShutdown))
	if sh.CumTSN() != l.tsn-1 {
		t.Errorf("SHUTDOWN acknowledges %d, want %d", sh.CumTSN(), l.tsn-1)
	}
	l.tsn++                                                         // a gap
	l.expect(l.send(l.tag, l.data("after a gap")), "SHUTDOWN SACK") // req 9260-9.2-11, 9260-6.2-15
	// No HEARTBEAT ACK, but what the peer has missed.
	l.expect(l.send(l.tag, wire.AppendHeartbeat(nil, []byte("x"))), "SHUTDOWN SACK") // req 9260-8.3-3
	if got := drain(l.a); len(got) < 1 || string(got[0]) != "late" {                 // req 9260-6-2
		t.Errorf("received %q", got)
	}
	l.expect(l.send(l.tag, wire.AppendShutdownAck(nil)), "SHUTDOWN COMPLETE")
	l.inState(assoc.Closed)
}

func TestShutdownReceivedGoesOnSending(t *testing.T) {
	l := passiveLab(t, &assoc.Config{HeartbeatInterval: -1})
	m := assoc.Message{Body: [2][]byte{[]byte("queued")}}
	if err := l.a.Send(l.now, &m); err != nil {
		t.Fatal(err)
	}
	l.expect(l.flush(), "DATA")
	l.expect(l.send(l.tag, wire.AppendShutdown(nil, l.hostTSN-1)), "")
	l.inState(assoc.ShutdownReceived)                                                    // req 9260-9.2-7
	if err := l.a.Shutdown(l.now); err != nil || l.a.State() != assoc.ShutdownReceived { // req 9260-9.2-8
		t.Errorf("Shutdown in SHUTDOWN-RECEIVED: %v", err)
	}
	if err := l.a.Send(l.now, &m); !errors.Is(err, assoc.ErrClosing) { // req 9260-4-5
		t.Errorf("Send in SHUTDOWN-RECEIVED: %v", err)
	}
	l.expect(l.wait(1100*time.Millisecond), "DATA")                              // req 9260-9.2-9: T3-rtx
	l.expect(l.send(l.tag, wire.AppendShutdown(nil, l.hostTSN)), "SHUTDOWN ACK") // req 9260-9.2-14
	l.inState(assoc.ShutdownAckSent)
	l.expect(l.send(l.tag, l.data("too late")), "") // req 9260-6-3
	l.expect(l.send(l.tag, wire.AppendShutdownComplete(nil, false)), "")
	l.inState(assoc.Closed) // req 9260-9.2-17
}

func TestShutdownChunksDuringSetup(t *testing.T) {
	for _, row := range []struct {
		name string
		lab  func(*testing.T) *lab
	}{
		{"COOKIE-WAIT", func(t *testing.T) *lab { return activeLab(t, nil) }},
		{"COOKIE-ECHOED", func(t *testing.T) *lab { return echoedLab(t, nil) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := row.lab(t)
			state, deadline := l.a.State(), l.a.NextTimeout()
			l.expect(l.send(l.tag, wire.AppendShutdown(nil, 1)), "") // req 9260-9.2-21
			const tag = 0x31415926
			out := l.send(tag, wire.AppendShutdownAck(nil)) // req 9260-9.2-20
			l.expect(out, "SHUTDOWN COMPLETE")
			sc, _ := wire.AsShutdownComplete(chunkOf(out[0], wire.ChunkShutdownComplete))
			if out[0].VTag() != tag || !sc.T() {
				t.Errorf("tag %#x, T %v", out[0].VTag(), sc.T())
			}
			l.inState(state)
			if l.a.NextTimeout() != deadline {
				t.Error("T1 was touched")
			}
		})
	}
}
