package ddpadapt

import (
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

type msgT = assoc.Message

// Whatever the order of arrival, placement and delivery give the same result.
func TestAnyArrivalOrder(t *testing.T) {
	// req 5043-5.2.1-3, 5043-10-4, 5043-10-5, 5043-6.1-2, 5041-3-4, 5041-3-6
	for seed := range int64(40) {
		a, b := newPair(t)
		rnd := rand.New(rand.NewSource(seed))
		_, _, ua, ub := connectSession(a, b)
		var want []string
		for i := range 8 {
			text := fmt.Sprintf("message-%d", i)
			ua.sendText(text)
			want = append(want, text)
		}
		list := a.pullPackets()
		rnd.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		b.deliverPackets(list...)
		ub.checkLog(t, want...)
		must.That(t, b.records.recordLimit != 0 && len(b.records.free) == max(0, len(b.records.slab)-1),
			"seed %d: records leak", seed)
	}
}

// A segment is placed when it arrives, and delivered at its turn.
func TestPlacementBeforeDelivery(t *testing.T) {
	// req 5041-3-5, 5043-10-3
	a, b := newPair(t)
	_, _, ua, ub := connectSession(a, b)
	ua.sendText("first")
	ua.sendText("second")
	list := a.pullPackets()
	b.deliverPackets(list[1])
	buf, _ := ub.queue.Lookup(2)
	must.Equal(t, "memory", string(buf.Pieces[0].Mem.RAM()[:6]), "second")
	ub.checkLog(t)
	b.deliverPackets(list[0])
	ub.checkLog(t, "first", "second")
}

// The passive side's segments may overtake its Accept.
func TestSegmentsBeforeAccept(t *testing.T) {
	// req 5043-6.6-3
	a, _ := newPair(t)
	u := a.newStream(4)
	a.Open(0, 0, u.Stream, nil)
	a.pullPackets()
	a.injectLines(0, "2 segment two", "1 segment one")
	a.expectEvents()
	u.checkLog(t)
	a.injectLines(0, "0 accept hi")
	a.expectEvents(EventAccepted)
	u.checkLog(t, "one", "two")

	// ... and are out of place if the answer is a Reject.
	s, _ := a.Open(0, 1, a.newStream(4).Stream, nil)
	a.pullPackets()
	a.injectLines(1, "1 segment one", "0 reject")
	a.expectEvents(EventRejected)
	a.expectSends()
	must.Equal(t, "state", s.State(), Over)
}

// An active side that goes by the acknowledgement may send before the Accept. The user's decision
// brings such segments to their place.
func TestSegmentsBeforeDecision(t *testing.T) {
	accepted := func(t *testing.T, lines ...string) (*end, *Session) {
		_, b := newPair(t)
		b.injectLines(0, "0 initiate")
		b.injectLines(0, lines...)
		ev, _ := b.PollEvent()
		return b, ev.Session
	}
	t.Run("accepted: delivered in order", func(t *testing.T) {
		b, s := accepted(t, "2 segment two", "1 segment one", "4 segment four")
		u := b.newStream(8)
		must.OK(t, s.Accept(0, u.Stream, nil))
		u.checkLog(t, "one", "two")
		b.injectLines(0, "3 segment three", "5 segment five")
		u.checkLog(t, "three", "four", "five")
		must.Equal(t, "octets still kept", b.earlyOctets, 0)
	})
	t.Run("rejected: dropped", func(t *testing.T) {
		b, s := accepted(t, "1 segment one")
		s.Reject(0, nil)
		b.expectSends("0: 0 reject")[0].arrived = true
		b.injectLines(0, "2 segment two")
		b.ackArrived()
		b.expectEvents(EventEnded)
		must.That(t, b.earlyOctets == 0 && len(b.records.free) == len(b.records.slab)-1,
			"%d octets still kept, or a record", b.earlyOctets)
	})
	t.Run("the active side gives up before the decision", func(t *testing.T) {
		b, s := accepted(t, "1 terminate")
		b.expectEvents(EventTerminated)
		must.That(t, s.Accept(0, b.newStream(0).Stream, nil) != nil, "a session that is over was accepted")
		b.expectSends("0: 0 terminate")[0].arrived = true
		b.ackArrived()
		b.expectEvents(EventEnded)
	})
	t.Run("gives up behind its segments: they come first", func(t *testing.T) {
		b, s := accepted(t, "2 terminate", "1 segment one")
		b.expectEvents()
		u := b.newStream(1)
		s.Accept(0, u.Stream, nil)
		u.checkLog(t, "one", "peer closed")
		b.expectEvents(EventTerminated)
	})
	t.Run("more than is kept: terminated", func(t *testing.T) {
		b := newEnd(t, newFake(), Config{MaxEarly: 50})
		b.injectLines(0, "0 initiate", "1 segment "+strings.Repeat("x", 20), "3 segment "+strings.Repeat("x", 20))
		b.expectEvents(EventUp, EventInitiate, EventTerminated)
		b.expectSends("0: 0 terminate")
	})
}

// What comes in place of the answer is a fault, so that nothing of it reaches memory.
func TestSegmentInPlaceOfTheAnswerIsNotPlaced(t *testing.T) {
	a, _ := newPair(t)
	u := a.newStream(1)
	a.Open(0, 0, u.Stream, nil)
	a.pullPackets()
	ppid, b := encodeLine("1 segment a")
	a.injectMessage(0, ppid, wire.FlagU, append([]byte{0, 0}, b[ssnLen:]...))
	a.expectEvents(EventTerminated)
	buf, _ := u.queue.Lookup(1)
	must.Equal(t, "the first octet of memory", buf.Pieces[0].Mem.RAM()[0], 0)
}

// What fits no legal sequence terminates the session, in whatever order it arrives, and no other.
func TestIllegalSequences(t *testing.T) {
	raw := func(ppid uint32, flags uint8, b string) func(*end) {
		return func(e *end) { e.injectMessage(0, ppid, flags, []byte(b)) }
	}
	peer := func(lines ...string) func(*end) { return func(e *end) { e.injectLines(0, lines...) } }
	const u = wire.FlagU
	for _, c := range []struct {
		name   string
		active bool // the side under test sent the Initiate; otherwise it accepted
		after  func(*end)
		fault  Fault
		sends  string
	}{
		// req 5043-5.1-3, 5043-5.1-2
		{"a foreign PPID", false, raw(0, u, "\x00\x01data"), FaultPPID, "0: 1 terminate"},
		{"that of key management, of which the association takes its own", false, raw(4242, u, "\x00\x01data"), FaultPPID,
			"0: 1 terminate"},
		// req 5043-5.2.2-2
		{"a segment chunk without DDP-SSN", false, raw(16, u, "\x00"), FaultShort, "0: 1 terminate"},
		// req 5043-5.2.3-3
		{"a control message without function code", false, raw(17, u, "\x00\x01\x00"), FaultShort, "0: 1 terminate"},
		{"function code 0", false, raw(17, u, "\x00\x01\x00\x00"), FaultFunction, "0: 1 terminate"},
		{"function code 8", false, raw(17, u, "\x00\x01\x00\x08"), FaultFunction, "0: 1 terminate"},
		// req 5043-5.2.3-7
		{"513 octets of private data", true, raw(17, u, "\x00\x00\x00\x02"+strings.Repeat("x", 513)), FaultPrivateData, "0: 1 terminate"},
		{"private data in a Terminate", false, raw(17, u, "\x00\x01\x00\x04x"), FaultPrivateData, "0: 1 terminate"},
		// req 5043-10-2
		{"an ordered chunk", false, raw(16, 0, "\x00\x01\x00"), FaultOrdered, "0: 1 terminate"},
		// req 5043-6.1-4
		{"a second Initiate", false, peer("1 initiate"), FaultControl, "0: 1 terminate"},
		{"an Accept of the active side", false, peer("1 accept"), FaultControl, "0: 1 terminate"},
		{"a second Initiate ahead of a segment", false, peer("2 initiate", "1 segment a"), FaultControl, "0: 1 terminate"},
		{"a segment behind the Terminate", false, peer("1 terminate", "2 segment a"), FaultAfterEnd, "0: 1 terminate"},
		{"a segment behind the Terminate, overtaking it", false, peer("2 segment a", "1 terminate"), FaultAfterEnd, "0: 1 terminate"},
		{"a second Terminate", false, peer("1 terminate", "2 terminate"), FaultAfterEnd, "0: 1 terminate"},
		// req 5043-6.5-2: sequences that a ULP may define are not accepted, as none was asked for.
		{"an answer that is a segment", true, peer("0 segment a"), FaultAnswer, "0: 1 terminate"},
		{"an answer that is an Initiate", true, peer("0 initiate"), FaultCrossed, "0: 1 terminate"},
		// req 5043-10-11, 5041-3-13
		{"a DDP-SSN used twice", false, peer("1 segment a", "1 segment a"), FaultDuplicateSSN, "0: 1 terminate"},
		{"a DDP-SSN used twice out of order", false, peer("3 segment a", "3 segment b"), FaultDuplicateSSN, "0: 1 terminate"},
		// req 5043-10-9
		{"a DDP-SSN beyond what can be in flight", false, peer("32768 segment a"), FaultWindowSSN, "0: 1 terminate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, _ := newPair(t)
			if c.active {
				a.Open(0, 0, a.newStream(4).Stream, nil)
				a.pullPackets()
				for _, p := range a.flight {
					p.arrived = true
				}
				a.ackArrived()
			} else {
				a.injectLines(0, "0 initiate")
				a.expectEvents(EventInitiate)[0].Session.Accept(0, a.newStream(4).Stream, nil)
				a.expectSends("0: 0 accept")[0].arrived = true
				a.ackArrived()
			}
			a.injectLines(1, "0 initiate")
			other := a.expectEvents(EventInitiate)[0].Session
			c.after(a)
			var te *llp.TerminatedError
			var se *SequenceError
			ev, ok := a.PollEvent()
			if ok && ev.Kind == EventTerminated && errors.As(ev.Err, &te) && te.ByPeer {
				ev, ok = a.PollEvent() // the legal Terminate before the fault
			}
			must.That(t, ok && ev.Kind == EventTerminated && errors.As(ev.Err, &se) && se.Fault == c.fault &&
				se.Stream == 0,
				"event %+v %v", ev, ev.Err)
			must.That(t, ev.Session.State() == Over && ev.Session.Err() == ev.Err, "state %v, %v", ev.Session.State(),
				ev.Session.Err())
			a.expectSends(c.sends)
			a.expectEvents()
			// req 5043-11.3-5: the other stream goes on.
			must.OK(t, other.Accept(0, a.newStream(1).Stream, nil))
			a.expectSends("1: 0 accept")
		})
	}
}

