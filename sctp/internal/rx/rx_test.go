package rx

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

const (
	be  = wire.FlagB | wire.FlagE
	ube = be | wire.FlagU
	ms  = rawio.Time(time.Millisecond)
)

// dataChunk makes a DATA chunk on stream 0.
func dataChunk(tsn, ssn int, flags uint8, payload string) wire.Data {
	return onStream(0, tsn, ssn, flags, payload)
}

func onStream(id, tsn, ssn int, flags uint8, payload string) wire.Data {
	b := wire.AppendDataHeader(nil, wire.DataFields{
		Flags: flags, TSN: wire.TSN(tsn), Stream: wire.StreamID(id), SSN: wire.SSN(ssn), PPID: 42,
		PayloadLen: len(payload),
	})
	return wire.Data(append(b, payload...))
}

// newReceiver returns a receiver with a window of 1000 octets that expects TSN 1.
func newReceiver() *Receiver {
	return NewReceiver(Config{PeerTSN: 1, RecvBuffer: 1000, MaxMessage: 1000, PMDCS: 200, InStreams: 16,
		SackDelay: 200 * time.Millisecond})
}

// feedPacket feeds chunks as one packet and returns how each was taken and the first error.
func feedPacket(r *Receiver, now rawio.Time, chunks ...wire.Data) (got []Admission, err error) {
	if got, err = queueAll(r, chunks...); err != nil {
		return got, err
	}
	return got, r.PacketDone(now)
}

func queueAll(r *Receiver, chunks ...wire.Data) (got []Admission, err error) {
	for _, d := range chunks {
		a := r.Admit(d)
		if got = append(got, a); a == New {
			if err := r.Queue(d, nil); err != nil {
				return got, err
			}
		}
	}
	return got, nil
}

func mustPacket(t *testing.T, r *Receiver, now rawio.Time, chunks ...wire.Data) {
	t.Helper()
	must.Do(feedPacket(r, now, chunks...))(t)
}

// drainText drains the receiver as text.
func drainText(r *Receiver) string {
	out := ""
	for m, ok := r.Receive(); ok; m, ok = r.Receive() {
		b := make([]byte, m.Size)
		m.CopyTo(b, 0)
		out += string(b) + "|"
		r.Release(m)
	}
	return out
}

func sackOf(r *Receiver) wire.Sack { return wire.Sack(r.AppendSack(nil, 1400)) }

func sackText(k wire.Sack) string {
	s := fmt.Sprint("cum ", k.CumTSN())
	for i := range k.NumGaps() {
		a, b := k.Gap(i)
		s += fmt.Sprintf(" %d-%d", a, b)
	}
	for i := range k.NumDups() {
		s += fmt.Sprint(" dup ", k.Dup(i))
	}
	return s
}

func ExampleReceiver() {
	r := NewReceiver(Config{PeerTSN: 1, RecvBuffer: 1 << 16, MaxMessage: 1 << 16, PMDCS: 1400, InStreams: 10,
		SackDelay: 200 * time.Millisecond})
	d := dataChunk(1, 0, be, "hello")
	if r.Admit(d) == New {
		if err := r.Queue(d, nil); err != nil {
			fmt.Println(err)
		}
	}
	if err := r.PacketDone(0); err != nil {
		fmt.Println(err)
	}
	m, _ := r.Receive()
	b := make([]byte, m.Size)
	m.CopyTo(b, 0)
	r.Release(m)
	fmt.Printf("%s, SACK due: %v\n", b, r.SackDue(0))
	// Output: hello, SACK due: true
}

