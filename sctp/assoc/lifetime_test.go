package assoc_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// tokens are the events of that kind, by their tokens.
func (h *host) tokens(k assoc.EventKind) (list []uint64) {
	for _, ev := range h.events {
		if ev.Kind == k {
			list = append(list, ev.Token)
		}
	}
	return list
}

func TestLifetimeOfMessages(t *testing.T) {
	l := passiveLab(t, &assoc.Config{HeartbeatInterval: -1})
	l.send(l.tag, wire.AppendSack(nil, wire.SackFields{CumTSN: l.hostTSN - 1, ARwnd: 100}))
	start := l.now
	for i, life := range []time.Duration{time.Second, 300 * time.Millisecond, 0, 500 * time.Millisecond} {
		m := assoc.Message{Body: [2][]byte{make([]byte, 60)}, Token: uint64(i + 1)}
		if life > 0 {
			m.Expires = start.Add(life)
		}
		if err := l.a.Send(l.now, &m); err != nil {
			t.Fatal(err)
		}
	}
	l.expect(l.flush(), "DATA") // the first; the others wait for the peer's window
	if err := l.a.Shutdown(l.now); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		after  time.Duration
		failed string
	}{
		{299 * time.Millisecond, "[]"},
		{300 * time.Millisecond, "[2]"}, // req 9260-11.1-5: reported when its life ends, not later
		{500 * time.Millisecond, "[2 4]"},
		{1500 * time.Millisecond, "[2 4]"}, // req 9260-11.1-5: the first one goes on; its T3-rtx has expired
	} {
		l.wait(start.Add(step.after).Sub(l.now))
		if got := fmt.Sprint(l.h.tokens(assoc.EventSendFailed)); got != step.failed {
			t.Errorf("after %v: failed %s, want %s", step.after, got, step.failed)
		}
	}
	for _, ev := range l.h.events {
		if ev.Kind == assoc.EventSendFailed && !ev.Unsent {
			t.Errorf("%+v: was not sent", ev)
		}
	}
	if n := l.a.Stats().Retransmits; n != 1 {
		t.Errorf("%d retransmissions of the first message, want 1", n)
	}
	out := l.send(l.tag, l.sack(l.hostTSN))
	d, err := wire.AsData(chunkOf(out[0], wire.ChunkData))
	if err != nil || d.TSN() != l.hostTSN+1 || d.SSN() != 1 {
		t.Errorf("TSN %d SSN %d, %v: what has expired left a hole", d.TSN(), d.SSN(), err)
	}
	l.expect(l.send(l.tag, l.sack(l.hostTSN+1)), "SHUTDOWN")
}

// The last message to expire leaves nothing to wait for: the sender is dry, and a shutdown goes on.
func TestExpiryEndsTheWait(t *testing.T) {
	for _, row := range []struct {
		name string
		wait func(l *lab) // until its life is over
	}{
		{"by timer", func(l *lab) { l.wait(time.Second) }},
		{"by sending after it is over", func(l *lab) { l.now = l.now.Add(time.Second) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := passiveLab(t, &assoc.Config{HeartbeatInterval: -1})
			l.send(l.tag, wire.AppendSack(nil, wire.SackFields{CumTSN: l.hostTSN - 1}))
			m := assoc.Message{Body: [2][]byte{make([]byte, 60)}, Token: 1, Expires: l.now.Add(time.Second)}
			if err := l.a.Send(l.now, &m); err != nil {
				t.Fatal(err)
			}
			l.flush()
			if err := l.a.Shutdown(l.now); err != nil {
				t.Fatal(err)
			}
			l.inState(assoc.ShutdownPending)
			row.wait(l)
			l.flush()
			l.inState(assoc.ShutdownSent)
			if _, dry := l.h.event(assoc.EventSenderDry); !dry || len(l.h.tokens(assoc.EventSendFailed)) != 1 {
				t.Errorf("events %+v", l.h.events)
			}
			if n := l.a.Stats().DataOut; n != 0 { // req 9260-11.1-5: sent never
				t.Errorf("%d DATA chunks", n)
			}
		})
	}
}

// The sender is dry when the last message is acknowledged, not when it is sent, and says so once.
func TestDryWithTheLastAcknowledgement(t *testing.T) {
	l := passiveLab(t, &assoc.Config{HeartbeatInterval: -1})
	for range 3 {
		if err := l.a.Send(l.now, &assoc.Message{Body: [2][]byte{[]byte("x")}, NoBundle: true}); err != nil {
			t.Fatal(err)
		}
	}
	l.flush()
	for _, step := range []struct {
		acked wire.TSN // of the three
		want  int      // events so far
	}{{0, 0}, {1, 0}, {2, 0}, {3, 1}, {3, 1}} {
		l.send(l.tag, l.sack(l.hostTSN+step.acked-1))
		if n := len(l.h.tokens(assoc.EventSenderDry)); n != step.want {
			t.Errorf("%d of 3 messages are acknowledged: the sender was dry %d times", step.acked, n)
		}
	}
}

func TestDestinationAndNoBundleOfAMessage(t *testing.T) {
	w := newMulti(t, 2)
	a, _ := w.associate(assoc.Config{HeartbeatInterval: -1}, assoc.Config{HeartbeatInterval: -1})
	second := w.addrs[1][1]
	path, err := a.PathTo(second)
	if err != nil {
		t.Fatal(err)
	}
	send := func(m assoc.Message) {
		t.Helper()
		m.Body[0] = make([]byte, 50)
		if err := a.Send(w.now, &m); err != nil {
			t.Fatal(err)
		}
	}
	start := w.now
	send(assoc.Message{Path: path})
	send(assoc.Message{Path: path})
	send(assoc.Message{})
	w.run(time.Second)
	// req 9260-11.1-4: to where the user says
	if n, other := len(w.seen(second, wire.ChunkData, start)), len(w.seen(w.addrs[1][0], wire.ChunkData, start)); n != 1 || other != 1 {
		t.Errorf("%d packets to the destination asked for, %d to the primary path", n, other)
	}
	start = w.now
	send(assoc.Message{NoBundle: true})
	send(assoc.Message{NoBundle: true})
	w.run(time.Second)
	if n := len(w.seen(w.addrs[1][0], wire.ChunkData, start)); n != 2 { // req 9260-11.1-4: no-bundle
		t.Errorf("two messages that are not to be bundled went in %d packets", n)
	}
	if _, err := a.PathTo(netip.MustParseAddr("192.0.2.77")); !errors.Is(err, assoc.ErrNoPath) {
		t.Errorf("a stranger's address: %v", err)
	}
	if err := a.Send(w.now, &assoc.Message{Path: 3, Body: [2][]byte{{1}}}); !errors.Is(err, assoc.ErrNoPath) {
		t.Errorf("a third path: %v", err)
	}
	// What fails with the association does not expire too.
	w.cut(0)
	send(assoc.Message{Token: 9, Expires: w.now.Add(time.Hour)})
	w.run(time.Millisecond)
	a.Abort(w.now, nil)
	if at := a.NextTimeout(); at != rawio.Never {
		t.Errorf("a timer at %v after the end", at)
	}
}