// Messages on a stream without session.
func TestMessagesWithoutASessionGetNoAnswerOrATerminate(t *testing.T) {
	// req 5043-6.5-2
	_, b := newPair(t)
	b.injectLines(0, "0 terminate", "7 terminate") // never answered, or two ends could go on for ever
	b.expectSends()
	b.injectLines(1, "0 segment x") // req 5043-2-1, 5043-4-2, 5043-6.1-4
	b.injectLines(1, "1 segment x")
	b.injectLines(2, "0 accept")
	b.injectLines(3, "4 initiate")
	b.injectMessage(4, 99, wire.FlagU, []byte("what"))
	for _, p := range b.expectSends("1: 0 terminate", "2: 0 terminate", "3: 0 terminate", "4: 0 terminate") {
		p.arrived = true
	}
	b.expectEvents()
	b.ackArrived()
	must.That(t, b.Sessions() == 0 && b.unackedRefusals == 0 && b.Stats().Ignored == 2, "%d sessions, %+v",
		b.Sessions(), b.Stats())
	// req 5043-8-4: no stream back, no session
	must.Equal(t, "verdict", b.injectMessage(8, PPIDControl, wire.FlagU, []byte{0, 0, 0, 1}), assoc.AbortAssoc)
}

// Refusals that the peer does not acknowledge are bounded: what would need one more is not taken
// in.
func TestRefusalsAreBounded(t *testing.T) {
	f := newFake()
	f.out, f.in = 1000, 1000
	b := newEnd(t, f, Config{MaxPending: 1})
	b.expectEvents(EventUp)
	s := b.pendingSession(999)
	dropped := uint64(0)
	for id := range wire.StreamID(900) {
		if b.injectMessage(id, PPIDControl, wire.FlagU, []byte{0, 0, 0, 1}) == assoc.DropUnacked {
			dropped++
		}
	}
	st := b.Stats()
	must.That(t, b.Sessions() == 1+maxRefusals && dropped == 900-maxRefusals && st.RefusalsFull == dropped &&
		st.PendingFull == maxRefusals, "%d sessions, %d dropped, %+v", b.Sessions(), dropped, st)
	s.Reject(0, nil)
	b.pullPackets()
	_, seg := encodeLine("0 segment x") // of the next session
	v := b.injectMessage(999, PPIDSegment, wire.FlagU, seg)
	check.That(t, v == assoc.DropUnacked && b.Stats().RefusalsFull == dropped+1,
		"a next session that would be refused: verdict %d", v)
	v = b.injectMessage(999, PPIDControl, wire.FlagU, []byte{0, 0, 0, 1})
	check.That(t, v == assoc.Consumed, "a next session that needs no refusal: verdict %d", v)
	b.injectLines(998, "0 initiate") // nor does this
	b.expectEvents(EventInitiate)
	for _, p := range b.flight {
		p.arrived = true
	}
	b.ackArrived()
	b.injectLines(997, "0 initiate") // sent again, it is answered now
	b.expectSends("999: 0 terminate", "997: 0 terminate")
}