func TestSackReportsWhatArrived(t *testing.T) {
	for _, tt := range []struct {
		name string
		tsns []int
		room int
		want string
	}{
		{"nothing yet: Initial TSN minus 1", nil, 1400, "cum 0"}, // req 9260-3.3.4-2, 9260-14-2
		{"in order", []int{1, 2, 3}, 1400, "cum 3"},
		// req 9260-3.3.4-5, 9260-3.3.4-3
		{"two gaps, as in the example of the RFC", []int{1, 2, 3, 5, 6, 8}, 1400, "cum 3 2-3 5-5"},
		{"out of order, then filled", []int{3, 2, 1}, 1400, "cum 3"},
		{"filled up to the next gap", []int{2, 3, 5, 1}, 1400, "cum 3 2-2"},
		// req 9260-6.2-19, 9260-3.3.4-6
		{"duplicates once for each arrival", []int{1, 1, 1, 3, 3}, 1400, "cum 1 2-2 dup 1 dup 1 dup 3"},
		// req 9260-6.2-14, 9260-6.7-5
		{"blocks that fit, from the lowest", []int{2, 4, 6, 8, 6}, 16 + 3*4, "cum 0 2-2 4-4 6-6"},
		{"far ahead is not reportable", []int{1, 65537}, 1400, "cum 1"},
		{"as far as a block reaches", []int{1, 65536}, 1400, "cum 1 65535-65535"},
		{"old TSN", []int{1, -5}, 1400, "cum 1 dup 4294967291"},
		{"no room for more than the cumulative TSN", []int{2, 2}, 16, "cum 0"},
	} {
		r := newReceiver()
		for i, n := range tt.tsns {
			_, err := feedPacket(r, 0, dataChunk(n, i, ube, "x"))
			must.That(t, err == nil, "%v, %v", tt.name, err)
		}
		check.Equal(t, tt.name, sackText(wire.Sack(r.AppendSack(nil, tt.room))), tt.want)
		check.That(t, !r.HasDups(), "%s: the SACK left duplicates to report", tt.name)
	}
	// req 9260-3.3.4-5
	r := newReceiver()
	mustPacket(t, r, 0, dataChunk(1, 0, be, "x"))
	k := r.AppendSack(nil, 15)
	check.That(t, len(k) == 0 && r.SackDue(0), "a SACK of %d octets in 15, one is due: %v", len(k), r.SackDue(0))
}

func TestTrackerWraps(t *testing.T) {
	// req 9260-1.6-1
	k := NewTracker(0xfffffffe)
	for _, n := range []wire.TSN{0xfffffffe, 0, 2, 1} {
		must.That(t, k.Check(n) == Fresh, "%v", n)
		k.Add(n)
	}
	must.That(t, k.Cum() == 0xfffffffe && k.Highest() == 2 && k.HasGaps(), "%v, %v", k.Cum(), k.Highest())
	k.Add(0xffffffff)
	check.That(t, k.Cum() == 2 && !k.HasGaps(), "%v", k.Cum())
	check.That(t, k.Check(0xffffffff) == SeenBefore && k.Check(3) == Fresh, "Check after the wrap")
}

