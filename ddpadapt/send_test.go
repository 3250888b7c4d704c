package ddpadapt

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestInFlightLimit(t *testing.T) {
	// req 5043-10-7, 5043-10-8
	a, b := newPair(t)
	sa, _, ua, _ := connectSession(a, b)
	for range MaxInFlight + 10 {
		must.OK(t, ua.SendTagged(1, 0, 0, nil, 1))
	}
	list := a.pullPackets()
	must.Equal(t, "messages in flight", len(list), MaxInFlight)
	b.deliverPackets(list[0])
	a.ackArrived()
	must.Equal(t, "messages that one acknowledgement lets out", len(a.pullPackets()), 1)
	sa.Abort()
	a.expectSends() // the Terminate is a message too
	b.deliverPackets(list[1:]...)
	a.ackArrived()
	must.Equal(t, "messages instead of the Terminate", len(a.pullPackets()), 1)
}

// A packet that has DATA already takes the beginning of the next long message, but a short one goes
// in one piece.
func TestSegmentsForTheRestOfAPacket(t *testing.T) {
	for _, c := range []struct {
		name         string
		length, room int
		want         []int // octets of the messages
	}{
		{"a long message is cut for the room", 2000, 200, []int{200, 200, 200, 200, 200, 200, 200, 200, 200, 400}},
		{"a chunk's worth is cut no smaller", 2000, 1200, []int{1200, 840}},
		{"a short message stays whole", MinMULPDU - ddp.UntaggedHeaderLen, 100, []int{ssnLen + MinMULPDU}},
		{"one octet more is cut", MinMULPDU - ddp.UntaggedHeaderLen + 1, 100, []int{100, 439}},
		{"and so does the short rest of one", 1200, 700, []int{700, 540}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := newPair(t)
			_, _, ua, _ := connectSession(a, b)
			ua.sendText(strings.Repeat("x", c.length))
			var got []int
			for msg := (assoc.Message{}); a.Next(0, c.room, &msg); {
				got = append(got, msg.Len())
			}
			check.Slice(t, "octets of the messages", got, c.want)
		})
	}
}

func TestMULPDUFollowsThePathAndIsNeverBelow516(t *testing.T) {
	// req 5043-9-1, 5043-9-2, 5041-3-1
	for _, c := range []struct {
		name          string
		payload, want int
	}{
		{"Ethernet path: payload of a chunk less the DDP-SSN", 1432, 1430},
		{"jumbo path", 65000, 64998},
		{"path too narrow: never below 516", 484, 516},
		{"just wide enough", 520, 518},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := newPair(t)
			sa, _, ua, _ := connectSession(a, b)
			a.a.payload = c.payload // the path MTU changes
			must.Equal(t, "MULPDU", sa.MULPDU(), c.want)
			// req 5043-9-5, 5043-9-3, 5043-5.2.2-1, 5043-4-1: no segment is larger, each is one
			// message
			ua.sendText(strings.Repeat("x", c.want+100))
			list := a.pullPackets()
			n := len(list[0].data.Payload())
			must.That(t, n == c.want+ssnLen && len(list) == 2, "%d messages, the first of %d octets", len(list), n)
		})
	}
}

// A packet with less room than the smallest path gives a shorter segment.
func TestRoomOfNext(t *testing.T) {
	a, b := newPair(t)
	_, _, ua, _ := connectSession(a, b)
	ua.sendText(strings.Repeat("x", 2000))
	var msg assoc.Message
	must.That(t, a.Next(0, 700, &msg) && msg.Len() == 700, "message of %d octets", msg.Len())
	must.That(t, a.Next(0, 1<<16, &msg) && msg.Len() == 1200, "message of %d octets", msg.Len())
}

// The user's memory is handed over as it is, not copied.
func TestSendIsZeroCopy(t *testing.T) {
	a, b := newPair(t)
	_, _, ua, _ := connectSession(a, b)
	mem := []byte("payload")
	ua.SendUntagged(0, [5]byte{}, ddp.Gather{{Mem: ddp.Bytes(mem), Len: 7}}, 1)
	var msg assoc.Message
	must.That(t, a.Next(0, 1200, &msg) && &msg.Body[0][0] == &mem[0], "payload was copied")
}

// An acknowledgement of a session before does not count for the present one.
func TestAckOfEarlierSession(t *testing.T) {
	a, b := newPair(t)
	sa, _, ua, _ := connectSession(a, b)
	ua.sendText("x")
	p := a.pullPackets()[0]
	a.a.life++
	a.HandleEvent(0, assoc.Event{Kind: assoc.EventRestart})
	a.expectEvents(EventDown, EventDown, EventUp)
	s, _ := a.Open(0, int(sa.Stream()), a.newStream(0).Stream, nil)
	a.expectSends("0: 0 initiate")
	a.Acked(0, sa.Stream(), p.token)
	must.Equal(t, "messages unacknowledged", s.unackedMessages, 1)
}

