package tx

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/wire"
)

type gap = [2]wire.TSN

// In the stories the initial cwnd of 4000 lets five chunks of 984 octets go.

// A receiver that answers a batch of packets by one SACK says what it would have said in several.
func TestSackForManyPacketsCountsAsOneForEach(t *testing.T) {
	for _, tt := range []struct {
		name   string
		letter bool
		again  bool // the first was sent again
		gaps   []gap
		want   string
	}{
		{"three above", false, false, []gap{{3, 5}}, "1 | 2"},
		{"in several blocks", false, false, []gap{{2, 2}, {4, 4}, {6, 6}}, "1"},
		{"and only what has three above", false, false, []gap{{2, 3}, {5, 6}}, "1"},
		{"two above", false, false, []gap{{3, 4}}, ""},
		{"by the letter", true, false, []gap{{3, 6}}, ""},
		{"but not below what was sent again", false, true, []gap{{2, 6}}, ""},
	} {
		l := newLab(t, 1)
		l.s.cfg.StrictRFC = tt.letter
		l.enqueueMany(6, full)
		l.pathAt(0).cc = newFixedWindow(6 * counted)
		l.transmit()
		if r := l.s.outstanding.recordOf(1); tt.again {
			r.flags |= flagResent
			l.s.outstanding.retransmitLog.push(&l.s.outstanding, 1, r.sentStamp)
		}
		l.sackAfter(100, 0, tt.gaps...)
		l.pathAt(0).pacing.nextSendAt = 0
		l.expectTSNs(tt.name, tt.want)
	}
}

func TestFastRetransmitOnTheThirdMiss(t *testing.T) {
	l := newLab(t, 1)
	l.enqueueMany(20, full)
	l.expectTSNs("initial window", "1 | 2 | 3 | 4 | 5")
	l.now = 100 * ms
	l.sack(1)
	l.expectTSNs("one acknowledged: 984 more, and slow start's 984", "6 | 7")
	l.expectCwnd("slow start", 4984)
	l.sack(2)
	l.expectTSNs("the same", "8 | 9")
	l.expectCwnd("slow start", 5968)
	// TSN 3 is lost: 4, 5 and 6 arrive, each makes a SACK.
	l.now = 200 * ms
	l.sack(2, gap{4, 4})
	l.sack(2, gap{4, 5})
	must.Equal(t, "miss indications after two SACKs", l.s.outstanding.recordOf(3).missCount, 2) // req 9260-6.7-4
	// req 9260-7.2.4-1
	l.expectTSNs("second miss: new DATA only", "10 | 11 | 12")
	before := l.pathAt(0).cc.Window()
	l.now = 300 * ms
	l.sack(2, gap{4, 6})
	// req 9260-7.2.4-8
	check.That(t, l.s.recovery.active && l.s.recovery.exitTSN == 12,
		"recovery %v, exit point %d, want the highest outstanding TSN", l.s.recovery.active, l.s.recovery.exitTSN)
	// req 9260-7.2.3-1, 9260-7.2.4-4, 9260-7.2.4-10
	want := max((before+counted)/2, 4000)
	check.That(t, l.pathAt(0).cc.Window() == want && l.pathAt(0).cc.Ssthresh() == want,
		"cwnd %d ssthresh %d, want %d", l.pathAt(0).cc.Window(), l.pathAt(0).cc.Ssthresh(), want)
	// req 9260-7.2.4-5
	l.expectTSNs("third miss: the lost chunk at once, whatever cwnd says", "3")
	// req 9260-7.2.4-6, 9260-6.1-18
	check.Equal(t, "T3-rtx, restarted for the first outstanding chunk, at", l.pathAt(0).timers.t3At,
		l.now.Add(l.pathAt(0).RTO()))
	// req 9260-7.2.1-6
	l.sack(2, gap{4, 8})
	check.That(t, l.pathAt(0).cc.Window() <= max((before+counted)/2, 4000), "cwnd grew in Fast Recovery")
	l.sack(11)
	check.That(t, l.s.recovery.active, "Fast Recovery ended before its exit point")
	l.sack(12)
	check.That(t, !l.s.recovery.active, "Fast Recovery goes on after its exit point")
}