func TestWhenASackIsDue(t *testing.T) {
	first := dataChunk(1, 0, be, "x")
	for _, tt := range []struct {
		name  string
		story func(r *Receiver)
		due   bool
	}{
		{"first DATA of the association", func(r *Receiver) {}, true},
		{"one packet later: delayed", func(r *Receiver) { sackOf(r); feedPacket(r, 0, dataChunk(2, 1, be, "x")) }, false},
		// req 9260-6.2-7
		{"second packet", func(r *Receiver) {
			sackOf(r)
			feedPacket(r, 0, dataChunk(2, 1, be, "x"))
			feedPacket(r, 0, dataChunk(3, 2, be, "x"))
		}, true},
		// req 9260-6.2-7
		{"packets count, not chunks", func(r *Receiver) { sackOf(r); feedPacket(r, 0, dataChunk(2, 1, be, "x"), dataChunk(3, 2, be, "x")) }, false},
		// req 9260-6.2-16
		{"I bit", func(r *Receiver) { sackOf(r); feedPacket(r, 0, dataChunk(2, 1, be|wire.FlagI, "x")) }, true},
		{"I bit of the first chunk of two", func(r *Receiver) {
			sackOf(r)
			feedPacket(r, 0, dataChunk(2, 1, be|wire.FlagI, "x"), dataChunk(3, 2, be, "x"))
		}, true},
		// req 9260-6.2-17
		{"only duplicates", func(r *Receiver) { sackOf(r); feedPacket(r, 0, first) }, true},
		// req 9260-6.7-1
		{"a gap", func(r *Receiver) { sackOf(r); feedPacket(r, 0, dataChunk(3, 2, be, "x")) }, true},
		// req 9260-6.7-1
		{"each packet while there is a gap", func(r *Receiver) {
			sackOf(r)
			feedPacket(r, 0, dataChunk(3, 2, be, "x"))
			sackOf(r)
			feedPacket(r, 0, dataChunk(4, 3, be, "x"))
		}, true},
		{"the packet that fills the gap", func(r *Receiver) {
			sackOf(r)
			feedPacket(r, 0, dataChunk(3, 2, be, "x"))
			sackOf(r)
			feedPacket(r, 0, dataChunk(2, 1, be, "x"))
		}, true},
		{"the one after it: delayed", func(r *Receiver) {
			sackOf(r)
			feedPacket(r, 0, dataChunk(3, 2, be, "x"))
			feedPacket(r, 0, dataChunk(2, 1, be, "x"))
			sackOf(r)
			feedPacket(r, 0, dataChunk(4, 3, be, "x"))
		}, false},
		{"refused DATA", func(r *Receiver) { sackOf(r); r.Admit(dataChunk(2, 1, be, "x")); r.LeaveUnacked(); r.PacketDone(0) }, true},
		{"a packet without DATA", func(r *Receiver) { sackOf(r); r.PacketDone(0) }, false},
		{"acknowledged by SHUTDOWN", func(r *Receiver) { r.NoteCumAckSent() }, false},
	} {
		r := newReceiver()
		mustPacket(t, r, 0, first)
		tt.story(r)
		check.Equal(t, tt.name+": SACK due", r.SackDue(0), tt.due)
	}
}

// A SACK that is due for the number of packets may be held back for DATA to go with, one that is
// due for anything else not.
func TestSackIsHeldForNothingButTheNumberOfPackets(t *testing.T) {
	for _, tt := range []struct {
		name  string
		story func(r *Receiver)
		held  bool
	}{
		{"two packets", func(r *Receiver) {
			feedPacket(r, 0, dataChunk(2, 0, wire.FlagU|be, "x"))
			feedPacket(r, 0, dataChunk(3, 0, wire.FlagU|be, "x"))
		}, true},
		{"a gap", func(r *Receiver) {
			feedPacket(r, 0, dataChunk(3, 0, wire.FlagU|be, "x"))
			feedPacket(r, 0, dataChunk(4, 0, wire.FlagU|be, "x"))
		}, false},
		{"two packets behind a duplicate", func(r *Receiver) { // req 9260-6.2-7
			feedPacket(r, 0, dataChunk(1, 0, be, "x"))
			sackOf(r)
			feedPacket(r, 0, dataChunk(2, 0, wire.FlagU|be, "x"))
			feedPacket(r, 0, dataChunk(3, 0, wire.FlagU|be, "x"))
		}, false},
		{"the I bit", func(r *Receiver) {
			feedPacket(r, 0, dataChunk(2, 0, wire.FlagU|wire.FlagI|be, "x"))
			feedPacket(r, 0, dataChunk(3, 0, wire.FlagU|be, "x"))
		}, false},
	} {
		r := newReceiver()
		mustPacket(t, r, 0, dataChunk(1, 0, be, "x"))
		sackOf(r)
		tt.story(r)
		r.HoldSack(true)
		check.That(t, r.SackDue(0) != tt.held && r.SackPending(), "%s: due %v, to go with DATA %v", tt.name,
			r.SackDue(0), r.SackPending())
		check.That(t, !tt.held || r.Deadline() != rawio.Never && r.SackDue(r.Deadline()), "%s: held for good", tt.name)
		r.HoldSack(false)
		check.That(t, r.SackDue(0), "%s: not due when it is let go", tt.name)
	}
}

