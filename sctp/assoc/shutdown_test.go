package assoc_test

import (
	"bytes"
	"errors"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestShutdownDeliversEverythingFirst(t *testing.T) {
	w, a, b := sctptest.Pair(t, nil, nil)
	payload := bytes.Repeat([]byte("0123456789"), 3000)
	w.Send(a, 0, payload)
	w.Send(b, 0, payload)
	must.OK(t, a.Shutdown(w.Now))
	// req 9260-9.2-1
	must.That(t, a.State() == assoc.ShutdownPending, "state %v", a.State())
	// req 9260-9.2-18
	if err := a.Send(w.Now, &assoc.Message{Body: [2][]byte{payload}}); !errors.Is(err, assoc.ErrClosing) {
		t.Errorf("Send in SHUTDOWN-PENDING: %v", err)
	}
	w.Run(time.Minute)
	for i, h := range w.Hosts {
		err, ok := h.DownErr()
		check.That(t, ok && errors.Is(err, assoc.ErrShutdown), "host %d: %v %v", i, ok, err)
		_, failed := h.Event(assoc.EventSendFailed)
		check.That(t, !failed, "host %d: a message failed", i)
	}
	_, ok := w.Hosts[1].Event(assoc.EventPeerShutdown)
	check.That(t, ok, "no EventPeerShutdown")
	got := sctptest.Drain(a)
	check.That(t, len(got) == 1 && bytes.Equal(got[0], payload), "a received %d messages", len(got))
	got = sctptest.Drain(b)
	check.That(t, len(got) == 1 && bytes.Equal(got[0], payload), "b received %d messages", len(got))
	// req 9260-3-1
	if c := w.Seen(0, wire.ChunkShutdownComplete); len(c) != 1 ||
		sctptest.Describe([]wire.Packet{c[0].Pkt}) != "SHUTDOWN COMPLETE" {
		t.Errorf("%d SHUTDOWN COMPLETE", len(c))
		// req 9260-8.5.1-5
	} else if sc, _ := wire.AsShutdownComplete(sctptest.ChunkOf(c[0].Pkt, wire.ChunkShutdownComplete)); sc.T() ||
		c[0].Pkt.VTag() != b.LocalTag() {
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
			w, a, b := sctptest.Pair(t, nil, nil)
			w.Filter = sctptest.Lose(row.lost, 1)
			must.OK(t, a.Shutdown(w.Now))
			w.Run(10 * time.Second)
			for i, h := range w.Hosts {
				err, ok := h.DownErr()
				check.That(t, ok && errors.Is(err, assoc.ErrShutdown), "host %d: %v %v", i, ok, err)
			}
			check.That(t, a.State() == assoc.Closed && b.State() == assoc.Closed, "states %v, %v", a.State(), b.State())
		})
	}
}

func TestBothSidesShutDownAtOnce(t *testing.T) {
	w, a, b := sctptest.Pair(t, nil, nil)
	_ = a.Shutdown(w.Now)
	_ = b.Shutdown(w.Now)
	w.Run(10 * time.Second) // req 9260-9.2-22, 9260-9.2-16
	for i, h := range w.Hosts {
		err, ok := h.DownErr()
		check.That(t, ok && errors.Is(err, assoc.ErrShutdown), "host %d: %v %v", i, ok, err)
	}
	check.That(t, a.State() == assoc.Closed && b.State() == assoc.Closed, "states %v, %v", a.State(), b.State())
}

func TestShutdownGivesUp(t *testing.T) {
	for _, row := range []struct {
		name string
		cfg  assoc.Config
		want error
		last string
	}{
		// req 9260-9.2-5
		{"after Association.Max.Retrans SHUTDOWNs", assoc.Config{AssocMaxRetrans: 3}, assoc.ErrTimeout, "SHUTDOWN"},
		// req 9260-9.2-13
		{"by T5-shutdown-guard", assoc.Config{AssocMaxRetrans: 1000, RTOMax: 4 * time.Second},
			assoc.ErrShutdownTimeout, "ABORT"},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := sctptest.Passive(t, &row.cfg)
			start, took := l.Now, time.Duration(0)
			l.Host.OnEvent = func(*assoc.Assoc, assoc.Event) { took = l.Now.Sub(start) }
			must.OK(t, l.A.Shutdown(l.Now))
			out := l.Wait(10 * time.Minute)
			err, _ := l.Host.DownErr()
			check.Error(t, "ended", err, row.want)
			check.Equal(t, "last packet", sctptest.Describe(out[len(out)-1:]), row.last)
			check.That(t, row.want != assoc.ErrTimeout || len(out) == 4, "%d SHUTDOWNs", len(out))
			check.That(t, row.want == assoc.ErrTimeout || took == 5*row.cfg.RTOMax,
				"ended after %v, want 5 times RTO.Max", took)
		})
	}
}