// Left to choose, the two sides take different streams.
func TestFreeStreamChoice(t *testing.T) {
	a, b := newPair(t)
	pick := func(e *end) (ids []wire.StreamID) {
		for len(ids) < 9 {
			s, err := e.Open(0, -1, e.newStream(0).Stream, nil)
			if err == ErrNoFreeStream {
				return ids
			}
			must.OK(t, err)
			ids = append(ids, s.Stream())
		}
		return ids
	}
	must.Slice(t, "what the initiator takes", pick(a), []wire.StreamID{0, 2, 4, 6, 1, 3, 5, 7})
	for _, id := range []wire.StreamID{4, 6, 6} {
		a.sessionOn(id).Abort()
		must.Slice(t, "what the initiator takes of one that is free again", pick(a), []wire.StreamID{id})
	}
	must.Slice(t, "what the other takes", pick(b), []wire.StreamID{1, 3, 5, 7, 0, 2, 4, 6})
	b.sessionOn(0).Abort()
	b.sessionOn(1).Abort()
	must.Slice(t, "what the other takes first of what is free again", pick(b), []wire.StreamID{1, 0})
	c := newEnd(t, newFake(), Config{Initiator: true})
	open := func() int { return int(must.Get(c.Open(0, -1, c.newStream(0).Stream, nil))(t).Stream()) }
	for range 6 {
		open()
	}
	c.sessionOn(0).Abort()
	c.sessionOn(1).Abort()
	check.Equal(t, "the free one of its own kind", open(), 0)
	check.Equal(t, "of the other kind one that was not used yet", open(), 5)
	f := newFake()
	f.in = 1
	must.Slice(t, "what the other takes of one stream", pick(newEnd(t, f, Config{})), []wire.StreamID{0})
	_, err := a.Open(0, 8, a.newStream(0).Stream, nil)
	must.That(t, err == ErrInvalidStream, "stream 8 of 8: %v", err)
}