func TestMissesCountBelowTheHighestNewlyAcknowledgedOnly(t *testing.T) {
	// req 9260-7.2.4-2
	l := newLab(t, 1)
	l.sendFull(5)
	l.sack(0, gap{4, 4})
	for range 5 {
		l.sack(0, gap{4, 4}) // the same again: nothing newly acknowledged
	}
	check.Equal(t, "miss indications from SACKs that acknowledge nothing new", l.s.outstanding.recordOf(1).missCount, 1)
	l.sack(0, gap{2, 2}, gap{4, 4})
	a, b := l.s.outstanding.recordOf(1).missCount, l.s.outstanding.recordOf(3).missCount
	check.That(t, a == 2 && b == 1, "misses %d and %d, want 2 below the newly acknowledged TSN 2 and 1 above", a, b)
}

func TestInRecoveryAnAdvanceCountsForAllMissing(t *testing.T) {
	// req 9260-7.2.4-3, 9260-7.2.4-9
	l := newLab(t, 1)
	l.pathAt(0).cc = newFixedWindow(1 << 20)
	l.sendFull(12)
	// 1 and 8 are lost.
	l.sack(0, gap{2, 2})
	l.sack(0, gap{2, 3})
	l.sack(0, gap{2, 4})
	l.expectTSNs("fast retransmission of 1", "1")
	l.sack(0, gap{2, 7}, gap{9, 9})
	l.sack(0, gap{2, 7}, gap{9, 9}) // the same again: no advance, and nothing newly acknowledged
	must.Equal(t, "misses of TSN 8", l.s.outstanding.recordOf(8).missCount, 1)
	l.sack(1, gap{2, 7}, gap{9, 9})
	must.Equal(t, "misses of TSN 8: 1 is newly acknowledged and below it, but the advance in Fast Recovery counts",
		l.s.outstanding.recordOf(8).missCount, 2)
	l.sack(7, gap{9, 9})
	l.expectTSNs("fast retransmission of 8 in the same recovery", "8")
	check.Equal(t, "entries into Fast Recovery", l.s.Stats().FastRetransmits, 1)
}

func TestFastRetransmissionHappensOnce(t *testing.T) {
	// req 9260-7.2.4-7
	l := newLab(t, 1)
	l.pathAt(0).cc = newFixedWindow(1 << 20)
	l.sendFull(12)
	for i := range wire.TSN(3) {
		l.sack(0, gap{2, 2 + i})
	}
	l.expectTSNs("the third miss", "1")
	for i := range wire.TSN(6) {
		l.sack(0, gap{2, 5 + i})
	}
	l.expectTSNs("six more misses", "")
	l.runNextTimeout()
	l.expectTSNs("T3-rtx", "1")
}

func TestRetransmissionsThatDoNotFitFollowAsCwndAllows(t *testing.T) {
	// req 9260-6.1-10, 9260-6.10-3, 9260-7.2.4-5, 9260-1.3-4
	l := newLab(t, 1)
	w := newFixedWindow(1 << 20)
	l.pathAt(0).cc = w
	l.enqueueMany(1, full)
	l.enqueueMany(1, 284)
	l.sendFull(38)
	*w = 3*counted + 1
	l.sack(0, gap{4, 4})
	l.sack(0, gap{4, 5})
	l.sack(0, gap{4, 6})
	l.expectTSNs("one packet beyond cwnd", "1")
	must.That(t, l.s.outstanding.numToRetransmit == 2 && l.pathAt(0).Flight() == 35*counted,
		"marked %d, flight %d chunks", l.s.outstanding.numToRetransmit, l.pathAt(0).Flight()/counted)
	l.sack(0, gap{4, 7})
	l.expectTSNs("no second packet beyond cwnd", "")
	l.enqueueMany(1, 8)
	l.sack(0, gap{4, 38})
	l.expectTSNs("cwnd open for one chunk: the marked before the new", "2")
	l.sack(0, gap{4, 39})
	l.expectTSNs("and one more", "3")
	l.sack(0, gap{4, 40})
	l.expectTSNs("then new", "41")
}