// Without losses one SACK may answer a batch of packets; with them every second packet gets its
// own.
func TestSackAnswersABatchUnlessThereAreLosses(t *testing.T) {
	next := func(r *Receiver, n int) { // packets in sequence
		for range n {
			feedPacket(r, 0, dataChunk(int(r.CumTSN())+1, 0, wire.FlagU|be, "x"))
		}
	}
	for _, tt := range []struct {
		name  string
		story func(r *Receiver)
		now   bool
	}{
		{"two packets: due, but not at once", func(r *Receiver) { next(r, 2) }, false},
		{"the packet after a gap", func(r *Receiver) { feedPacket(r, 0, dataChunk(4, 3, be, "x")) }, true},
		{"a duplicate", func(r *Receiver) { feedPacket(r, 0, dataChunk(1, 0, be, "x")) }, true},
		{"the second packet after a duplicate", func(r *Receiver) { // req 9260-6.2-7
			feedPacket(r, 0, dataChunk(1, 0, be, "x"))
			sackOf(r)
			next(r, 2)
		}, true},
		{"the first packet after a duplicate", func(r *Receiver) { // req 9260-6.2-8
			feedPacket(r, 0, dataChunk(1, 0, be, "x"))
			sackOf(r)
			next(r, 1)
		}, false},
		{"long after the last loss", func(r *Receiver) {
			feedPacket(r, 0, dataChunk(1, 0, be, "x"))
			for range LossBackoffPackets / 2 {
				sackOf(r)
				next(r, 2)
			}
		}, false},
	} {
		r := newReceiver()
		mustPacket(t, r, 0, dataChunk(1, 0, be, "x"))
		sackOf(r)
		tt.story(r)
		check.Equal(t, tt.name+": SACK now", r.SackNow(), tt.now)
		sackOf(r)
		check.That(t, !r.SackNow(), "%s: again right after a SACK", tt.name)
	}
}

func TestDelayedSackComesAfterSackDelay(t *testing.T) {
	// req 9260-6.2-7
	r := newReceiver()
	mustPacket(t, r, 0, dataChunk(1, 0, be, "x"))
	sackOf(r)
	must.That(t, !r.SackPending() && r.Deadline() == rawio.Never, "pending after a SACK")
	mustPacket(t, r, 1000*ms, dataChunk(2, 1, be, "x"))
	must.That(t, r.SackPending() && r.Deadline() == 1200*ms, "deadline %v", r.Deadline())
	check.That(t, !r.SackDue(1200*ms-1) && r.SackDue(1200*ms), "not at 200 ms")
	// req 9260-6.2-11
	check.Equal(t, "SACK.Delay above 500 ms", NewAckPolicy(time.Hour, 0, false).sackDelay, 500*time.Millisecond)
}

// A SACK that goes at the end of SACK.Delay wakes somebody for it. Where packets come farther apart
// than that, the next goes at once, until DATA of ours would have been in time to take it along. By
// the letter none does.
func TestSackDoesNotWaitInVain(t *testing.T) {
	// req 9260-6.2-7
	for _, letter := range []bool{false, true} {
		r := NewReceiver(Config{PeerTSN: 1, RecvBuffer: 1 << 16, MaxMessage: 1000, PMDCS: 200, InStreams: 1,
			SackDelay: 100 * time.Millisecond, StrictRFC: letter})
		now, tsn := rawio.Time(0), 0
		arrive := func(after rawio.Time, waits bool) {
			t.Helper()
			now, tsn = now+after, tsn+1
			mustPacket(t, r, now, dataChunk(tsn, tsn-1, be, "x"))
			check.That(t, r.SackPending() && r.SackDue(now) == (!waits && !letter), "letter %v, packet %d: due %v",
				letter, tsn, r.SackDue(now))
		}
		timer := func() {
			now = r.Deadline()
			must.That(t, now != rawio.Never && r.SackDue(now), "letter %v: nothing is due", letter)
			sackOf(r)
		}
		answer := func() {
			r.NoteDataSent(now)
			if r.SackPending() {
				sackOf(r)
			}
		}
		mustPacket(t, r, 0, dataChunk(1, 0, be, "x")) // acknowledged at once
		tsn++
		sackOf(r)
		arrive(1000*ms, true)
		timer()
		arrive(100*ms, false) // the timer was 100 ms behind the packet before
		sackOf(r)
		arrive(101*ms, false)
		sackOf(r)            // alone, before the program answers
		arrive(100*ms, true) // they may be about to come in numbers
		sackOf(r)            // with DATA
		arrive(101*ms, true) // so waiting was right
		timer()
		arrive(200*ms, false)
		sackOf(r)
		now += 100 * ms
		answer() // in time, by a hair
		arrive(200*ms, true)
		timer()
		arrive(200*ms, false)
		sackOf(r)
		now += 101 * ms
		answer() // too late
		arrive(200*ms, false)
	}
}

