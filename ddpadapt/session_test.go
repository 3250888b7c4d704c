package ddpadapt

import (
	"bytes"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// A session from Initiate to the reuse of its stream.
func TestSessionAccepted(t *testing.T) {
	a, b := newPair(t)
	ua, ub := a.newStream(8), b.newStream(8)
	sa := must.Get(a.Open(0, -1, ua.Stream, []byte("hello")))(t)
	must.OK(t, ua.sendText("early"))
	// req 5043-5.2.1-1, 5043-5.2.3-1, 5043-5.2.3-2, 5043-5.2.3-4, 5043-5.2-1, 5043-10-1: the layout
	// on the wire
	init := a.pullPackets()
	must.That(t, len(init) == 1, "%v handed over before the Accept", init) // req 5043-6.6-2: the segment waits
	d := init[0].data
	must.That(t, d.U() && d.PPID() == 17 && bytes.Equal(d.Payload(), []byte("\x00\x00\x00\x01hello")),
		"Initiate is U=%v PPID=%d %q", d.U(), d.PPID(), d.Payload())
	b.deliverPackets(init...)
	ev := b.expectEvents(EventInitiate)[0]                     // req 5043-5.2.3-9, 5043-6.4-1
	must.Equal(t, "private data", string(ev.Private), "hello") // req 5043-5.2.3-10
	sb := ev.Session
	check.That(t, b.events.items[:1][0].Session == nil, "an event keeps what it told of when it is taken")
	must.That(t, sb.State() == Pending && !sb.Active() && sb.Stream() == sa.Stream(),
		"passive session: %v on stream %d", sb.State(), sb.Stream())
	must.OK(t, sb.Accept(0, ub.Stream, []byte("welcome")))
	must.OK(t, ub.sendText("s1"))
	// req 5043-6.1-1, 5043-5.2.1-2: one counter per direction, from 0, for both PPIDs
	ans := b.expectSends("0: 0 accept welcome", "0: 1 segment s1")
	if d := ans[1].data; !d.U() || d.PPID() != 16 { // req 5043-10-1, 5043-5.2-1
		t.Fatalf("segment is U=%v PPID=%d", d.U(), d.PPID())
	}
	a.deliverPackets(ans...)
	ev = a.expectEvents(EventAccepted)[0]
	must.That(t, ev.Session == sa && string(ev.Private) == "welcome", "event %+v", ev)
	ua.checkLog(t, "s1")
	b.deliverPackets(a.expectSends("0: 1 segment early")...)
	ub.checkLog(t, "early")

	must.OK(t, sa.Terminate(0))
	must.Equal(t, "state", sa.State(), Closing)
	a.ackArrived()
	ua.checkLog(t, "completed 1")
	end := a.expectSends("0: 2 terminate")                                  // req 5043-6.2-3, 5043-6.2-1
	must.Equal(t, "octets of the Terminate", len(end[0].data.Payload()), 4) // req 5043-5.2.3-8
	b.deliverPackets(end...)
	b.ackArrived()
	var te *llp.TerminatedError
	ev = b.expectEvents(EventTerminated)[0]
	must.That(t, errors.As(ev.Err, &te) && te.ByPeer && te.Cause == nil, "event %+v", ev)
	ub.checkLog(t, "peer closed", "completed 1")
	// Half closed: the other direction still carries data.
	must.Equal(t, "state", sb.State(), PeerClosed)
	must.OK(t, ub.sendText("last"))
	must.OK(t, sb.Terminate(0))
	a.deliverPackets(b.expectSends("0: 2 segment last", "0: 3 terminate")...)
	ua.checkLog(t, "last", "peer closed")
	a.ackArrived()
	b.ackArrived()
	a.expectEvents(EventTerminated, EventEnded)
	b.expectEvents(EventEnded)
	must.That(t, sa.State() == Ended && sb.State() == Ended && a.Sessions() == 0 && sa.Err() == nil && sb.Err() == nil,
		"%v and %v, %d sessions, %v %v", sa.State(), sb.State(), a.Sessions(), sa.Err(), sb.Err())
	// req 5043-6.1-1, 5043-6-1: the next session on the stream starts at 0 again.
	must.Do(a.Open(0, 0, a.newStream(1).Stream, nil))(t)
	a.expectSends("0: 0 initiate")
}

func TestSessionRejected(t *testing.T) {
	a, b := newPair(t)
	ua := a.newStream(1)
	sa, _ := a.Open(0, 3, ua.Stream, nil) // req 5043-5.2.3-5: no private data
	exchangeAll(a, b)
	sb := b.expectEvents(EventInitiate)[0].Session
	must.OK(t, sb.Reject(0, []byte("no room")))
	rej := b.expectSends("3: 0 reject no room") // req 5043-6.3-1
	a.deliverPackets(rej...)
	var re *llp.RejectedError
	ev := a.expectEvents(EventRejected, EventEnded)[0]
	must.That(t, errors.As(ev.Err, &re) && string(re.Private) == "no room" && string(ev.Private) == "no room" &&
		errors.Is(ev.Err, syscall.ECONNREFUSED), "event %+v", ev)
	ua.checkLog(t, "fatal 3/0")
	b.expectEvents()
	must.Equal(t, "state before the Reject is acknowledged", sb.State(), Over)
	b.ackArrived()
	b.expectEvents(EventEnded)
	a.expectSends() // req 5043-6.3-1: no Terminate follows
	b.expectSends()
	must.That(t, sa.Terminate(0) != nil && sb.Accept(0, b.newStream(0).Stream, nil) == llp.ErrState,
		"calls on a rejected session succeed")
}

func TestPrivateDataLimit(t *testing.T) {
	// req 5043-5.2.3-6
	a, b := newPair(t)
	long := bytes.Repeat([]byte{'x'}, llp.MaxPrivateData+1)
	_, err := a.Open(0, -1, a.newStream(0).Stream, long)
	must.That(t, err == llp.ErrPrivateDataTooLong, "Open: %v", err)
	a.expectSends()
	must.Do(a.Open(0, -1, a.newStream(0).Stream, long[:llp.MaxPrivateData]))(t)
	init := a.pullPackets()
	must.Equal(t, "octets of the Initiate", len(init[0].data.Payload()), 516)
	b.deliverPackets(init...)
	s := b.expectEvents(EventInitiate)[0].Session
	must.Equal(t, "Accept", s.Accept(0, b.newStream(0).Stream, long), llp.ErrPrivateDataTooLong)
	must.Equal(t, "Reject", s.Reject(0, long), llp.ErrPrivateDataTooLong)
	must.OK(t, s.Reject(0, long[:llp.MaxPrivateData]))
}

// The private data belongs to the caller again when Open returns.
func TestPrivateDataIsCopied(t *testing.T) {
	a, _ := newPair(t)
	data := []byte("mine")
	a.Open(0, -1, a.newStream(0).Stream, data)
	copy(data, "gone")
	a.expectSends("0: 0 initiate mine")
}

func TestPendingLimit(t *testing.T) {
	b := newEnd(t, newFake(), Config{MaxPending: 2})
	b.expectEvents(EventUp)
	b.injectLines(0, "0 initiate")
	b.injectLines(1, "0 initiate")
	b.injectLines(2, "0 initiate") // req 5043-6.4-2
	first := b.expectEvents(EventInitiate, EventInitiate)[0].Session
	// req 5043-5.2.3-12, 5043-6.4-3, 5043-6.3-3: a Terminate, as the only message, not a Reject
	p := b.expectSends("2: 0 terminate")
	must.Equal(t, "sessions refused", b.Stats().Refused, 1)
	p[0].arrived = true
	b.ackArrived()
	b.expectEvents()
	must.Equal(t, "sessions", b.Sessions(), 2)
	// An answer of the user makes room.
	must.OK(t, first.Reject(0, nil))
	b.injectLines(2, "0 initiate")
	second := b.expectEvents(EventInitiate)[0].Session
	must.OK(t, second.Accept(0, b.newStream(0).Stream, nil))
	b.injectLines(3, "0 initiate")
	b.expectEvents(EventInitiate)
	// A restart forgets all that waited.
	b.a.life++
	b.HandleEvent(0, assoc.Event{Kind: assoc.EventRestart})
	for ev, ok := b.PollEvent(); ok; ev, ok = b.PollEvent() {
		must.That(t, ev.Kind != EventInitiate, "event %+v", ev)
	}
	b.injectLines(4, "0 initiate")
	b.injectLines(5, "0 initiate")
	b.expectEvents(EventInitiate, EventInitiate)

	// An Initiate that has waited for the end of a session may find no room when its time has come.
	c := newEnd(t, newFake(), Config{MaxPending: 1})
	c.expectEvents(EventUp)
	c.pendingSession(0).Reject(0, nil)
	c.pullPackets()[0].arrived = true
	c.injectLines(0, "0 initiate")
	c.pendingSession(1)
	c.ackArrived()
	c.expectEvents(EventEnded)
	c.expectSends("0: 0 terminate")
	c.checkCounts()

	// The active side sees a refusal that is not the user's.
	a, _ := newPair(t)
	a.Open(0, 0, a.newStream(0).Stream, nil)
	a.pullPackets()
	a.injectLines(0, "0 terminate")
	ev := a.expectEvents(EventTerminated)[0]
	must.That(t, ev.Err.(*llp.TerminatedError).ByPeer, "event %+v", ev)
	a.expectSends() // req 5043-6.4-3: the session is over
}

func TestWithoutPendingRequestsEachIsRefused(t *testing.T) {
	b := newEnd(t, newFake(), Config{MaxPending: -1})
	b.expectEvents(EventUp)
	b.injectLines(5, "0 initiate")
	b.expectEvents()
	b.expectSends("5: 0 terminate")
}

// A Terminate waits until the control message before it is known to have arrived.
func TestTerminateDoesNotOvertake(t *testing.T) {
	a, b := newPair(t)
	a.Open(0, 0, a.newStream(0).Stream, nil)
	b.deliverPackets(a.expectSends("0: 0 initiate")...)
	sb := b.expectEvents(EventInitiate)[0].Session
	sb.Accept(0, b.newStream(0).Stream, nil)
	acc := b.expectSends("0: 0 accept")
	must.OK(t, sb.Terminate(0))
	b.expectSends() // req 5043-6.6-1: the Accept may still be lost
	a.deliverPackets(acc...)
	b.ackArrived()
	b.expectSends("0: 1 terminate")
}

// A graceful end waits for the last segment, not for its acknowledgement.
func TestTerminateFollowsLastSegment(t *testing.T) {
	a, b := newPair(t)
	sa, _, ua, _ := connectSession(a, b)
	ua.sendText("one")
	ua.sendText("two")
	must.OK(t, sa.Terminate(0))
	must.Error(t, "message after the Terminate", ua.sendText("three"), ddp.ErrClosing)
	b.deliverPackets(a.expectSends("0: 1 segment one", "0: 2 segment two", "0: 3 terminate")...)
	a.ackArrived()
	ua.checkLog(t, "completed 1", "completed 2")
}

// The DDP stream's user can ask for the graceful end too.
func TestCloseSendTerminates(t *testing.T) {
	a, b := newPair(t)
	sa, _, ua, _ := connectSession(a, b)
	ua.sendText("one")
	ua.CloseSend()
	b.deliverPackets(a.expectSends("0: 1 segment one")...)
	a.ackArrived()
	a.expectSends("0: 2 terminate")
	must.Equal(t, "state", sa.State(), Closing)
}

// A session that the active side gives up before the answer stays within the legal sequences.
func TestAbortBeforeAnswer(t *testing.T) {
	// req 5043-6.1-3, 5043-6.6-1
	for _, c := range []struct {
		name   string
		answer string
		sends  []string
	}{
		{"accepted: terminated at once", "0 accept", []string{"0: 1 terminate"}},
		{"rejected: over", "0 reject", nil},
		{"refused: over", "0 terminate", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := newPair(t)
			s, _ := a.Open(0, 0, a.newStream(0).Stream, nil)
			must.Equal(t, "graceful end before the answer", s.Terminate(0), llp.ErrState)
			init := a.expectSends("0: 0 initiate")
			s.Abort()
			b.deliverPackets(init...)
			a.ackArrived()
			a.expectSends()
			a.injectLines(0, "1 segment x", c.answer)
			a.expectSends(c.sends...)
			for _, p := range a.flight {
				p.arrived = true
			}
			a.ackArrived()
			if len(c.sends) > 0 {
				a.expectEvents()
				a.injectLines(0, "2 terminate")
			}
			a.expectEvents(EventEnded)
		})
	}
}