func TestT3ExpiryMarksAllForRetransmission(t *testing.T) {
	l := newLab(t, 1)
	p := l.pathAt(0)
	l.enqueueMany(20, full)
	l.expectTSNs("initial window", "1 | 2 | 3 | 4 | 5")
	// req 9260-6.1-17
	must.Equal(t, "T3-rtx at", l.s.NextTimeout(), second)
	rwnd := l.s.Rwnd()
	check.That(t, l.runNextTimeout().Has(0), "the path's error was not reported") // req 9260-8.2-1
	// req 9260-7.2.3-2, 9260-7.2.1-2
	l.expectCwnd("T3-rtx", 1000)
	check.Equal(t, "ssthresh", p.cc.Ssthresh(), 4000)
	// req 9260-6.3.3-1
	check.Equal(t, "RTO", p.RTO(), 2*second.Sub(0))
	// req 9260-6.2.1-2
	check.That(t, l.s.Rwnd() == rwnd+5*full && p.Flight() == 0, "rwnd %d flight %d: marked chunks count", l.s.Rwnd(),
		p.Flight())
	// req 9260-6.3.3-2, 9260-6.3.3-5
	l.expectTSNs("the earliest that fit one packet", "1")
	// req 9260-6.3.3-3
	check.Equal(t, "T3-rtx, the doubled RTO after the retransmission, at", l.s.NextTimeout(), second+2*second)
	l.sackAfter(100, 1)
	l.expectTSNs("the acknowledgement lets cwnd octets go", "2 | 3")
	check.Equal(t, "SRTT without a measurement on a retransmission", p.SRTT(), 0) // req 9260-6.3.1-6
	l.sack(5)
	l.expectTSNs("new DATA", "6 | 7 | 8")
	l.sackAfter(50, 6)
	// req 9260-6.3.3-4
	check.That(t, p.SRTT() == 50*ms.Sub(0) && p.RTO() == second.Sub(0),
		"SRTT %v RTO %v: the next measurement collapses the RTO", p.SRTT(), p.RTO())
}

func TestOnePacketInFlightAfterT3UntilAcknowledged(t *testing.T) {
	// req 9260-7.2.1-2
	l := newLab(t, 1)
	l.enqueueMany(3, 100) // one packet, far below cwnd
	l.sendFull(20)
	l.runNextTimeout()
	l.expectTSNs("the small chunks and no second packet, though flight is below cwnd", "1 2 3")
	l.expectTSNs("nor later", "")
	l.runNextTimeout()
	l.expectTSNs("nor after another timeout", "1 2 3")
	l.sack(3)
	l.expectTSNs("the acknowledgement reopens", "4 | 5")
	check.That(t, !l.pathAt(0).onePacketOnly, "still limited")
}

func TestT3EndsFastRecovery(t *testing.T) {
	l := newLab(t, 1)
	l.sendFull(20)
	for i := range wire.TSN(3) {
		l.sack(0, gap{2, 2 + i})
	}
	l.transmit()
	l.runNextTimeout()
	check.That(t, !l.s.recovery.active, "in Fast Recovery after a timeout: slow start could not grow cwnd")
}

func TestTimerRules(t *testing.T) {
	l := newLab(t, 1)
	p := l.pathAt(0)
	l.sendFull(1)
	must.Equal(t, "R1: T3-rtx at", p.timers.t3At, second) // req 9260-6.1-17
	l.now = 300 * ms
	l.sendFull(3)
	check.Equal(t, "T3-rtx after another transmission, at", p.timers.t3At, second) // req 9260-6.1-19
	l.now = 400 * ms
	l.sack(0, gap{3, 3})
	check.Equal(t, "T3-rtx after an acknowledgement not of the earliest, at", p.timers.t3At, second)
	l.now = 500 * ms
	l.sack(1, gap{3, 3})
	check.Equal(t, "R3: T3-rtx at", p.timers.t3At, l.now.Add(p.RTO())) // req 9260-6.3.2-2
	l.sack(4)
	// req 9260-6.3.2-1
	check.That(t, p.timers.t3At == rawio.Never && l.s.NextTimeout() == rawio.Never,
		"R2: T3-rtx runs with nothing outstanding")
}