func TestT2BacksOffAndStartsAfreshOnEachPacket(t *testing.T) {
	l := sctptest.Passive(t, &assoc.Config{HeartbeatInterval: -1})
	must.OK(t, l.A.Shutdown(l.Now))
	l.Expect(l.Flush(), "SHUTDOWN")
	l.Expect(l.Wait(900*time.Millisecond), "")
	l.Send(l.Tag, wire.AppendHeartbeat(nil, []byte("still here"))) // req 9260-9.2-6
	l.Expect(l.Wait(900*time.Millisecond), "")
	l.Expect(l.Wait(200*time.Millisecond), "SHUTDOWN")
	l.Expect(l.Wait(1800*time.Millisecond), "") // 2 s after the first expiry, section 6.3.3
	l.Expect(l.Wait(300*time.Millisecond), "SHUTDOWN")
}

// A SHUTDOWN was lost, and the peer sends HEARTBEATs faster than T2-shutdown expires, each of which
// restarts it: the shutdown completes nevertheless. Found by internal/test/simulation, seed 668.
func TestShutdownReachesAPeerThatSendsHeartbeats(t *testing.T) {
	l := sctptest.Passive(t, &assoc.Config{HeartbeatInterval: -1})
	must.OK(t, l.A.Shutdown(l.Now))
	l.Expect(l.Flush(), "SHUTDOWN")
	for range 3 {
		l.Expect(l.Wait(900*time.Millisecond), "")
		l.Expect(l.Send(l.Tag, wire.AppendHeartbeat(nil, []byte("are you there?"))), "SHUTDOWN")
	}
	l.Expect(l.Send(l.Tag, wire.AppendShutdownAck(nil)), "SHUTDOWN COMPLETE")
	l.InState(assoc.Closed)
}

func TestDataBeforeShutdownAsksForImmediateSacks(t *testing.T) {
	l := sctptest.Passive(t, &assoc.Config{HeartbeatInterval: -1})
	must.OK(t, l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{[]byte("last")}}))
	must.OK(t, l.A.Shutdown(l.Now))
	out := l.Flush()
	l.Expect(out, "DATA")
	d, _ := wire.AsData(sctptest.ChunkOf(out[0], wire.ChunkData))
	check.That(t, d.I(), "no I bit in SHUTDOWN-PENDING") // req 9260-6.1-22
}

func TestDataInShutdownSentIsAnsweredByShutdown(t *testing.T) {
	l := sctptest.Passive(t, &assoc.Config{HeartbeatInterval: -1})
	must.OK(t, l.A.Shutdown(l.Now))
	l.Expect(l.Flush(), "SHUTDOWN")
	out := l.Send(l.Tag, l.Data("late"))
	l.Expect(out, "SHUTDOWN") // req 9260-9.2-10
	sh, _ := wire.AsShutdown(sctptest.ChunkOf(out[0], wire.ChunkShutdown))
	check.Equal(t, "SHUTDOWN's Cumulative TSN", sh.CumTSN(), l.TSN-1)
	l.TSN--
	l.Expect(l.Send(l.Tag, l.Data("late")), "SHUTDOWN SACK")        // of a duplicate
	l.TSN++                                                         // a gap
	l.Expect(l.Send(l.Tag, l.Data("after a gap")), "SHUTDOWN SACK") // req 9260-9.2-11, 9260-6.2-15
	// No HEARTBEAT ACK, but what the peer has missed.
	l.Expect(l.Send(l.Tag, wire.AppendHeartbeat(nil, []byte("x"))), "SHUTDOWN SACK") // req 9260-8.3-3
	got := sctptest.Drain(l.A)
	check.That(t, len(got) >= 1 && string(got[0]) == "late", "received %q", got) // req 9260-6-2
	l.Send(l.Tag, sctptest.DataChunk(l.TSN-2, 1, 0, "what was missing"))
	l.Expect(l.Send(l.Tag, wire.AppendShutdownAck(nil)), "SHUTDOWN COMPLETE")
	l.InState(assoc.Closed)
}