// While packets are answered by DATA that takes the SACK along, a SACK may wait longer for that; no
// more when one was not, or when several packets came for one answer.
func TestLoneDelay(t *testing.T) {
	r := NewReceiver(Config{PeerTSN: 1, RecvBuffer: 1 << 16, MaxMessage: 1000, PMDCS: 200, InStreams: 1,
		SackDelay: time.Second})
	r.SetSackDelay(10*time.Millisecond, time.Millisecond)
	tsn := 0
	arrive := func() rawio.Time {
		tsn++
		mustPacket(t, r, 0, dataChunk(tsn, tsn-1, be, "x"))
		return r.Deadline()
	}
	arrive()
	sackOf(r) // the first is acknowledged at once
	answers := func() {
		t.Helper()
		for i := range answeredThreshold {
			d := arrive()
			must.That(t, d == 1*ms, "packet %d: %v", i, d)
			sackOf(r)
		}
		d := arrive()
		must.That(t, d == 10*ms, "after %d answers: %v", answeredThreshold, d)
	}
	answers()
	check.That(t, !r.SackDue(10*ms-1) && r.SackDue(10*ms), "not at 10 ms")
	sackOf(r)
	answers()
	arrive() // before an answer
	check.That(t, r.SackDue(0), "two packets without a SACK")
	sackOf(r)
	check.Equal(t, "after two packets together", arrive(), 1*ms)
}

func TestWindowIsWhatIsFree(t *testing.T) {
	r := newReceiver()
	x := string(make([]byte, 250))
	// req 9260-6.2-21
	mustPacket(t, r, 0, dataChunk(1, 0, be, x), dataChunk(2, 1, be, x))
	must.Equal(t, "window after 500 of 1000", r.Window(), 500)
	check.Equal(t, "a_rwnd", sackOf(r).ARwnd(), 500) // req 9260-6.2-23
	m, _ := r.Receive()
	check.Equal(t, "window before the upper layer has released the message", r.Window(), 500) // req 9260-6.2-22
	early := r.SackDue(0)
	r.Release(m)
	check.Equal(t, "window after release", r.Window(), 750)
	check.That(t, !early && r.SackDue(0), "a quarter of the buffer is free: no SACK says so")
	// Placed DATA costs nothing.
	r.Placed(dataChunk(3, 2, be, x))
	check.That(t, r.Window() == 750 && r.CumTSN() == 3, "placed DATA costs window")
}

func TestPlacedOrderedMessagesCountInTheirStream(t *testing.T) {
	r := newReceiver()
	mustPacket(t, r, 0, dataChunk(3, 2, be, "c"))
	r.Placed(dataChunk(2, 1, be, "b"))
	mustPacket(t, r, 0, dataChunk(1, 0, be, "a"))
	check.Equal(t, "received", drainText(r), "a|c|")
	r.Placed(dataChunk(4, 3, be, "d"))
	mustPacket(t, r, 0, dataChunk(5, 4, be, "e"))
	got := drainText(r)
	check.That(t, got == "e|" && r.reassembly.store.usedMemory == 0, "%q, memory %d", got,
		r.reassembly.store.usedMemory)
}