func TestRenegedChunksAreOutstandingAgain(t *testing.T) {
	// req 9260-6.2.1-5, 9260-7.1-3
	l := newLab(t, 1)
	p := l.pathAt(0)
	l.sendFull(4)
	l.now = 100 * ms
	l.sack(1, gap{3, 4})
	must.Equal(t, "flight", p.Flight(), counted)
	l.sack(2, gap{3, 3})
	n := l.s.outstanding.recordOf(4).missCount
	check.That(t, l.s.Stats().Reneged == 1 && p.Flight() == counted && n == 1, "reneged %d, flight %d, %d misses",
		l.s.Stats().Reneged, p.Flight(), n)
	check.That(t, p.timers.t3At != rawio.Never, "R4: no T3-rtx for the reneged TSN")
	l.runNextTimeout()
	l.expectTSNs("T3-rtx", "4")
	check.Equal(t, "messages acknowledged: a gap acknowledgement frees nothing", len(l.acked), 2)
	l.sack(4)
	check.Equal(t, "messages acknowledged", len(l.acked), 4) // req 9260-6.7-3
	l = newLab(t, 1)
	l.pathAt(0).cc = newFixedWindow(1 << 20)
	l.enqueueMany(64, 4) // as many as there are records
	l.transmit()
	l.sack(0, gap{2, 64})
	l.sack(0, gap{3, 64})
	check.Equal(t, "chunks are taken back", l.s.Stats().Reneged, 1)
}

// T3-rtx starts anew with the retransmission of the earliest outstanding TSN, also where the next
// is in flight, and with that of no other.
func TestT3RestartsWithTheEarliestTSN(t *testing.T) {
	for _, row := range []struct {
		name     string
		again    wire.TSN // fast-retransmitted
		restarts bool
	}{
		{"the earliest", 1, true}, // req 9260-6.1-18
		{"the second", 2, false},
	} {
		l := newLab(t, 1)
		l.sendFull(5)
		p, other := l.pathAt(0), 3-row.again
		l.now = 300 * ms
		for last := range wire.TSN(2) {
			l.sack(0, gap{other, other}, gap{3, 3 + last})
		}
		l.sack(0, gap{3, 5}) // the third miss, and the other is taken back: it is in flight
		t3 := p.timers.t3At
		l.now += ms
		l.expectTSNs(row.name, fmt.Sprint(row.again))
		if row.restarts {
			t3 = l.now.Add(p.RTO())
		}
		check.Equal(t, row.name+": T3-rtx expires at", p.timers.t3At, t3)
	}
}

func TestStaleAndImpossibleSacks(t *testing.T) {
	l := newLab(t, 1)
	l.sendFull(5)
	l.sack(3)
	// req 9260-6.2.1-3
	check.That(t, l.handleSack(makeSack(2, 0)).Stale && l.s.Rwnd() != 0,
		"a SACK below the Cumulative TSN Ack Point was processed")
	for _, tt := range []struct {
		name string
		k    wire.Sack
	}{
		// req 9260-12.4-3
		{"cumulative TSN never sent", makeSack(6, 1000)},
		{"gap block beyond what was sent", makeSack(3, 1000, wire.GapBlock{Start: 2, End: 3})},
		{"far beyond", makeSack(3+1<<30, 1000)},
	} {
		var e *UnsentTSNError
		_, err := l.s.HandleSack(l.now, tt.k)
		check.That(t, errors.As(err, &e) && l.s.Outstanding() == 2, "%s: %v, %d outstanding", tt.name, err,
			l.s.Outstanding())
	}
	var e *UnsentTSNError
	_, err := l.s.HandleCumAck(l.now, 6)
	check.That(t, errors.As(err, &e), "SHUTDOWN: %v", err)
	for _, k := range []wire.Sack{
		makeSack(3, 1000, wire.GapBlock{Start: 2, End: 1}),
		makeSack(3, 1000, wire.GapBlock{Start: 0, End: 0}),
		makeSack(3, 1000, wire.GapBlock{Start: 9, End: 1}),
		makeSack(3, 1000, wire.GapBlock{Start: 2, End: 2}, wire.GapBlock{Start: 1, End: 2},
			wire.GapBlock{Start: 2, End: 2}),
	} {
		l.handleSack(k) // malformed blocks do no harm
	}
}