// The end of the association reaches every consumer, with its cause.
func TestAssociationDown(t *testing.T) {
	// req 5043-11.3-3
	a, b := newPair(t)
	_, _, ua, ub := connectSession(a, b)
	ua.sendText("x")
	a.pullPackets()
	pending, _ := a.Open(0, -1, a.newStream(0).Stream, nil)
	b.injectLines(5, "0 initiate")
	b.expectEvents(EventInitiate)
	cause := errors.New("retransmission limit")
	for _, e := range []*end{a, b} {
		e.HandleEvent(0, assoc.Event{Kind: assoc.EventDown, Err: cause})
		for i, ev := range e.expectEvents(EventDown, EventDown, EventDown) {
			must.That(t, ev.Err == cause && (ev.Session == nil) == (i == 2) &&
				(i >= 2 || ev.Session.State() == Ended && ev.Session.Err() == cause),
				"event %d: %+v", i, ev)
		}
		e.expectSends() // req 5043-11.3-1: no exchange on the streams
		must.That(t, e.Err() == cause && e.Sessions() == 0, "%v, %d sessions", e.Err(), e.Sessions())
		_, err := e.Open(0, -1, e.newStream(0).Stream, nil)
		must.That(t, err == cause, "Open: %v", err)
	}
	ua.checkLog(t, "fatal 3/0", "failed 1")
	ub.checkLog(t, "fatal 3/0")
	must.Equal(t, "Terminate", pending.Terminate(0), cause)
	pending.Abort()
	a.expectSends()
}

// A restart by the peer ends all sessions; new ones work. The packet that restarts the association
// may carry the peer's first Initiate, ahead of the event.
func TestRestartEndsAllSessionsAndNewOnesWork(t *testing.T) {
	a, b := newPair(t)
	_, _, ua, _ := connectSession(a, b)
	ua.sendText("never sent")
	a.a.life++
	a.expectSends()
	a.HandleEvent(0, assoc.Event{Kind: assoc.EventRestart})
	must.Equal(t, "error of the first session", a.expectEvents(EventDown, EventDown, EventUp)[0].Err, ErrRestarted)
	ua.checkLog(t, "fatal 3/0", "failed 1")

	b.a.life++
	a.Open(0, 0, a.newStream(0).Stream, nil)
	b.deliverPackets(a.pullPackets()...)
	b.HandleEvent(0, assoc.Event{Kind: assoc.EventRestart})
	b.expectEvents(EventDown, EventDown, EventUp, EventInitiate)
}

func TestNotDDP(t *testing.T) {
	for _, c := range []struct {
		name string
		a    fake
	}{
		{"no indication", fake{payload: 1200, out: 8, in: 8, silent: true}},       // req 5043-11.1-3
		{"another indication", fake{payload: 1200, out: 8, in: 8, indication: 2}}, // req 5043-11.1-5
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newEnd(t, &c.a, Config{})
			ev := m.expectEvents(EventDown)[0]
			must.That(t, ev.Err == ErrNotDDP && ev.Session == nil, "event %+v", ev)
			_, err := m.Open(0, -1, m.newStream(0).Stream, nil)
			must.That(t, err == ErrNotDDP, "Open: %v", err)
			must.Equal(t, "verdict", m.injectMessage(0, PPIDControl, wire.FlagU, []byte{0, 0, 0, 1}), assoc.Queue)
			m.expectEvents()
			m.expectSends()
			early := &end{TB: t, a: &c.a, Mux: NewMux(&c.a, Config{})}
			must.Equal(t, "verdict ahead of the event",
				early.injectMessage(0, PPIDControl, wire.FlagU, []byte{0, 0, 0, 1}),
				assoc.Queue)
		})
	}
}

// Data may come in the packet that establishes the association, ahead of its EventUp.
func TestDataBeforeUp(t *testing.T) {
	f := newFake()
	m := &end{TB: t, a: f, Mux: NewMux(f, Config{})}
	f.silent = true // the INIT ACK has not come yet
	_, err := m.Open(0, -1, nil, nil)
	must.That(t, err == ErrNotUp, "Open: %v", err)
	m.HandleReceived(0)
	m.expectSends()
	m.expectEvents()
	f.silent = false
	m.injectLines(0, "0 initiate") // req 5043-11.1-2: the indication is looked at first
	m.HandleEvent(0, assoc.Event{Kind: assoc.EventUp})
	m.expectEvents(EventUp, EventInitiate)
}

