package assoc_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestLifetimeOfMessages(t *testing.T) {
	l := sctptest.Passive(t, &assoc.Config{HeartbeatInterval: -1})
	l.Send(l.Tag, wire.AppendSack(nil, wire.SackFields{CumTSN: l.HostTSN - 1, ARwnd: 100}))
	start := l.Now
	for i, life := range []time.Duration{time.Second, 300 * time.Millisecond, 0, 500 * time.Millisecond} {
		m := assoc.Message{Body: [2][]byte{make([]byte, 60)}, Token: uint64(i + 1)}
		if life > 0 {
			m.Expires = start.Add(life)
		}
		must.OK(t, l.A.Send(l.Now, &m))
	}
	l.Expect(l.Flush(), "DATA") // the first; the others wait for the peer's window
	must.OK(t, l.A.Shutdown(l.Now))
	for _, step := range []struct {
		after  time.Duration
		failed string
	}{
		{299 * time.Millisecond, "[]"},
		{300 * time.Millisecond, "[2]"}, // req 9260-11.1-5: reported when its life ends, not later
		{500 * time.Millisecond, "[2 4]"},
		{1500 * time.Millisecond, "[2 4]"}, // req 9260-11.1-5: the first one goes on; its T3-rtx has expired
	} {
		l.Wait(start.Add(step.after).Sub(l.Now))
		got := fmt.Sprint(l.Host.Tokens(assoc.EventSendFailed))
		check.That(t, got == step.failed, "after %v: failed %s, want %s", step.after, got, step.failed)
	}
	for _, ev := range l.Host.Events {
		check.That(t, ev.Kind != assoc.EventSendFailed || ev.Unsent, "%+v: was not sent", ev)
	}
	check.Equal(t, "retransmissions of the first message", l.A.Stats().Retransmits, 1)
	out := l.Send(l.Tag, l.Sack(l.HostTSN))
	d, err := wire.AsData(sctptest.ChunkOf(out[0], wire.ChunkData))
	check.That(t, err == nil && d.TSN() == l.HostTSN+1 && d.SSN() == 1,
		"TSN %d SSN %d, %v: what has expired left a hole", d.TSN(), d.SSN(), err)
	l.Expect(l.Send(l.Tag, l.Sack(l.HostTSN+1)), "SHUTDOWN")
}

// The last message to expire leaves nothing to wait for: the sender is dry, and a shutdown goes on.
func TestExpiryEndsTheWait(t *testing.T) {
	for _, row := range []struct {
		name string
		wait func(l *sctptest.Lab) // until its life is over
	}{
		{"by timer", func(l *sctptest.Lab) { l.Wait(time.Second) }},
		{"by sending after it is over", func(l *sctptest.Lab) { l.Now = l.Now.Add(time.Second) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := sctptest.Passive(t, &assoc.Config{HeartbeatInterval: -1})
			l.Send(l.Tag, wire.AppendSack(nil, wire.SackFields{CumTSN: l.HostTSN - 1}))
			m := assoc.Message{Body: [2][]byte{make([]byte, 60)}, Token: 1, Expires: l.Now.Add(time.Second)}
			must.OK(t, l.A.Send(l.Now, &m))
			l.Flush()
			must.OK(t, l.A.Shutdown(l.Now))
			l.InState(assoc.ShutdownPending)
			row.wait(l)
			l.Flush()
			l.InState(assoc.ShutdownSent)
			_, dry := l.Host.Event(assoc.EventSenderDry)
			check.That(t, dry && len(l.Host.Tokens(assoc.EventSendFailed)) == 1, "events %+v", l.Host.Events)
			n := l.A.Stats().DataOut
			check.That(t, n == 0, "%d DATA chunks", n) // req 9260-11.1-5: sent never
		})
	}
}

// The sender is dry when the last message is acknowledged, not when it is sent, and says so once.
func TestDryWithTheLastAcknowledgement(t *testing.T) {
	l := sctptest.Passive(t, &assoc.Config{HeartbeatInterval: -1})
	for range 3 {
		must.OK(t, l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{[]byte("x")}, NoBundle: true}))
	}
	l.Flush()
	for _, step := range []struct {
		acked wire.TSN // of the three
		want  int      // events so far
	}{{0, 0}, {1, 0}, {2, 0}, {3, 1}, {3, 1}} {
		l.Send(l.Tag, l.Sack(l.HostTSN+step.acked-1))
		n := len(l.Host.Tokens(assoc.EventSenderDry))
		check.That(t, n == step.want, "%d of 3 messages are acknowledged: the sender was dry %d times", step.acked, n)
	}
}

func TestDestinationAndNoBundleOfAMessage(t *testing.T) {
	w := sctptest.NewMulti(t, 2)
	a, _ := w.Associate(assoc.Config{HeartbeatInterval: -1}, assoc.Config{HeartbeatInterval: -1})
	second := w.Addrs[1][1]
	path := must.Get(a.PathTo(second))(t)
	send := func(m assoc.Message) {
		t.Helper()
		m.Body[0] = make([]byte, 50)
		must.OK(t, a.Send(w.Now, &m))
	}
	start := w.Now
	send(assoc.Message{Path: path})
	send(assoc.Message{Path: path})
	send(assoc.Message{})
	w.Run(time.Second)
	// req 9260-11.1-4: to where the user says
	n, other := len(w.Seen(second, wire.ChunkData, start)), len(w.Seen(w.Addrs[1][0], wire.ChunkData, start))
	check.That(t, n == 1 && other == 1, "%d packets to the destination asked for, %d to the primary path", n, other)
	start = w.Now
	send(assoc.Message{NoBundle: true})
	send(assoc.Message{NoBundle: true})
	w.Run(time.Second)
	if n := len(w.Seen(w.Addrs[1][0], wire.ChunkData, start)); n != 2 { // req 9260-11.1-4: no-bundle
		t.Errorf("two messages that are not to be bundled went in %d packets", n)
	}
	check.Fails(a.PathTo(netip.MustParseAddr("192.0.2.77")))(t, "a stranger's address", assoc.ErrNoPath)
	check.Error(t, "a third path", a.Send(w.Now, &assoc.Message{Path: 3, Body: [2][]byte{{1}}}), assoc.ErrNoPath)
	// What fails with the association does not expire too.
	w.Cut(0)
	send(assoc.Message{Token: 9, Expires: w.Now.Add(time.Hour)})
	w.Run(time.Millisecond)
	a.Abort(w.Now, nil)
	check.Equal(t, "a timer after the end", a.NextTimeout(), rawio.Never)
}