// A malformed refusal is the peer's last message where its answer is awaited, and nowhere else.
func TestMalformedRefusal(t *testing.T) {
	for st, want := range map[sessionState]sessionState{stateInitiateSent: stateDone, stateOpen: stateEnding} {
		_, b := newPair(t)
		s := bringInto(b, st, true)
		ppid, msg := encodeLine(fmt.Sprint(s.nextSSN, " reject"))
		b.injectMessage(0, ppid, 0, msg) // ordered
		check.That(t, s.state == want, "in state %v it leads to %v", st, s.state)
	}
}

// An answer proves that the Initiate has arrived, before any acknowledgement does.
func TestAnswerConfirmsInitiate(t *testing.T) {
	// req 5043-6.6-4
	a, b := newPair(t)
	ua := a.newStream(1)
	sa, _ := a.Open(0, 0, ua.Stream, nil)
	b.deliverPackets(a.pullPackets()...)
	b.expectEvents(EventInitiate)[0].Session.Accept(0, b.newStream(1).Stream, nil)
	a.deliverPackets(b.pullPackets()...)
	must.OK(t, sa.Terminate(0))
	a.expectSends("0: 1 terminate") // with the acknowledgement of the Initiate still missing
}

// Control messages ask for an immediate SACK, since the session waits for it; segments do not.
func TestSackNowOnControl(t *testing.T) {
	a, b := newPair(t)
	_, _, ua, _ := connectSession(a, b)
	var msg = new(msgT)
	ua.sendText("x")
	must.That(t, a.Next(0, 1200, msg) && !msg.SackNow, "segment %+v", msg)
	a.Open(0, -1, a.newStream(0).Stream, nil)
	must.That(t, a.Next(0, 1200, msg) && msg.SackNow, "control message %+v", msg)
}