func TestShutdownAcknowledges(t *testing.T) {
	l := newLab(t, 1)
	l.sendFull(5)
	l.sack(1, gap{4, 4})
	// req 9260-3.3.8-2: the SHUTDOWN that does not repeat the gap block takes nothing back.
	r, err := l.s.HandleCumAck(l.now, 3)
	l.check()
	check.That(t, err == nil && r.CumAdvanced && r.NewlyAcked && l.s.CumTSN() == 3 && l.s.outstanding.numGapAcked == 1,
		"%+v %v: cumulative TSN %d, %d gap-acknowledged", r, err, l.s.CumTSN(), l.s.outstanding.numGapAcked)
	r, _ = l.s.HandleCumAck(l.now, 2)
	check.That(t, r.Stale, "an older SHUTDOWN is not stale")
	l = newLab(t, 1)
	l.sendFull(8)
	for last := wire.TSN(2); last <= 4; last++ {
		l.sack(0, gap{2, last})
	}
	_, err = l.s.HandleCumAck(l.now, 5)
	check.That(t, err == nil && !l.s.recovery.active,
		"still in Fast Recovery when a SHUTDOWN has acknowledged all, %v", err)
}

// A peer in SHUTDOWN-SENT that answers DATA by SHUTDOWN alone must not run us into a window of 0.
func TestShutdownLeavesTheWindowOpen(t *testing.T) {
	l := newLab(t, 1)
	l.s.SetPeer(2*full, 16)
	l.enqueueMany(6, full)
	for cum := wire.TSN(0); cum < 6; cum += 2 {
		l.expectTSNs("the peer's window", fmt.Sprintf("%d | %d", cum+1, cum+2))
		_, err := l.s.HandleCumAck(l.now, cum+2)
		must.That(t, err == nil && l.s.Rwnd() == 2*full, "a_rwnd %d after SHUTDOWN for TSN %d, %v", l.s.Rwnd(), cum+2,
			err)
		l.check()
	}
}

func TestDuplicatesCountOnceForEachRetransmission(t *testing.T) {
	// req 9260-7.2.2-3
	l := newLab(t, 1)
	l.sendFull(5)
	l.runNextTimeout()
	l.transmit()
	k := wire.Sack(wire.AppendSack(nil, wire.SackFields{CumTSN: 1, ARwnd: 1 << 20, Dups: []wire.TSN{1, 1, 1, 2, 77}}))
	w := newFixedWindow(1 << 20)
	l.pathAt(0).cc = w
	l.handleSack(k)
	check.Equal(t, "octets of duplicates, those of the one chunk that was sent twice", l.pathAt(0).sack.dupOctets,
		counted)
}

// After a timeout the SACKs name chunks that arrived long ago and for which earlier ones had no
// room. That they were just sent again does not make what was sent with them look lost before a
// round trip has passed.
func TestLateNewsOfOldChunksIsNoLoss(t *testing.T) {
	l := newLab(t, 1)
	l.now = second
	l.sendFull(10)
	l.sackAfter(100, 1)
	l.transmit()
	l.runNextTimeout()
	l.transmit() // 2
	l.sackAfter(100, 2)
	l.expectTSNs("after the timeout", "3 | 4")
	l.now += 80 * ms
	for last := wire.TSN(4); last <= 7; last++ { // the first transmissions
		l.sack(2, [2]wire.TSN{4, last})
	}
	n := l.s.Stats().FastRetransmits
	check.That(t, n <= 0, "3 was taken for lost %d times, 80 ms after it was sent over a path of 100 ms", n)
}