func TestShutdownReceivedGoesOnSending(t *testing.T) {
	l := sctptest.Passive(t, &assoc.Config{HeartbeatInterval: -1})
	m := assoc.Message{Body: [2][]byte{[]byte("queued")}}
	must.OK(t, l.A.Send(l.Now, &m))
	l.Expect(l.Flush(), "DATA")
	l.Expect(l.Send(l.Tag, wire.AppendShutdown(nil, l.HostTSN-1)), "")
	l.InState(assoc.ShutdownReceived)                                                    // req 9260-9.2-7
	if err := l.A.Shutdown(l.Now); err != nil || l.A.State() != assoc.ShutdownReceived { // req 9260-9.2-8
		t.Errorf("Shutdown in SHUTDOWN-RECEIVED: %v", err)
	}
	if err := l.A.Send(l.Now, &m); !errors.Is(err, assoc.ErrClosing) { // req 9260-4-5
		t.Errorf("Send in SHUTDOWN-RECEIVED: %v", err)
	}
	l.Expect(l.Wait(1100*time.Millisecond), "DATA") // req 9260-9.2-9: T3-rtx
	l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag, wire.AppendShutdown(nil, l.HostTSN)))
	l.InState(assoc.ShutdownAckSent)
	l.Expect(l.Flush(), "SHUTDOWN ACK") // req 9260-9.2-14
	l.InState(assoc.ShutdownAckSent)
	l.Expect(l.Send(l.Tag, l.Data("too late")), "") // req 9260-6-3
	l.Expect(l.Send(l.Tag, wire.AppendShutdownComplete(nil, false)), "")
	l.InState(assoc.Closed) // req 9260-9.2-17
}

func TestShutdownChunksDuringSetup(t *testing.T) {
	for _, row := range []struct {
		name string
		lab  func(*testing.T) *sctptest.Lab
	}{
		{"COOKIE-WAIT", func(t *testing.T) *sctptest.Lab { return sctptest.Active(t, nil) }},
		{"COOKIE-ECHOED", func(t *testing.T) *sctptest.Lab { return sctptest.Echoed(t, nil) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := row.lab(t)
			state, deadline := l.A.State(), l.A.NextTimeout()
			l.Expect(l.Send(l.Tag, wire.AppendShutdown(nil, 1)), "") // req 9260-9.2-21
			const tag = 0x31415926
			out := l.Send(tag, wire.AppendShutdownAck(nil)) // req 9260-9.2-20
			l.Expect(out, "SHUTDOWN COMPLETE")
			sc, _ := wire.AsShutdownComplete(sctptest.ChunkOf(out[0], wire.ChunkShutdownComplete))
			check.That(t, out[0].VTag() == tag && sc.T(), "tag %#x, T %v", out[0].VTag(), sc.T())
			l.InState(state)
			check.Equal(t, "end of T1, as before", l.A.NextTimeout(), deadline)
		})
	}
}

// A peer that has sent SHUTDOWN has no more DATA: what comes is neither delivered nor acknowledged.
func TestDataBehindAShutdownIsDiscarded(t *testing.T) {
	// req 9260-6-2, 9260-6-3
	l := sctptest.Passive(t, nil)
	l.Send(l.Tag, l.Data("before"))
	m := assoc.Message{Body: [2][]byte{[]byte("still to be acknowledged")}}
	must.OK(t, l.A.Send(l.Now, &m))
	l.Flush()
	l.Send(l.Tag, wire.AppendShutdown(nil, l.HostTSN-1))
	l.InState(assoc.ShutdownReceived)
	l.Expect(l.Send(l.Tag, l.Data("behind")), "")
	got := sctptest.Drain(l.A)
	check.That(t, len(got) == 1 && string(got[0]) == "before", "received %q", got)
}