// A stream is not used again while anything of its last session may be outstanding.
func TestStreamReuse(t *testing.T) {
	a, b := newPair(t)
	sa, sb, ua, ub := connectSession(a, b)
	open := func() error {
		_, err := a.Open(0, int(sa.Stream()), a.newStream(0).Stream, nil)
		return err
	}
	must.Equal(t, "open session", open(), ErrStreamInUse)
	ub.sendText("x")
	ub.sendText("y")
	seg := b.expectSends("0: 1 segment x", "0: 2 segment y")
	sb.Terminate(0)
	a.deliverPackets(seg[1])
	seg[0].arrived = true // the test keeps it back from the user only
	b.ackArrived()
	term := b.expectSends("0: 3 terminate")
	a.deliverPackets(term...)
	a.expectEvents() // received, but not in DDP-SSN order
	sa.Terminate(0)
	mine := a.expectSends("0: 1 terminate")
	b.deliverPackets(mine...)
	a.ackArrived()
	if err := open(); err != ErrStreamInUse { // req 5043-6.6-5
		t.Fatalf("a segment of the peer outstanding: %v", err)
	}
	a.deliverPackets(seg[0])
	ua.checkLog(t, "x", "y", "peer closed")
	a.expectEvents(EventTerminated, EventEnded)
	must.OK(t, open())
	b.expectEvents(EventTerminated)
	must.Equal(t, "state while the Terminate is not acknowledged", sb.State(), Over) // req 5043-6.6-5
	_, err := b.Open(0, 0, b.newStream(0).Stream, nil)
	must.That(t, err == ErrStreamInUse, "own Terminate outstanding: %v", err)
	b.ackArrived()
	b.expectEvents(EventEnded)
	ub.checkLog(t, "completed 1", "completed 2", "peer closed")
}

