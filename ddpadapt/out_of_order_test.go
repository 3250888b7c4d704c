package ddpadapt

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// pendingSession lets a peer initiate a session on a stream and returns it.
func (e *end) pendingSession(id wire.StreamID) *Session {
	e.Helper()
	e.injectLines(id, "0 initiate")
	return e.expectEvents(EventInitiate)[0].Session
}

// A DDP-SSN is compared modulo 2^16: 32766 ahead is the most that the messages in flight can
// explain, and what is further ahead lies behind.
func TestEdgesOfTheSSNWindow(t *testing.T) {
	// req 5043-10-6, 5043-10-9
	for _, row := range []struct {
		ahead uint16
		fault Fault
	}{{0, 0}, {1, 0}, {32766, 0}, {32767, FaultWindowSSN}, {32768, FaultDuplicateSSN}, {32769, FaultDuplicateSSN},
		{65535, FaultDuplicateSSN}} {
		b := newEnd(t, newFake(), Config{})
		b.expectEvents(EventUp)
		s := b.pendingSession(1)
		u := b.newStream(8)
		must.OK(t, s.Accept(0, u.Stream, nil))
		ppid, seg := encodeLine(fmt.Sprintf("%d segment x", 1+row.ahead))
		b.injectMessage(1, ppid, wire.FlagU, seg)
		var got Fault
		if ev, ok := b.PollEvent(); ok {
			if e, ok := ev.Err.(*llp.TerminatedError); ok {
				got = e.Cause.(*SequenceError).Fault
			}
		}
		check.That(t, got == row.fault, "%d ahead: %v, want %v", row.ahead, got, row.fault)
	}
}

// What came far ahead of its turn, and before the session was accepted, is found without a look at
// each place before it.
func TestEarlySegmentFarAhead(t *testing.T) {
	b := newEnd(t, newFake(), Config{})
	b.expectEvents(EventUp)
	s, u := b.pendingSession(1), b.newStream(8)
	b.injectLines(1, "1 segment a", "30000 segment b")
	begun := b.Steps()
	must.OK(t, s.Accept(0, u.Stream, nil))
	n := b.Steps() - begun
	check.That(t, n <= 600 && s.outOfOrder.numRecords == 1 && b.records.slab[s.outOfOrder.get(30000)].earlyPayload ==
		nil, "%d steps, %d wait", n, s.outOfOrder.numRecords)
	u.checkLog(t, "a")
}

// The queue of events gives back what was much.
func TestPlacesWithoutRecordsAreSkipped(t *testing.T) {
	w := recordWindow{pages: new([256]*recordPage), numRecords: 1}
	w.pages[2] = new(recordPage)
	for _, row := range []struct{ from, end, to uint16 }{
		// to the end of the 256, or where it is to go no further
		{0x105, 0x400, 0x1ff}, {0x100, 0x400, 0x1ff}, {0x1ff, 0x400, 0x1ff}, {0x105, 0x110, 0x10f},
		{0x105, 0x106, 0x105}, {0x105, 0x200, 0x1ff},
		{0x205, 0x400, 0x205},                         // one of these may have a record
		{0xfff0, 5, 0xffff}, {0xff05, 0xff20, 0xff1f}, // numbers begin anew
	} {
		got := row.from
		w.skipEmptyPage(&got, row.end)
		check.Equal(t, fmt.Sprintf("from %#x before %#x", row.from, row.end), got, row.to)
	}
	got := uint16(0x205)
	(&recordWindow{pages: w.pages}).skipEmptyPage(&got, 0x400)
	check.Equal(t, "where there is no record at all", got, uint16(0x2ff))
}

func TestEmptyQueueOfEvents(t *testing.T) {
	for n, kept := range map[int]bool{maxSpareEvents: true, 2 * maxSpareEvents: false} {
		q := eventQueue{items: make([]Event, 0, n)}
		q.push(Event{Kind: EventUp})
		_, ok := q.pop()
		check.That(t, ok, "nothing")
		_, more := q.pop()
		check.That(t, !more && (q.items != nil) == kept, "room for %d is kept: %v", n, !kept)
	}
}