// A message that came in fragments is acknowledged and cannot be asked for again.
func TestFragmentedBeyondBounds(t *testing.T) {
	open := func() (*end, *Session) {
		b := newEnd(t, newFake(), Config{MaxOutOfOrder: 1})
		b.injectLines(0, "0 initiate")
		s := b.expectEvents(EventUp, EventInitiate)[1].Session
		s.Accept(0, b.newStream(1).Stream, nil)
		return b, s
	}
	fault := func(b *end) Fault {
		var se *SequenceError
		ev := b.expectEvents(EventTerminated)[0]
		must.That(t, errors.As(ev.Err, &se), "event %+v", ev)
		return se.Fault
	}
	b, _ := open()
	b.receiveMessage(0, PPIDSegment, true, make([]byte, maxSegment+1)) // DDP-SSN 0 again
	must.Equal(t, "fault", fault(b), FaultDuplicateSSN)
	b, s := open()
	s.nextSSN = 65535
	b.receiveMessage(0, PPIDSegment, true, make([]byte, maxSegment)) // early, and no octet too long
	must.Equal(t, "fault of the longest segment", b.records.slab[s.outOfOrder.get(0)].fault, 0)
	s.outOfOrder.clear(&b.records)
	s.nextSSN, s.stopSSN = 0, unknownSSN
	b.receiveFragmented(&assoc.Received{PPID: PPIDSegment, Unordered: true, Size: maxSegment + 1})
	must.Equal(t, "fault", fault(b), FaultTooLong)
	b, s = open()
	s.nextSSN = 65534
	b.injectLines(0, "65535 segment x")
	b.receiveFragmented(&assoc.Received{PPID: PPIDSegment, Unordered: true, Size: 30}) // no room for its record
	must.Equal(t, "fault", fault(b), FaultWindowSSN)
}