func TestShutdownChunksOnTheWire(t *testing.T) {
	l := sctptest.Passive(t, &assoc.Config{HeartbeatInterval: -1})
	l.Send(l.Tag, l.Data("one"))
	l.TSN++ // a gap: the second is not in sequence
	l.Send(l.Tag, l.Data("three"))
	m := assoc.Message{Body: [2][]byte{[]byte("mine")}}
	must.OK(t, l.A.Send(l.Now, &m))
	l.Flush()
	must.OK(t, l.A.Shutdown(l.Now))
	l.Expect(l.Flush(), "") // data is outstanding
	l.InState(assoc.ShutdownPending)
	out := l.Send(l.Tag, l.Sack(l.HostTSN))
	l.Expect(out, "SHUTDOWN SACK")
	// req 9260-3.3.8-1, 9260-9.2-2
	// TSN 1000
	if c := sctptest.ChunkOf(out[0], wire.ChunkShutdown); !bytes.Equal(c, []byte{7, 0, 0, 8, 0, 0, 3, 0xe8}) {
		t.Errorf("SHUTDOWN % x", c)
	}
	l.InState(assoc.ShutdownSent)
	got := l.A.NextTimeout()
	check.That(t, got == l.Now.Add(l.A.PathStats(0).RTO), "T2-shutdown expires at %v", got) // req 9260-9.2-3
	l.Send(l.Tag, sctptest.DataChunk(l.TSN-2, 1, 0, "two"))
	out = l.Send(l.Tag, wire.AppendShutdownAck(nil))
	// req 9260-3.3.13-1
	if c := sctptest.ChunkOf(out[0], wire.ChunkShutdownComplete); !bytes.Equal(c, []byte{14, 0, 0, 4}) {
		t.Errorf("SHUTDOWN COMPLETE % x", c)
	}

	l = sctptest.Passive(t, nil)
	out = l.Send(l.Tag, wire.AppendShutdown(nil, l.HostTSN-1))
	if c := sctptest.ChunkOf(out[0], wire.ChunkShutdownAck); !bytes.Equal(c, []byte{8, 0, 0, 4}) { // req 9260-3.3.9-1
		t.Errorf("SHUTDOWN ACK % x", c)
	}
}

func TestShutdownBeforeAnyDataNamesTheInitialTSNMinusOne(t *testing.T) {
	// req 9260-14-2
	l := sctptest.Passive(t, nil)
	must.OK(t, l.A.Shutdown(l.Now))
	out := l.Flush()
	s, err := wire.AsShutdown(sctptest.ChunkOf(out[0], wire.ChunkShutdown))
	check.That(t, err == nil && s.CumTSN() == l.TSN-1, "SHUTDOWN acknowledges %d, the peer's Initial TSN is %d",
		s.CumTSN(), l.TSN)
}

func TestNoSideStaysHalfOpen(t *testing.T) {
	// req 9260-1.5.1-1, 9260-11.1-3
	w, a, b := sctptest.Pair(t, nil, nil)
	payload := bytes.Repeat([]byte("x"), 20_000)
	w.Send(a, 0, payload)
	w.Send(b, 0, payload)
	must.OK(t, a.Shutdown(w.Now))
	m := assoc.Message{Body: [2][]byte{[]byte("more")}}
	told := w.RunUntil(w.Now.Add(time.Minute), func() bool {
		_, ok := w.Hosts[1].Event(assoc.EventPeerShutdown)
		return ok
	})
	must.That(t, told, "the peer was not told")
	for _, x := range []*assoc.Assoc{a, b} {
		err := x.Send(w.Now, &m)
		check.That(t, errors.Is(err, assoc.ErrClosing), "Send in %v: %v", x.State(), err)
	}
	w.Run(time.Minute)
	for _, x := range []*assoc.Assoc{a, b} {
		got := sctptest.Drain(x)
		check.That(t, x.State() == assoc.Closed && len(got) == 1 && bytes.Equal(got[0], payload),
			"%v with %d messages of the other side", x.State(), len(got))
	}
}

func TestNoHeartbeatsOnceShuttingDown(t *testing.T) {
	// req 9260-8.3-2
	cfg := &assoc.Config{HeartbeatInterval: time.Second, AssocMaxRetrans: 100, RTOMax: 10 * time.Second}
	l := sctptest.Passive(t, cfg)
	must.OK(t, l.A.Shutdown(l.Now))
	sent := l.Flush()
	sent = append(sent, l.Wait(40*time.Second)...)
	l.InState(assoc.ShutdownSent)
	l = sctptest.Passive(t, cfg)
	sent = append(sent, l.Send(l.Tag, wire.AppendShutdown(nil, l.HostTSN-1))...)
	sent = append(sent, l.Wait(40*time.Second)...)
	l.InState(assoc.ShutdownAckSent)
	check.That(t, len(sent) >= 10, "only %d packets", len(sent))
	for _, p := range sent {
		must.That(t, !sctptest.Has(p, wire.ChunkHeartbeat), "HEARTBEAT: %q", sctptest.Describe(sent))
	}
}