// Nothing is placed behind a message that will end the session, also where DDP-SSNs wrap between
// two such messages.
func TestNothingIsPlacedBehindTheFirstFaultAcrossTheWrap(t *testing.T) {
	// req 5043-6.1-2
	b := newEnd(t, newFake(), Config{})
	b.expectEvents(EventUp)
	s := b.pendingSession(1)
	u := b.newStream(0)
	mem := make([]byte, 8)
	reg := must.Get(b.table.Register(ddp.Spec{PD: 1, Mem: ddp.Bytes(mem), Access: ddp.RemoteWrite}))(t)
	must.OK(t, s.Accept(0, u.Stream, nil))
	write := func(ssn uint16, payload string) {
		t.Helper()
		var h [ddp.MaxHeaderLen]byte
		n := ddp.Tagged{Last: true, STag: reg.STag()}.Put(h[:])
		seg := append([]byte{byte(ssn >> 8), byte(ssn)}, h[:n]...)
		v := b.injectMessage(1, PPIDSegment, wire.FlagU, append(seg, payload...))
		must.That(t, v == assoc.Consumed, "DDP-SSN %d: verdict %d", ssn, v)
	}
	for ssn := 1; ssn < 65530; ssn++ {
		write(uint16(ssn), "")
	}
	write(1, "early") // 65530 is missing
	must.Equal(t, "memory after a segment out of order", string(mem[:5]), "early")
	b.injectLines(1, "3 accept", "65535 accept") // both out of place, the later one first
	write(65534, "front")
	check.Equal(t, "memory after a segment ahead of the faults", string(mem[:5]), "front")
	write(2, "after")
	check.Equal(t, "memory after a segment behind the first fault", string(mem[:5]), "front")
}

// All sessions together keep no more early data than sixteen of them may.
func TestEarlyDataOfAllSessionsIsBounded(t *testing.T) {
	f := newFake()
	f.in, f.out = 64, 64
	b := newEnd(t, f, Config{MaxEarly: 100})
	b.expectEvents(EventUp)
	_, seg := encodeLine("1 segment ")
	fit := 0
	for id := wire.StreamID(0); id < 20; id++ {
		b.pendingSession(id)
		for n := range uint8(2) { // of 50 octets
			seg[1] = 1 + n
			b.injectMessage(id, PPIDSegment, wire.FlagU,
				append(seg[:len(seg):len(seg)], make([]byte, 50+ssnLen-len(seg))...))
		}
		if _, ended := b.PollEvent(); !ended {
			fit++
		}
	}
	check.Equal(t, "sessions that keep their early data", fit, earlySessions)
}

// What a peer makes a Mux hold is known, follows what is in use, and is given back: sessions on the
// highest streams, and messages that wait far ahead of others.
func TestHeldFollowsWhatIsInUse(t *testing.T) {
	f := newFake()
	f.in, f.out = 65_535, 65_535
	b := newEnd(t, f, Config{})
	b.expectEvents(EventUp)
	idle := b.Held()
	s := b.pendingSession(65_534)
	got := b.Held() - idle
	check.That(t, got >= 512 && got <= 14<<10, "%d octets for a session on stream 65534", got)
	must.OK(t, s.Accept(0, b.newStream(1).Stream, nil))
	one := b.Held()
	for ssn := uint16(2); ssn < 30_000; ssn += 2 {
		_, seg := encodeLine(fmt.Sprintf("%d segment x", ssn))
		b.injectMessage(65_534, PPIDSegment, wire.FlagU, seg)
	}
	b.checkCounts()
	got, least := b.Held()-one, b.records.numPageTables*2048+15_000*64
	check.That(t, b.records.numPageTables == 1 && got >= least,
		"%d octets for 15000 messages ahead of others in %d windows, want %d", got, b.records.numPageTables, least)
	s.Abort()
	b.HandleEvent(0, assoc.Event{Kind: assoc.EventDown, Err: errors.New("the end")})
	for _, ok := b.PollEvent(); ok; _, ok = b.PollEvent() {
	}
	b.checkCounts()
	if got := b.Held() - idle; got > maxSparePages*600 || len(b.records.freePages) != maxSparePages ||
		b.Mux.sessions.Held() != 0 {
		t.Errorf("%d octets are held when all has ended, %d for the table", got, b.Mux.sessions.Held())
	}
}