// A clock may jump so far that stamps do not tell any more what was sent when. What is outstanding
// then counts as sent again now, whatever comes first: nothing that arrives of it makes late what
// goes after it, no round trip is measured by it, and it is late itself when something else has
// arrived.
func TestStampsAcrossAJumpOfTheClock(t *testing.T) {
	l := newLab(t, 1)
	l.sendFull(1)
	l.sackAfter(100, 1)
	l.now += rawio.Time(maxStampAge)
	l.s.HandleTimeout(l.now)
	check.That(t, l.s.delivered.latest.isSet, "what has arrived is forgotten sooner than stamps wrap")
	for _, jump := range []time.Duration{maxStampAge + 1, 1 << 31 * time.Microsecond, 4281 * time.Second,
		1 << 32 * time.Microsecond, 10 * time.Hour} {
		for name, first := range map[string]func(*senderLab){
			"a SACK":     func(l *senderLab) { l.sack(2, gap{4, 5}) },
			"a SHUTDOWN": func(l *senderLab) { must.Do(l.s.HandleCumAck(l.now, 2))(t) },
			"T3-rtx":     func(l *senderLab) { l.s.HandleTimeout(l.now) },
			"more DATA":  func(l *senderLab) { l.enqueueMany(1, full); l.transmit() },
		} {
			l := newLab(t, 1)
			l.pathAt(0).cc = newFixedWindow(1 << 20)
			l.now = 300 * second
			l.sendFull(8)
			l.sackAfter(100, 1, gap{4, 4})
			srtt := l.pathAt(0).rttEst.srtt
			l.now += rawio.Time(jump)
			first(l)
			l.transmit()
			l.now += ms
			l.enqueueMany(3, full)
			l.transmit()
			l.sackAfter(99, 2, gap{4, 5})
			l.transmit()
			g, last := &l.s.outstanding, l.s.outstanding.nextTSN-1
			_, late := g.lossEligible.Next(9, int(last-8))
			check.That(t, last > 10 && !late && l.pathAt(0).rttEst.srtt == srtt,
				"%s after %v: something is late up to %d, or the round trip is %v, and was %v", name, jump, last,
				l.pathAt(0).rttEst.srtt, srtt)
			l.sackAfter(101, 2, gap{4, 5}, gap{last, last})
			for c := g.firstUnacked; c != last; c++ {
				check.That(t, g.lossEligible.Has(c) == g.recordOf(c).isIn(inFlight), "%s after %v: %d is late: %v",
					name, jump, c, g.lossEligible.Has(c))
			}
		}
	}
}

// callLog notes in which order it hears of acknowledgements and losses.
type callLog struct {
	*fixedWindow
	calls string
}

func (d *callLog) OnAck(rawio.Time, cc.Ack) { d.calls += "a" }
func (d *callLog) OnLoss(rawio.Time)        { d.calls += "l" }

func TestAcknowledgementGrowsTheWindowBeforeALossHalvesIt(t *testing.T) {
	// req 9260-7.2.4-10
	l := newLab(t, 1)
	d := &callLog{fixedWindow: newFixedWindow(1 << 20)}
	l.pathAt(0).cc = d
	l.sendFull(10)
	l.sack(0, gap{3, 3})
	l.sack(0, gap{3, 4})
	l.sack(1, gap{3, 5})
	check.Equal(t, "heard", d.calls, "aaal")
}

// What was sent again is kept in little memory: twice what is live, and nothing of much once all is
// acknowledged.
func TestMemoryOfWhatIsSentAgain(t *testing.T) {
	for live, want := range map[wire.TSN]int{0: minRetransmitLog, minRetransmitLog / 2: minRetransmitLog,
		minRetransmitLog/2 + 1: minRetransmitLog + 2} {
		a, g := retransmitLog{entries: make([]transmission, 0, minRetransmitLog)}, outstanding{}
		for i := range minRetransmitLog {
			n, r := g.appendRecord()
			r.sentStamp = uint32(i)
			a.push(&g, n, r.sentStamp)
		}
		g.firstUnacked = minRetransmitLog - live
		a.push(&g, 0, 99)
		check.That(t, cap(a.entries) == want && len(a.entries) == int(live)+1,
			"%d of %d, %d of which are live, room for %d", len(a.entries), cap(a.entries), live, want)
	}
	for _, n := range []int{16 * minRetransmitLog, 16*minRetransmitLog + 1} {
		a := retransmitLog{entries: make([]transmission, n)}
		a.clearAll()
		check.That(t, len(a.entries) == 0 && (a.entries != nil) == (n == 16*minRetransmitLog),
			"of %d, room for %d is kept", n, cap(a.entries))
	}
}