func TestZeroWindowTakesOnlyWhatFillsTheGap(t *testing.T) {
	x := string(make([]byte, 500))
	r := newReceiver()
	mustPacket(t, r, 0, dataChunk(1, 0, be, x), dataChunk(2, 1, be, x))
	sackOf(r)
	if got, _ := feedPacket(r, 0, dataChunk(3, 2, be, x)); got[0] != Dropped || !r.SackDue(0) { // req 9260-6.2-4
		t.Errorf("the next TSN with a closed window: %v, SACK due %v", got, r.SackDue(0))
	}
	r = newReceiver()
	// TSN 1 is missing, 2 and 3 fill the buffer.
	mustPacket(t, r, 0, dataChunk(2, 1, be, x), dataChunk(3, 2, be, x))
	sackOf(r)
	// req 9260-6.2-2, 9260-6.2-4, 9260-6.2-5
	got, _ := feedPacket(r, 0, dataChunk(4, 3, be, x))
	must.That(t, got[0] == Dropped && r.SackDue(0), "TSN above the highest with a closed window: %v, SACK due %v",
		got, r.SackDue(0))
	check.Equal(t, "SACK", sackText(sackOf(r)), "cum 0 2-3")
	// req 9260-6.2-3, 9260-6.2-25
	got, err := feedPacket(r, 0, dataChunk(1, 0, be, x))
	must.That(t, got[0] == New && err == nil, "TSN below the highest with a closed window: %v %v", got, err)
	k := sackText(sackOf(r))
	check.That(t, k == "cum 2" && r.Evicted() == 1, "SACK %s: the highest TSN was to go, %d went", k, r.Evicted())
	check.Equal(t, "received", drainText(r), x+"|"+x+"|")
	mustPacket(t, r, 0, dataChunk(3, 2, be, "again"))
	check.Equal(t, "received", drainText(r), "again|")
}

func TestEvictionTakesFragmentsFromTheEnd(t *testing.T) {
	x := string(make([]byte, 250))
	r := newReceiver()
	mustPacket(t, r, 0, dataChunk(3, 1, wire.FlagB, x), dataChunk(4, 1, 0, x), dataChunk(5, 1, wire.FlagE, x),
		dataChunk(2, 0, wire.FlagE, x))
	must.Equal(t, "window", r.Window(), 0)
	mustPacket(t, r, 0, dataChunk(1, 0, wire.FlagB, x))
	check.Equal(t, "SACK", sackText(sackOf(r)), "cum 4")
	check.Equal(t, "octets received", len(drainText(r)), 501)
	mustPacket(t, r, 0, dataChunk(5, 1, wire.FlagE, x))
	check.Equal(t, "octets received", len(drainText(r)), 751)
}

func TestSillyWindowAvoidance(t *testing.T) {
	// req 9260-6.2-6
	r := newReceiver() // steps of 200 octets
	x := string(make([]byte, 150))
	mustPacket(t, r, 0, dataChunk(1, 0, be, x))
	drainText(r)
	check.Equal(t, "a_rwnd reopened by 150", sackOf(r).ARwnd(), 850)
	mustPacket(t, r, 0, dataChunk(2, 1, be, x))
	drainText(r)
	check.Equal(t, "a_rwnd reopened by 300, which are worth it", sackOf(r).ARwnd(), 1000)
}

func TestWindowUpdate(t *testing.T) {
	// req 9260-6.2-9, 9260-6.2-10, 9260-6.2-20
	r := newReceiver()
	x := string(make([]byte, 100))
	for i := range 10 {
		mustPacket(t, r, 0, dataChunk(1+i, i, be, x))
	}
	must.Equal(t, "a_rwnd", sackOf(r).ARwnd(), 0)
	updates := 0
	for range 10 {
		m, _ := r.Receive()
		r.Release(m)
		if r.SackDue(0) {
			updates++
			k := sackOf(r)
			check.That(t, k.ARwnd() >= 250, "update to %d only", k.ARwnd())
		}
	}
	check.Equal(t, "window updates for the whole buffer, one for each quarter that opened", updates, 3)
}

