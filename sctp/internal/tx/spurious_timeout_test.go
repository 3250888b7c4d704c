package tx

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// sackAfter is a SACK, so long after what was before, and what goes again then.
type sackAfter struct {
	after rawio.Time
	wire.SackFields
	resentTSN string
}

// T3-rtx that was early is undone: what it has marked is in flight, as of then. A SACK that one
// transmission or the other may have brought about says nothing.
func TestTimeoutThatWasEarlyIsUndone(t *testing.T) {
	cum := func(after rawio.Time, cum wire.TSN, gaps ...wire.GapBlock) sackAfter {
		return sackAfter{after, wire.SackFields{CumTSN: cum, ARwnd: 1 << 20, Gaps: gaps}, ""}
	}
	again := func(h sackAfter, tsn string) sackAfter { h.resentTSN = tsn; return h }
	twice := func(tsn wire.TSN) sackAfter {
		return sackAfter{50 * ms, wire.SackFields{CumTSN: 2, ARwnd: 1 << 20, Dups: []wire.TSN{tsn}}, ""}
	}
	for _, tt := range []struct {
		name           string
		heard          []sackAfter
		undone, marked int
		letter         bool
	}{
		{"the earliest, too soon", []sackAfter{cum(49*ms, 2)}, 1, 0, false},
		{"by the letter", []sackAfter{cum(49*ms, 2), cum(0, 3), cum(0, 4)}, 0, 1, true},
		{"after half a round trip", []sackAfter{cum(50*ms, 2)}, 0, 3, false},
		{"and it has come twice", []sackAfter{cum(100*ms, 2), twice(2)}, 1, 0, false},
		{"another has", []sackAfter{again(cum(100*ms, 2), "3"), twice(3)}, 0, 2, false},
		{"and one that did not go again", []sackAfter{cum(100*ms, 3)}, 0, 2, false},
		{"two, in two SACKs", []sackAfter{cum(100*ms, 3), cum(0, 3, wire.GapBlock{Start: 2, End: 2})}, 1, 0, false},
		{"with another between", []sackAfter{again(cum(100*ms, 3), "4"), cum(100*ms, 4), cum(0, 5)}, 0, 0, false},
		{"one that went again just now", []sackAfter{again(cum(100*ms, 3), "4"), cum(49*ms, 4)}, 1, 0, false},
		{"others before the earliest", []sackAfter{cum(0, 1, wire.GapBlock{Start: 2, End: 2}), cum(0, 1, wire.GapBlock{Start: 2, End: 3})}, 0, 1, false},
	} {
		l, c := farLab(t, 1, 0)
		p := l.pathAt(0)
		l.s.cfg.StrictRFC, p.timers.ptoAt, c.Controller, l.now = tt.letter, rawio.Never, newFixedWindow(1),
			p.timers.t3At
		l.s.HandleTimeout(l.now)
		l.expectTSNs(tt.name+": the earliest goes again", "2")
		for _, h := range tt.heard {
			l.now += h.after
			l.handleSack(wire.Sack(wire.AppendSack(nil, h.SackFields)))
			if p.pacing.nextSendAt = 0; h.resentTSN != "" {
				l.expectTSNs(tt.name, h.resentTSN)
			}
		}
		check.That(t, c.undone == tt.undone && int(l.s.outstanding.numToRetransmit) == tt.marked,
			"%s: undone %d times, with %d marked", tt.name, c.undone, l.s.outstanding.numToRetransmit)
		if l.s.CumTSN() == 2 && tt.marked == 0 && len(tt.heard) == 1 { // what is in flight since then may be lost
			l.sackAfter(100, 2, gap{5, 5})
			l.expectTimeout(tt.name, 25)
			l.expectTSNs(tt.name, "3")
		}
	}
}