// A session that fails so ends when the peer's Terminate and all before it have arrived, in
// whatever order, though the turn of none comes any more.
func TestSessionEndsBehindALostMessage(t *testing.T) {
	b := newEnd(t, newFake(), Config{MaxOutOfOrder: 1})
	b.injectLines(0, "0 initiate")
	s := b.expectEvents(EventUp, EventInitiate)[1].Session
	s.Accept(0, b.newStream(1).Stream, nil)
	send := func(what string) {
		for _, p := range b.pullPackets() {
			p.arrived = true
		}
		b.ackArrived()
		must.That(t, len(b.flight) == 0, "%s is under way", what)
	}
	send("the Accept")
	s.nextSSN = 65534
	b.injectLines(0, "65535 segment x")
	// DDP-SSN 0 finds no room, while 65534 is missing
	b.receiveFragmented(&assoc.Received{PPID: PPIDSegment, Unordered: true, Size: 30})
	b.expectEvents(EventTerminated)
	must.Equal(t, "records given back", len(b.records.free), 1)
	send("the Terminate")
	b.injectLines(0, "2 terminate")
	b.injectLines(0, "1 segment y")
	must.That(t, s.State() != Ended, "over, and DDP-SSN 65534 is under way")
	b.injectLines(0, "65534 segment z")
	b.expectEvents(EventEnded)
	check.Equal(t, "sessions on the stream", b.Sessions(), 0)
}

// The records of messages out of order are bounded; the missing one always gets through.
func TestOutOfOrderBound(t *testing.T) {
	a := newEnd(t, newFake(), Config{Initiator: true})
	b := newEnd(t, newFake(), Config{MaxOutOfOrder: 2})
	a.expectEvents(EventUp)
	b.expectEvents(EventUp)
	_, _, ua, ub := connectSession(a, b)
	for _, text := range []string{"1", "2", "3", "4"} {
		ua.sendText(text)
	}
	list := a.pullPackets()
	b.deliverPackets(list[1], list[3])
	must.Equal(t, "verdict", b.Place(0, list[2].data, nil), assoc.DropUnacked)
	b.deliverPackets(list[0])
	ub.checkLog(t, "1", "2")
	b.deliverPackets(list[2])
	ub.checkLog(t, "3", "4")
	must.Equal(t, "segments out of order", b.Stats().OutOfOrder, 2)
}

// Thousands of messages that wait for one have their turn in parts, for others to have theirs in
// between. What comes meanwhile and may belong behind them, beyond the window or to the next
// session, is left to be sent again.
func TestTurnsOfThousandsOfMessages(t *testing.T) {
	const n = 5*messagesPerCall + 1
	_, b := newPair(t)
	b.injectLines(0, "0 initiate")
	s := b.expectEvents(EventInitiate)[0].Session
	ub := b.newStream(n + 8)
	s.Accept(0, ub.Stream, nil)
	for ssn := n; ssn > 1; ssn-- {
		b.injectLines(0, fmt.Sprint(ssn, " segment x"))
	}
	b.injectLines(0, "1 segment x")
	for next := uint16(messagesPerCall + 2); ; next += messagesPerCall {
		must.That(t, s.nextSSN == min(next, n+1), "%d has its turn, want %d", s.nextSSN, next)
		if next > n {
			break
		}
		for _, line := range []string{fmt.Sprint(s.nextSSN+MaxInFlight, " segment early"), "0 initiate"} {
			ppid, msg := encodeLine(line)
			v := b.injectMessage(0, ppid, wire.FlagU, msg)
			check.That(t, v == assoc.DropUnacked, "%q at %d: verdict %d", line, s.nextSSN, v)
		}
		b.injectLines(0, fmt.Sprint(n+int(next-2)/messagesPerCall, " segment y"))
		check.That(t, b.HandleReceived(0), "nothing more at %d", s.nextSSN)
	}
	check.That(t, (&userMessage{hasSSN: true, fn: fnInitiate}).isBeyondWindow(40_000) &&
		!(&userMessage{hasSSN: true, ssn: 40_001, fn: fnInitiate}).isBeyondWindow(40_000) &&
		!(&userMessage{hasSSN: true}).isBeyondWindow(40_000),
		"an Initiate is of the next session, and a segment with its number is not where numbers have wrapped")
	b.HandleReceived(0)
	check.That(t, s.nextSSN == n+5 && s.State() == Open && !b.HandleReceived(0), "%d has its turn in the end, %v",
		s.nextSSN, s.State())
}