func TestPayloadIsRetainedOrCopied(t *testing.T) {
	r := newReceiver()
	buf := rawio.NewBuf(make([]byte, 400))
	small, large := dataChunk(1, 0, be, "small"), dataChunk(2, 1, be, string(make([]byte, 300)))
	err := r.Queue(small, buf)
	check.That(t, err == nil && buf.Refs() == 1, "small payload: %v, %d references", err, buf.Refs())
	err = r.Queue(large, buf)
	check.That(t, err == nil && buf.Refs() == 2, "large payload: %v, %d references", err, buf.Refs())
	copy(small[wire.DataHeaderLen:], "XXXXX") // the packet's memory is used again
	got := drainText(r)
	check.That(t, got[:6] == "small|" && buf.Refs() == 1, "%q, %d references left", got[:6], buf.Refs())
	err = r.Queue(dataChunk(3, 2, wire.FlagB, string(make([]byte, 300))), buf)
	must.That(t, err == nil && buf.Refs() == 2, "%v", err)
	r.Close()
	check.That(t, buf.Refs() == 1 && r.Buffered() == 0, "Close: %d references, %d octets", buf.Refs(), r.Buffered())
	r = newReceiver()
	for i := range minSpares + 1 {
		must.OK(t, r.Queue(dataChunk(1+i, i, be, "abc"), rawio.NewBuf(make([]byte, 4))))
	}
	drainText(r)
	check.Equal(t, "loans that are kept for the next buffers", r.reassembly.store.numFreeRefs, minSpares)
}

// Packets that lie together in a buffer are held by one reference and paid for once.
func TestPiecesOfATrainShareTheirBuffer(t *testing.T) {
	r := NewReceiver(Config{PeerTSN: 1, RecvBuffer: 4000, PMDCS: 1400, InStreams: 16})
	train := func() *rawio.Buf {
		b := rawio.NewBuf(make([]byte, 4096))
		b.Filled = 2000
		return b
	}
	queue := func(tsn, stream int, buf *rawio.Buf, refs, mem int) {
		t.Helper()
		err := r.Queue(onStream(stream, tsn, 0, be, "crumb"), buf)
		must.That(t, err == nil && buf.Refs() == refs && r.reassembly.store.usedMemory == mem,
			"TSN %d: %v, %d references, %d of memory, want %d and %d", tsn, err, buf.Refs(),
			r.reassembly.store.usedMemory, refs, mem)
	}
	a, b, c := train(), train(), train()
	const each = pieceCost + messageCost
	queue(1, 0, a, 2, 4096+bufferRefCost+each)
	queue(2, 1, a, 2, 4096+bufferRefCost+2*each)
	queue(3, 2, b, 2, 2*(4096+bufferRefCost)+3*each)
	queue(4, 3, b, 2, 2*(4096+bufferRefCost)+4*each)
	queue(5, 4, a, 2, 2*(4096+bufferRefCost)+5*each+64) // more than twice the window is held already: a copy
	queue(6, 5, c, 1, 2*(4096+bufferRefCost)+6*each+2*64)
	check.OK(t, r.Audit(0))
	take := func() *Message { m, _ := r.Receive(); return m }
	first, second := take(), take()
	r.Release(second)
	check.Equal(t, "references with one piece left", a.Refs(), 2)
	r.Release(first)
	check.That(t, a.Refs() == 1 && r.reassembly.store.usedMemory == 4096+bufferRefCost+4*each+2*64,
		"%d references, %d of memory", a.Refs(), r.reassembly.store.usedMemory)
	queue(7, 6, a, 2, 2*(4096+bufferRefCost)+5*each+2*64) // as if it had been filled anew
	r.Close()
	check.That(t, a.Refs() == 1 && b.Refs() == 1 && r.reassembly.store.usedMemory == 0,
		"Close: %d and %d references, %d of memory", a.Refs(), b.Refs(), r.reassembly.store.usedMemory)
}