func TestAnyPacketInShutdownSentShowsThatThePeerLives(t *testing.T) {
	// req 9260-9.2-6
	l := sctptest.Passive(t, &assoc.Config{HeartbeatInterval: -1, AssocMaxRetrans: 2})
	must.OK(t, l.A.Shutdown(l.Now))
	l.Flush()
	for range 3 {
		for range 2 { // the limit
			l.Now = l.A.NextTimeout()
			l.A.HandleTimeout(l.Now)
			l.Expect(l.Flush(), "SHUTDOWN")
		}
		l.Now = l.Now.Add(100 * time.Millisecond)
		l.Send(l.Tag, wire.AppendHeartbeat(nil, []byte("still here")))
		check.Equal(t, "end of T2-shutdown, restarted", l.A.NextTimeout(), l.Now.Add(l.A.PathStats(0).RTO))
	}
	l.InState(assoc.ShutdownSent)
	l.Wait(time.Hour)
	l.InState(assoc.Closed)
}

func TestNoDataInTheLastStates(t *testing.T) {
	// req 9260-6-1: DATA is sent in ESTABLISHED, SHUTDOWN-PENDING and SHUTDOWN-RECEIVED, and in no
	// other state.
	var src *tap
	up := func(t *testing.T) *sctptest.Lab {
		src = &tap{}
		l := sctptest.NewLab(t)
		l.Host.Source = src
		l.Listen(&assoc.Config{HeartbeatInterval: -1})
		l.Handshake()
		return l
	}
	sends := func(l *sctptest.Lab) bool {
		src.n++
		return len(l.Flush()) > 0
	}
	l := up(t)
	check.That(t, sends(l), "no DATA in ESTABLISHED")
	must.OK(t, l.A.Shutdown(l.Now))
	l.InState(assoc.ShutdownPending)
	check.That(t, sends(l), "no DATA in SHUTDOWN-PENDING")
	l.Expect(l.Send(l.Tag, l.Sack(l.HostTSN+1)), "SHUTDOWN")
	l.InState(assoc.ShutdownSent)
	check.That(t, !sends(l), "DATA in SHUTDOWN-SENT")
	l = up(t)
	sends(l)
	l.Expect(l.Send(l.Tag, wire.AppendShutdown(nil, l.HostTSN-1)), "")
	l.InState(assoc.ShutdownReceived)
	check.That(t, sends(l), "no DATA in SHUTDOWN-RECEIVED")
	l.Expect(l.Send(l.Tag, l.Sack(l.HostTSN+1)), "SHUTDOWN ACK")
	l.InState(assoc.ShutdownAckSent)
	check.That(t, !sends(l), "DATA in SHUTDOWN-ACK-SENT")
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

func (s *tap) Idle() bool { return s.n == 0 }

func (s *tap) Acked(rawio.Time, wire.StreamID, uint64) { s.acked++ }

// The last packet, which may outlive the association, leaves from the path's own address where the
// link does not say which one the peer has sent to.
func TestShutdownCompleteLeavesFromThePathsAddress(t *testing.T) {
	l := sctptest.Passive(t, nil)
	must.OK(t, l.A.Shutdown(l.Now))
	l.Expect(l.Flush(), "SHUTDOWN")
	l.Host.Receive(l.Now, &rawio.Packet{Data: sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag,
		wire.AppendShutdownAck(nil)), Remote: l.Peer})
	l.Host.Poll(l.Now, func(_ *assoc.Assoc, p *rawio.Packet) {
		check.That(t, p.Local == l.Host.Addr && p.Remote == l.Peer, "from %v to %v", p.Local, p.Remote)
	})
	l.InState(assoc.Closed)
}

// RFC 6458 section 8.1.8.
func TestAutoCloseEndsWhatIsIdle(t *testing.T) {
	const idle = 10 * time.Second
	speak := func(w *sctptest.World, a *assoc.Assoc) {
		w.Run(8 * time.Second)
		w.Send(a, 0, []byte("x"))
	}
	for _, row := range []struct {
		name  string
		idle  time.Duration
		story func(w *sctptest.World, a, b *assoc.Assoc)
		lives bool
	}{
		{"nobody has spoken", idle, func(w *sctptest.World, a, b *assoc.Assoc) { w.Run(9 * time.Second) }, false},
		{"its own data", idle, func(w *sctptest.World, a, b *assoc.Assoc) { speak(w, a); w.Run(4 * time.Second) }, true},
		{"the peer's data", idle, func(w *sctptest.World, a, b *assoc.Assoc) { speak(w, b); w.Run(4 * time.Second) }, true},
		{"data, and silence", idle, func(w *sctptest.World, a, b *assoc.Assoc) { speak(w, b); w.Run(10 * time.Second) }, false},
		{"off", 0, func(w *sctptest.World, a, b *assoc.Assoc) { w.Run(time.Hour) }, true},
		{"turned on while it lives", 0, func(w *sctptest.World, a, b *assoc.Assoc) {
			w.Run(time.Hour)
			must.OK(t, a.Reconfigure(w.Now, func(c *assoc.Config) { c.AutoClose = time.Second }))
		}, false},
		{"turned off while it lives", idle, func(w *sctptest.World, a, b *assoc.Assoc) {
			must.OK(t, a.Reconfigure(w.Now, func(c *assoc.Config) { c.AutoClose = 0 }))
			w.Run(time.Hour)
		}, true},
	} {
		// which is no user data
		w, a, b := sctptest.Pair(t, &assoc.Config{AutoClose: row.idle, HeartbeatInterval: time.Second}, nil)
		row.story(w, a, b)
		w.Run(time.Second)
		err, down := w.Hosts[0].DownErr()
		check.That(t, down != row.lives && (row.lives || errors.Is(err, assoc.ErrShutdown)), "%s: down %v with %v",
			row.name, down, err)
	}
}