// No further segment leaves, the memory is the user's again, and the peer is told.
func TestAbortOfAnOpenSessionIsATerminate(t *testing.T) {
	// req 5040-7-2, 5040-7-3, 5041-3-9, 5041-3-10
	a, b := newPair(t)
	_, sb, ua, ub := connectSession(a, b)
	ua.sendText("one")
	one := a.pullPackets()
	ua.sendText("two")
	ua.Stream.Abort()
	must.That(t, len(a.a.detached) != 0, "the user's memory is still referenced")
	ua.checkLog(t, "failed 1", "failed 2")
	b.deliverPackets(one...)
	a.ackArrived()
	b.deliverPackets(a.expectSends("0: 2 terminate")...)
	ub.checkLog(t, "one", "peer closed")
	b.expectEvents(EventTerminated)
	ub.sendText("dropped")
	sb.Terminate(0)
	a.deliverPackets(b.pullPackets()...)
	b.ackArrived()
	a.deliverPackets(b.pullPackets()...)
	a.ackArrived()
	ua.checkLog(t)
	a.expectEvents(EventEnded)
}

func TestASegmentIsTransferredOrReported(t *testing.T) {
	// req 5041-3-3
	a, b := newPair(t)
	_, _, ua, _ := connectSession(a, b)
	for _, text := range []string{"arrives", "is lost", "is never sent"} {
		ua.sendText(text)
	}
	list := a.pullPackets()
	b.deliverPackets(list[0])
	a.ackArrived()
	ua.checkLog(t, "completed 1")
	a.HandleEvent(0, assoc.Event{Kind: assoc.EventDown, Err: errors.New("gone")})
	ua.checkLog(t) // until its turn comes: there may be thousands
	a.expectEvents(EventDown, EventDown)
	ua.checkLog(t, "fatal 3/0", "failed 2", "failed 3")
}

