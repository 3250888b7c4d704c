package tx

import (
	"fmt"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// silentLab has sent a probe over the second path, whose round trip is 50 ms, because the first has been silent.
func silentLab(t *testing.T) (*lab, *losses) {
	l, c := farLab(t, 2, 0)
	l.path(0).Asks = true
	l.path(1).ObserveRTT(50 * time.Millisecond)
	flight, t3, n := l.path(0).flight, l.path(0).t3, l.s.stats
	l.wait("two round trips of silence", 200)
	l.expect("the earliest, over the other path", "2>1")
	d, s := chunks(t, l.b.Pkts[0])[0], l.s.stats
	check.That(t, s.Chunks == n.Chunks+1 && s.Retransmits == n.Retransmits+1 && s.Octets == n.Octets+full, "%+v, before that %+v", s, n)
	check.That(t, l.path(0).flight == flight && l.path(1).flight == 0 && l.path(0).t3 == t3 && l.path(1).t3 == rawio.Never && d.I(), "in flight %d and %d, timers %v and %v, I bit %v", l.path(0).flight, l.path(1).flight, l.path(0).t3, l.path(1).t3, d.I())
	l.now += 50 * ms
	return l, c
}

func TestSilentPathIsLeft(t *testing.T) {
	l, c := silentLab(t)
	res := l.sack(2)
	l.queue(1, full)
	l.expect("what is overdue, and what is new, goes elsewhere", "3>1 | 4>1 | 5>1 | 6>1")
	p := l.path(0)
	check.That(t, res.Suspected.Has(0) && p.Suspected() && p.Errors == 0 && c.n == 1 && p.State == Active && l.s.Stats().PathsSuspected == 1 && !l.s.recovery, "suspected %b, %+v, %d reductions", res.Suspected, p.doubt, c.n)
	p.Answered(l.now)
	check.That(t, p.disorder.over, "what is lost now is taken for the loss of before")
	l.queue(1, full)
	l.expect("it has answered", "7")
	l.sackFor(wire.Sack(wire.AppendSack(nil, wire.SackFields{CumTSN: 7, ARwnd: 1 << 20, Dups: []wire.TSN{2, 3, 4, 5}})))
	check.Equal(t, "reductions that are taken back when all has come twice", c.undone, 1)
	// The next times it is held, longer and longer.
	for _, hold := range []time.Duration{time.Second, 2 * time.Second} {
		l.now += rawio.Time(leaveRest)
		l.s.tail = tail{over: p, via: l.path(1), repairs: true, first: stamp(l.now), tsn: 7}
		l.s.repaired(l.now, &res)
		p.Answered(l.now)
		check.That(t, p.Suspected() && !p.Asked() && p.HeldUntil() == l.now.Add(hold) && l.s.DataPath() == l.path(1), "held for %v: %+v", hold, p.doubt)
		l.now += rawio.Time(hold)
		p.Answered(l.now)
		check.That(t, !p.Suspected() && l.s.DataPath() == p, "not held longer: %+v", p.doubt)
	}
}

// A chunk that was withheld leaves as the copy: it has not gone before, may be acknowledged, and was no loss.
func TestWhatWasWithheldLeavesAsTheProbe(t *testing.T) {
	l, c := farLab(t, 2, 0)
	l.path(0).Asks, l.s.cfg.Draw = true, func() uint32 { return 0 }
	l.path(1).ObserveRTT(50 * time.Millisecond)
	l.queue(3, full)
	l.expect("7 is withheld", "6 | 8")
	for range 50 {
		l.path(0).ObserveRTT(20 * time.Millisecond)
	}
	l.after(20, 6)
	l.timeout()
	l.expect("the earliest, over the other path", "7>1")
	st := l.s.Stats()
	check.That(t, st.Chunks == 8 && st.Octets == 8*full && st.Retransmits == 0 && l.s.ledger.rec(7).state == sent, "%v, %+v", l.s.ledger.rec(7).state, st)
	l.now += 50 * ms
	check.That(t, l.sack(8).Suspected == 0 && c.n == 0, "%d reductions, %+v", c.n, l.path(0).doubt)
}

// Where no other path is any better, the probe goes where it would go without one.
func TestSilenceIsAskedAboutWhereItMayBeHeard(t *testing.T) {
	for i, spoil := range []func(l *lab){func(l *lab) { l.path(1).State = Inactive }, func(l *lab) { l.path(1).doubt.trust = suspected }} {
		l, _ := farLab(t, 2, 0)
		l.path(0).Asks = true
		spoil(l)
		l.timeout()
		l.expect(fmt.Sprint("the latest, over the path itself: ", i), "5")
	}
}

// A path whose round trips vary is silent later, and what has arrived before the probe's chunk was sent says nothing.
func TestLonePacketOfAPathThatVaries(t *testing.T) {
	l, _ := farLab(t, 2, 0)
	l.path(0).Asks = true
	l.path(1).ObserveRTT(50 * time.Millisecond)
	l.after(100, 4)
	l.wait("the round trip, four times 37.5 ms, and what its SACK waits at least", 100+150+5)
	l.expect("over the other path", "5>1")
	l.now += 50 * ms
	check.That(t, l.sack(5).Suspected.Has(0), "the path is not left: %+v", l.path(0).doubt)
}

func TestPathThatIsNotSilentIsNotLeft(t *testing.T) {
	for _, row := range []struct {
		name   string
		sack   func(l *lab)
		losses int
	}{
		{"what was sent later has arrived", func(l *lab) { l.sack(2, gap{4, 5}) }, 1},
		{"all has arrived, the probe too", func(l *lab) {
			l.sackFor(wire.Sack(wire.AppendSack(nil, wire.SackFields{CumTSN: 5, ARwnd: 1 << 20, Dups: []wire.TSN{2}})))
		}, 0},
		{"the answer is sooner than one can be", func(l *lab) { l.now -= ms; l.sack(2) }, 0},
		{"all that was in flight beside the probe's chunk has arrived, which was sent again later", func(l *lab) { l.s.tail.first = stamp(l.now); l.sack(5) }, 1},
		{"all but the last has arrived", func(l *lab) { l.now += 200 * ms; l.sack(4) }, 1},
		{"another was left just now", func(l *lab) { l.s.leftAt = l.now.Add(-leaveRest + 1); l.sack(2) }, 1},
		{"it has failed meanwhile", func(l *lab) { l.path(0).State = PotentiallyFailed; l.sack(2) }, 1},
	} {
		l, c := silentLab(t)
		row.sack(l)
		check.That(t, !l.path(0).Suspected() && c.n == row.losses, "%s: %+v, %d reductions", row.name, l.path(0).doubt, c.n)
	}
}

// How long a path that is suspected again is held follows from how soon that is after its return, and how often.
func TestPathThatFlapsIsHeldLonger(t *testing.T) {
	l, _ := farLab(t, 2, 0)
	p := l.path(0)
	for i, row := range []struct{ back, held time.Duration }{{-1, 0}, {0, leastHold}, {flapMemory, 2 * leastHold}, {flapMemory + 1, 0}, {1, leastHold}} {
		if p.doubt.back = 0; row.back >= 0 {
			p.doubt.back = l.now.Add(-row.back)
		}
		l.s.leave(l.now, p)
		check.Equal(t, fmt.Sprintf("time %d: held for", i), p.doubt.until.Sub(l.now), row.held)
		p.doubt.trust = trusted
		l.now += 20 * second
	}
}