// A peer shuts down when all its DATA is acknowledged. One that does so, or agrees to the shutdown
// of this side, although some of it has not come is told of a Protocol Violation, and readers do
// not take that for a graceful end. What can be delivered is.
func TestShutdownWithDataMissingIsAViolation(t *testing.T) {
	// req 9260-9.2-7, 9260-9.2-14
	fragment := func(l *sctptest.Lab, flags uint8, ssn wire.SSN, payload string) []byte {
		b := wire.AppendDataHeader(nil, wire.DataFields{Flags: flags, TSN: l.TSN, SSN: ssn, PayloadLen: len(payload)})
		l.TSN++
		return append(b, payload...)
	}
	for _, row := range []struct {
		name    string
		data    func(l *sctptest.Lab) [][]byte
		missing bool
	}{
		{"nothing is missing", func(l *sctptest.Lab) [][]byte { return [][]byte{l.Data("whole")} }, false},
		{"a TSN is missing", func(l *sctptest.Lab) [][]byte {
			first := l.Data("whole")
			l.TSN++
			return [][]byte{first, l.Data("behind a hole...")}
		}, true},
		{"the end of a message is missing", func(l *sctptest.Lab) [][]byte {
			return [][]byte{l.Data("whole"), fragment(l, wire.FlagB, 0, "begun")}
		}, true},
		{"a message of an ordered stream is missing", func(l *sctptest.Lab) [][]byte {
			return [][]byte{l.Data("whole"), fragment(l, wire.FlagB|wire.FlagE, 1, "waits for the one before")}
		}, true},
		{"a fragment in the middle was late", func(l *sctptest.Lab) [][]byte {
			list := [][]byte{l.Data("whole"), fragment(l, wire.FlagB, 0, "aaaa"), fragment(l, 0, 0, "bbbb"),
				fragment(l, wire.FlagE, 0, "cccc")}
			list[1], list[2], list[3] = list[3], list[1], list[2]
			return list
		}, false},
	} {
		for _, end := range []string{"SHUTDOWN", "SHUTDOWN, of this side too", "SHUTDOWN ACK"} {
			t.Run(row.name+": "+end, func(t *testing.T) {
				l := sctptest.Passive(t, &assoc.Config{HeartbeatInterval: -1})
				if end != "SHUTDOWN" {
					must.OK(t, l.A.Shutdown(l.Now))
					l.Expect(l.Flush(), "SHUTDOWN")
				}
				l.Send(l.Tag, row.data(l)...)
				chunk, answer := wire.AppendShutdown(nil, l.HostTSN-1), "SHUTDOWN ACK"
				if end == "SHUTDOWN ACK" {
					chunk, answer = wire.AppendShutdownAck(nil), "SHUTDOWN COMPLETE"
				}
				out := l.Send(l.Tag, chunk)
				got := sctptest.Drain(l.A)
				must.That(t, len(got) > 0 && string(got[0]) == "whole", "received %q", got)
				if !row.missing {
					l.Expect(out, answer)
					return
				}
				l.Expect(out, "ABORT")
				code, _ := sctptest.CauseOf(out[0])
				check.Equal(t, "cause", code, wire.CauseProtocolViolation)
				err, _ := l.Host.DownErr()
				check.Error(t, "the end", err, io.ErrUnexpectedEOF)
				check.Error(t, "the end", err, syscall.ECONNABORTED)
				check.Equal(t, "violations", l.A.Stats().Violations, 1)
			})
		}
	}
}