// The stream of a session that ends with much in flight ends when all is copied, in parts.
func TestMemoryIsCopiedInParts(t *testing.T) {
	for _, down := range []bool{false, true} {
		a, b := newPair(t)
		s, _, ua, _ := connectSession(a, b)
		ua.sendText("in flight")
		a.pullPackets()
		a.a.parts = 3
		s.Abort()
		for part := 2; part <= 3; part++ {
			must.That(t, s.ds != nil && len(a.a.detached) == part-1, "%d parts, the stream has ended: %v",
				len(a.a.detached), s.ds == nil)
			if down {
				a.HandleEvent(0, assoc.Event{Kind: assoc.EventDown, Err: assoc.ErrTimeout})
				a.PollEvent()
				break
			}
			a.HandleReceived(0)
		}
		a.HandleReceived(0)
		check.That(t, s.ds == nil && errors.Is(s.Err(), map[bool]error{true: assoc.ErrTimeout}[down]),
			"association lost: %v; the stream has not ended, or %v", down, s.Err())
	}
}

// What is acknowledged before it is copied need not be: the stream ends with its session, and hears
// why.
func TestAllIsAcknowledgedBeforeItIsCopied(t *testing.T) {
	a, b := newPair(t)
	s, _, ua, _ := connectSession(a, b)
	ua.sendText("in flight")
	a.pullPackets()
	a.a.parts = 3
	a.injectLines(0, "1 initiate", "2 terminate")
	a.deliverAll()
	check.That(t, s.State() == Ended && s.ds == nil && strings.Contains(fmt.Sprint(ua.log), "fatal"),
		"%v; the stream hears %q", s.State(), ua.log)
	a.HandleReceived(0)
	check.Equal(t, "parts are copied", len(a.a.detached), 1)
}

// Nothing is allocated in proportion to the gap that a DDP-SSN claims.
func TestGapCostsNothing(t *testing.T) {
	// req 5043-10-10
	_, b := newPair(t)
	b.injectLines(0, "0 initiate")
	s := b.expectEvents(EventInitiate)[0].Session
	s.Accept(0, b.newStream(1).Stream, nil)
	b.injectLines(0, "32767 segment x")
	pages := 0
	for _, p := range s.outOfOrder.pages {
		if p != nil {
			pages++
		}
	}
	must.That(t, pages == 1 && len(b.records.slab) == 2, "%d pages and %d records for one message", pages,
		len(b.records.slab)-1)
}

// DDP-SSNs wrap: two rounds of the 16-bit space, every third pair of messages swapped.
func TestSSNWraps(t *testing.T) {
	// req 5043-10-6, 5043-5.2.1-2, 5043-6-2
	a, b := newPair(t)
	_, sb, ua, ub := connectSession(a, b)
	zero := func() *packet {
		must.OK(t, ua.SendTagged(1, 0, 0, nil, 1))
		return a.pullPackets()[0]
	}
	n := 0
	for n < 3<<16 {
		p, q := zero(), zero()
		if n%3 == 0 {
			p, q = q, p
		}
		b.deliverPackets(p, q)
		a.ackArrived()
		n += 2
	}
	must.That(t, len(ub.log) == n && sb.nextSSN == uint16(n+1) && b.Stats().Violations == 0,
		"%d of %d delivered, next %d", len(ub.log), n, sb.nextSSN)
}

// A DDP fault: what is placed afterwards does not depend on the order of arrival, and the session
// stays for the last word of the upper layer.
func TestFaultySegment(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {1, 0, 2}} {
		a, b := newPair(t)
		sa, _, ua, ub := connectSession(a, b)
		ua.sendText("good")
		ua.SendUntagged(0, [5]byte{}, nil, 2)
		ua.sendText("late")
		list := a.pullPackets()
		list[1].data[wire.DataHeaderLen+2] ^= 3 // DDP version
		for _, i := range order {
			b.deliverPackets(list[i])
		}
		ub.checkLog(t, "good", "fatal 2/6")
		buf, _ := ub.queue.Lookup(3)
		// req 5041-7.1-16
		must.That(t, slices.Index(order, 1) >= slices.Index(order, 2) || buf.Pieces[0].Mem.RAM()[0] == 0,
			"a segment behind a known fault was placed")
		b.expectEvents()
		must.OK(t, ub.sendText("terminate")) // req 5043-11.3-4, 5043-6.2-4
		b.expectSends("0: 1 segment terminate")
		// The peer's Terminate still counts.
		sa.Terminate(0)
		a.ackArrived()
		b.deliverPackets(a.expectSends("0: 4 terminate")...)
		b.expectEvents(EventTerminated)
	}
}