// Round trips of a path whose queue is full are long, for thousands of them. T3-rtx expires when
// the queue is empty, and what goes again is acknowledged sooner than all of these: it was lost,
// and goes on in slow start. (usrsctp in SHUTDOWN-SENT answers with SHUTDOWN alone: with all in
// flight again nothing told what is missing, and each flight of ten packets took a T3-rtx, of one
// second, of two, of four.)
func TestTimeoutIsNotEarlyWhereTheQueueHasGone(t *testing.T) {
	l, c := farLab(t, 1, 0)
	p := l.pathAt(0)
	p.rttEst = newRTTEstimator(p.rttEst.cfg)
	p.rttEst.addSample(50 * time.Microsecond)
	for range 2 * minRTTWindow {
		p.rttEst.addSample(time.Millisecond)
	}
	p.timers.ptoAt, c.Controller, l.now = rawio.Never, newFixedWindow(1), p.timers.t3At
	l.s.HandleTimeout(l.now)
	l.expectTSNs("the earliest goes again", "2")
	for _, h := range []struct {
		cum  wire.TSN
		goes string
	}{{2, "3"}, {3, "4"}, {4, "5"}} {
		l.now += 40 * rawio.Time(time.Microsecond)
		_, err := l.s.HandleCumAck(l.now, h.cum)
		must.OK(t, err)
		l.expectTSNs("and the next, as the queue is empty", h.goes)
	}
	check.Equal(t, "undone", c.undone, 0)
}

// T3-rtx that was early marks no more, where there is so much to mark that it takes several parts.
func TestTimeoutThatWasEarlyMarksNoMore(t *testing.T) {
	for parts := 1; parts <= 3; parts++ {
		l := newLab(t, 1)
		l.s.cfg.StrictRFC, l.pathAt(0).cc = false, newFixedWindow(1<<30)
		l.enqueueMany(3*maxSliceSteps, 4)
		for len(l.transmit()) > 0 {
		}
		l.s.HandleTimeout(l.pathAt(0).timers.t3At)
		for range parts - 1 {
			l.s.ContinueWork(l.now)
		}
		must.Equal(t, "marked", int(l.s.outstanding.numToRetransmit), parts*maxSliceSteps)
		l.now = l.pathAt(0).lastSentAt.Add(2 * time.Second)
		l.sack(1)
		check.That(t, l.s.outstanding.numToRetransmit == 0 && l.pathAt(0).flight.octets == (3*maxSliceSteps-1)*20,
			"%d are marked, %d octets in flight", l.s.outstanding.numToRetransmit, l.pathAt(0).flight.octets)
	}
}

// A packet ignores cwnd on entering Fast Recovery, and that is over when nothing is to go again any
// more: here what was lost has arrived after all, and what T3-rtx of another path has marked is in
// flight again.
func TestNothingIsUrgentWhenAllIsInFlightAgain(t *testing.T) {
	l, _ := farLab(t, 2, 2) // TSN 2 and 3 have taken the first path, 4 and 5 the second
	l.pathAt(0).timers.ptoAt, l.pathAt(1).timers.ptoAt, l.now = rawio.Never, rawio.Never, l.pathAt(0).timers.t3At
	l.pathAt(1).timers.t3At++
	l.pathAt(1).ObserveRTT(100 * time.Millisecond)
	l.s.HandleTimeout(l.now)
	must.Equal(t, "marked by T3-rtx", l.s.outstanding.numToRetransmit, 2)
	l.sackAfter(0, 1, gap{5, 5})
	must.That(t, l.s.recovery.bypassCwnd && l.s.outstanding.numToRetransmit == 3,
		"entered Fast Recovery: %v, %d are marked",
		l.s.recovery.bypassCwnd, l.s.outstanding.numToRetransmit)
	l.sackAfter(0, 2, gap{4, 5})
	check.That(t, !l.s.recovery.bypassCwnd && l.s.outstanding.numToRetransmit == 0,
		"in flight again, %d are marked, urgent: %v", l.s.outstanding.numToRetransmit, l.s.recovery.bypassCwnd)
}