func TestTheTwoKindsOfEnd(t *testing.T) {
	// req 5041-3-11
	a, b := newPair(t)
	sa, _, _, ub := connectSession(a, b)
	must.OK(t, sa.Terminate(0))
	exchangeAll(a, b)
	var te *llp.TerminatedError
	ev := b.expectEvents(EventTerminated)[0]
	check.That(t, errors.As(ev.Err, &te) && te.Cause == nil, "end of the stream: %+v", ev)
	ub.checkLog(t, "peer closed")
	b.HandleEvent(0, assoc.Event{Kind: assoc.EventDown, Err: assoc.ErrShutdown})
	list := b.expectEvents(EventDown, EventDown)
	ev = list[1]
	check.That(t, ev.Session == nil && ev.Err == assoc.ErrShutdown, "end of the association: %+v", ev)
}

// A program that asks with errors.Is learns which side ended the session.
func TestWhoEndedTheSession(t *testing.T) {
	broken := &SequenceError{}
	for _, row := range []struct {
		name           string
		err            *llp.TerminatedError
		reset, aborted bool
	}{
		{"the peer", &llp.TerminatedError{ByPeer: true}, true, false},
		{"a fault of the peer's", &llp.TerminatedError{Cause: broken}, true, false},
		{"this end", &llp.TerminatedError{}, false, true},
	} {
		reset, aborted := errors.Is(row.err, syscall.ECONNRESET), errors.Is(row.err, syscall.ECONNABORTED)
		check.That(t, reset == row.reset && aborted == row.aborted, "%s: reset %v, aborted %v", row.name, reset,
			aborted)
	}
}