// Streams that exist in one direction only carry no session.
func TestUnequalStreams(t *testing.T) {
	// req 5043-8-1, 5043-8-4
	f := newFake()
	f.out = 3
	m := newEnd(t, f, Config{})
	must.Equal(t, "streams", m.Streams(), 3)
	_, err := m.Open(0, 3, m.newStream(0).Stream, nil)
	must.That(t, err == ErrInvalidStream, "Open: %v", err)
}

func TestConfigure(t *testing.T) {
	for asked, want := range map[int]int{-1: 0, 0: 64, 1: 1} {
		got := NewMux(newFake(), Config{MaxPending: asked}).cfg.MaxPending
		check.That(t, got == want, "%d pending: %d", asked, got)
	}
	for asked, want := range map[int]int{-1: defaultEarly, 0: defaultEarly, 1: 1} {
		got := NewMux(newFake(), Config{MaxEarly: asked}).cfg.MaxEarly
		check.That(t, got == want, "%d octets before an answer: %d", asked, got)
	}
	for asked, want := range map[int]int{-1: 65535, 0: 65535, 7: 7, 65535: 65535, 65536: 65535} {
		got := NewMux(newFake(), Config{MaxOutOfOrder: asked}).records.recordLimit
		check.That(t, got == want, "%d messages out of order: %d", asked, got)
	}
	for _, c := range []struct {
		name               string
		out, in, want      uint16
		recv, most, wanted int // receive buffer, and the longest message
	}{
		{"none given: the default", 0, 0, DefaultStreams, 0, 0, maxSegment + 1},
		{"one direction given: both", 16, 0, 16, maxSegment + 2, 0, maxSegment + 1},
		{"both given: the larger, and no message longer than the receive buffer", 16, 32, 32, 4096, 0, 4096},
		{"the longest message given", 16, 32, 32, 4096, 99, 99},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := assoc.Config{OutStreams: c.out, InStreams: c.in, RecvBuffer: c.recv, MaxMessage: c.most}
			Configure(&cfg)
			must.That(t, cfg.OutStreams == c.want && cfg.InStreams == c.want && cfg.MaxMessage == c.wanted,
				// req 5043-8-3, 5043-8-2
				"%d out, %d in, messages of %d", cfg.OutStreams, cfg.InStreams, cfg.MaxMessage)
			// req 5043-5.1-1, 5043-7.1-3, 5043-11.1-1
			must.That(t, cfg.Adaptation != nil && *cfg.Adaptation == 1 && cfg.RequireAdaptation,
				"adaptation indication 1 is not required")
		})
	}
}

func TestFragmentsAreQueued(t *testing.T) {
	a, _ := newPair(t)
	d := wire.AppendDataHeader(nil, wire.DataFields{Flags: wire.FlagU | wire.FlagB, PPID: PPIDSegment, PayloadLen: 2})
	must.Equal(t, "verdict", a.Place(0, append(wire.Data(d), 0, 0), nil), assoc.Queue)
	a.expectEvents()
}

func TestPostedSegmentsSurviveAChangeOfMULPDU(t *testing.T) {
	// req 5041-3-2
	a, b := newPair(t)
	_, _, ua, _ := connectSession(a, b)
	want := bytes.Repeat([]byte("0123456789"), 300)
	got := make([]byte, len(want))
	region := must.Get(b.table.Register(ddp.Spec{PD: 1, Mem: ddp.Bytes(got), Access: ddp.RemoteWrite}))(t)
	must.OK(t, ua.SendTagged(region.STag(), 0, 0, gatherOf(want), 1))
	var msg assoc.Message
	must.That(t, a.Next(0, a.a.payload, &msg), "nothing to send")
	posted := a.nextChunk(&msg)
	a.a.payload = 600 // the path MTU shrank
	a.HandleEvent(0, assoc.Event{Kind: assoc.EventMTUChanged})
	rest := a.pullPackets()
	n := len(posted.data.Payload())
	check.That(t, n >= 1100 && len(rest) >= 3, "the posted segment has %d octets, %d more were cut", n, len(rest))
	b.deliverPackets(posted) // as it was cut
	b.deliverPackets(rest...)
	a.ackArrived()
	check.Slice(t, "the message", got, want)
	ua.checkLog(t, "completed 1")
}

func TestDDPSSNsFollowSubmissionWithoutGaps(t *testing.T) {
	a, b := newPair(t)
	sa, _, ua, _ := connectSession(a, b)
	ua.sendText("a")
	ua.sendText("b")
	list := a.expectSends("0: 1 segment a", "0: 2 segment b") // req 5043-2-2
	ua.sendText("c")
	sa.Abort()                                              // what was not handed over never got a number
	list = append(list, a.expectSends("0: 3 terminate")...) // req 5043-6-2
	b.deliverPackets(list...)
}