func TestCopyToReadsInSteps(t *testing.T) {
	r := newReceiver()
	mustPacket(t, r, 0, dataChunk(1, 0, wire.FlagB, "abc"), dataChunk(2, 0, 0, "defg"),
		dataChunk(3, 0, wire.FlagE, "h"))
	m, _ := r.Receive()
	for _, tt := range []struct {
		name     string
		off, max int
		want     string
	}{
		{"all", 0, 100, "abcdefgh"}, {"first", 0, 2, "ab"}, {"across pieces", 2, 3, "cde"}, {"reading on", 5, 9, "fgh"},
		{"back from the end", 1, 1, "b"}, {"on", 4, 2, "ef"}, {"back from the middle", 0, 4, "abcd"}, {"the end", 8, 4, ""}, {"beyond", 99, 4, ""}, {"before", -1, 4, ""},
	} {
		dst := make([]byte, tt.max)
		n := m.CopyTo(dst, tt.off)
		check.That(t, bytes.Equal(dst[:n], []byte(tt.want)), "%s: %q, want %q", tt.name, dst[:n], tt.want)
		check.That(t, tt.name != "first" || m.copyPiece == m.headPiece, "who reads on has to begin anew")
	}
	r.Release(m)
}

// Placed messages cost no window. A peer that leaves gaps between their SSNs must not have us
// remember ever more of them.
func TestPlacedMessagesAheadOfTheirSSNAreBounded(t *testing.T) {
	r := NewReceiver(Config{PeerTSN: 1, RecvBuffer: 16 << 20, InStreams: 16, SackDelay: 200 * time.Millisecond})
	tsn, taken := 1, 0
	place := func(id, ssn int, flags uint8) Admission {
		d := onStream(id, tsn, ssn, flags, "x")
		a := r.Admit(d)
		if a == New {
			r.Placed(d)
			tsn++
		}
		return a
	}
	for ssn := 1; ssn < 10_000; ssn++ {
		for id := range 4 {
			if place(id, ssn, be) == New {
				taken++
			}
		}
	}
	must.Equal(t, "messages taken whose SSN is ahead", taken, maxPlaceholders)
	check.Equal(t, "an unordered message", place(0, 9, ube), New)
	check.Equal(t, "one of a stream that there is not, which is no violation", place(16, 5, be), New)
	check.Equal(t, "the next of another stream", place(7, 0, be), New)
	check.OK(t, r.Audit(0))
	// The messages that the others wait for arrive, and then there is room again.
	for id := range 4 {
		check.Equal(t, "SSN 0", place(id, 0, be), New)
		check.Equal(t, "another with the SSN of one that waits and is due", place(id, 1, be), Dropped)
	}
	_, ok := r.Receive()
	check.That(t, !ok && r.reassembly.streams.numPlaceholders == 0 && r.reassembly.store.usedMemory == 0,
		"%d messages still wait, %d octets", r.reassembly.streams.numPlaceholders, r.reassembly.store.usedMemory)
	check.Equal(t, "after it", place(0, 20_000, be), New)
}

// The I bit counts where DATA is placed at arrival too.
func TestSackOfPlacedDataIsNotDelayedAgainstTheIBit(t *testing.T) {
	// req 9260-6.2-16
	for _, row := range []struct {
		name  string
		flags uint8
		due   bool
	}{{"without I bit", ube, false}, {"with I bit", ube | 0x08, true}} {
		r := newReceiver()
		mustPacket(t, r, 0, dataChunk(1, 0, ube, "the first DATA is acknowledged at once"))
		sackOf(r)
		d := dataChunk(2, 0, row.flags, "x")
		must.Equal(t, "verdict", r.Admit(d), New)
		r.Placed(d)
		must.OK(t, r.PacketDone(0))
		check.Equal(t, row.name+": SACK due", r.SackDue(0), row.due)
	}
}

func TestWhatIsKnownOfAStream(t *testing.T) {
	r := newReceiver()
	mustPacket(t, r, 0, onStream(3, 1, 0, be, "a"), onStream(3, 2, 2, be, "c"), onStream(3, 3, 3, be, "d"))
	for id, want := range map[wire.StreamID]string{3: "1 2 true", 4: "0 0 true", 15000: "0 0 false"} {
		check.Equal(t, fmt.Sprintf("next SSN of stream %d, how many wait, and whether it is known", id),
			fmt.Sprint(r.Stream(id)), want)
	}
}
