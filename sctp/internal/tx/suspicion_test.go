package tx

import (
	"fmt"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// silentLab has sent a probe over the second path, whose round trip is 50 ms, because the first has
// been silent.
func silentLab(t *testing.T) (*senderLab, *lossCounter) {
	l, c := farLab(t, 2, 0)
	l.pathAt(0).HeartbeatsOnSuspicion = true
	l.pathAt(1).ObserveRTT(50 * time.Millisecond)
	flight, t3, n := l.pathAt(0).flight.octets, l.pathAt(0).timers.t3At, l.s.stats
	l.expectTimeout("two round trips of silence", 200)
	l.expectTSNs("the earliest, over the other path", "2>1")
	d, s := chunks(t, l.b.Pkts[0])[0], l.s.stats
	check.That(t, s.Chunks == n.Chunks+1 && s.Retransmits == n.Retransmits+1 && s.Octets == n.Octets+full, "%+v, before that %+v", s, n)
	check.That(t, l.pathAt(0).flight.octets == flight && l.pathAt(1).flight.octets == 0 && l.pathAt(0).timers.t3At == t3 && l.pathAt(1).timers.t3At == rawio.Never && d.I(), "in flight %d and %d, timers %v and %v, I bit %v", l.pathAt(0).flight.octets, l.pathAt(1).flight.octets, l.pathAt(0).timers.t3At, l.pathAt(1).timers.t3At, d.I())
	l.now += 50 * ms
	return l, c
}

func TestSilentPathIsLeft(t *testing.T) {
	l, c := silentLab(t)
	res := l.sack(2)
	l.enqueueMany(1, full)
	l.expectTSNs("what is overdue, and what is new, goes elsewhere", "3>1 | 4>1 | 5>1 | 6>1")
	p := l.pathAt(0)
	check.That(t, res.Suspected.Has(0) && p.Suspected() && p.Errors == 0 && c.n == 1 && p.State == Active && l.s.Stats().PathsSuspected == 1 && !l.s.recovery.active, "suspected %b, %+v, %d reductions", res.Suspected, p.suspicion, c.n)
	p.ConfirmReachable(l.now)
	check.That(t, p.reordering.recoveryOver, "what is lost now is taken for the loss of before")
	l.enqueueMany(1, full)
	l.expectTSNs("it has answered", "7")
	l.handleSack(wire.Sack(wire.AppendSack(nil, wire.SackFields{CumTSN: 7, ARwnd: 1 << 20, Dups: []wire.TSN{2, 3, 4, 5}})))
	check.Equal(t, "reductions that are taken back when all has come twice", c.undone, 1)
	// The next times it is held, longer and longer.
	for _, hold := range []time.Duration{time.Second, 2 * time.Second} {
		l.now += rawio.Time(suspectInterval)
		l.s.tailProbe = tailProbe{answeredPath: p, copyPath: l.pathAt(1), repairedLoss: true, firstStamp: stampOf(l.now), tsn: 7}
		l.s.onProbeRepair(l.now, &res)
		p.ConfirmReachable(l.now)
		check.That(t, p.Suspected() && !p.NeedsHeartbeat() && p.HeldUntil() == l.now.Add(hold) && l.s.DataPath() == l.pathAt(1), "held for %v: %+v", hold, p.suspicion)
		l.now += rawio.Time(hold)
		p.ConfirmReachable(l.now)
		check.That(t, !p.Suspected() && l.s.DataPath() == p, "not held longer: %+v", p.suspicion)
	}
}

// A chunk that was withheld leaves as the copy: it has not gone before, may be acknowledged, and
// was no loss.
func TestWhatWasWithheldLeavesAsTheProbe(t *testing.T) {
	l, c := farLab(t, 2, 0)
	l.pathAt(0).HeartbeatsOnSuspicion, l.s.cfg.Rand = true, func() uint32 { return 0 }
	l.pathAt(1).ObserveRTT(50 * time.Millisecond)
	l.enqueueMany(3, full)
	l.expectTSNs("7 is withheld", "6 | 8")
	for range 50 {
		l.pathAt(0).ObserveRTT(20 * time.Millisecond)
	}
	l.sackAfter(20, 6)
	l.runNextTimeout()
	l.expectTSNs("the earliest, over the other path", "7>1")
	st := l.s.Stats()
	check.That(t, st.Chunks == 8 && st.Octets == 8*full && st.Retransmits == 0 && l.s.outstanding.recordOf(7).state == stateInFlight, "%v, %+v", l.s.outstanding.recordOf(7).state, st)
	l.now += 50 * ms
	check.That(t, l.sack(8).Suspected == 0 && c.n == 0, "%d reductions, %+v", c.n, l.pathAt(0).suspicion)
}

// Where no other path is any better, the probe goes where it would go without one.
func TestSilenceIsAskedAboutWhereItMayBeHeard(t *testing.T) {
	for i, spoil := range []func(l *senderLab){func(l *senderLab) { l.pathAt(1).State = Inactive }, func(l *senderLab) { l.pathAt(1).suspicion.level = pathSuspected }} {
		l, _ := farLab(t, 2, 0)
		l.pathAt(0).HeartbeatsOnSuspicion = true
		spoil(l)
		l.runNextTimeout()
		l.expectTSNs(fmt.Sprint("the latest, over the path itself: ", i), "5")
	}
}

// A path whose round trips vary is silent later, and what has arrived before the probe's chunk was
// sent says nothing.
func TestLonePacketOfAPathThatVaries(t *testing.T) {
	l, _ := farLab(t, 2, 0)
	l.pathAt(0).HeartbeatsOnSuspicion = true
	l.pathAt(1).ObserveRTT(50 * time.Millisecond)
	l.sackAfter(100, 4)
	l.expectTimeout("the round trip, four times 37.5 ms, and what its SACK waits at least", 100+150+5)
	l.expectTSNs("over the other path", "5>1")
	l.now += 50 * ms
	check.That(t, l.sack(5).Suspected.Has(0), "the path is not left: %+v", l.pathAt(0).suspicion)
}

func TestPathThatIsNotSilentIsNotLeft(t *testing.T) {
	for _, row := range []struct {
		name   string
		sack   func(l *senderLab)
		losses int
	}{
		{"what was sent later has arrived", func(l *senderLab) { l.sack(2, gap{4, 5}) }, 1},
		{"all has arrived, the probe too", func(l *senderLab) {
			l.handleSack(wire.Sack(wire.AppendSack(nil, wire.SackFields{CumTSN: 5, ARwnd: 1 << 20, Dups: []wire.TSN{2}})))
		}, 0},
		{"the answer is sooner than one can be", func(l *senderLab) { l.now -= ms; l.sack(2) }, 0},
		{"all that was in flight beside the probe's chunk has arrived, which was sent again later", func(l *senderLab) { l.s.tailProbe.firstStamp = stampOf(l.now); l.sack(5) }, 1},
		{"all but the last has arrived", func(l *senderLab) { l.now += 200 * ms; l.sack(4) }, 1},
		{"another was left just now", func(l *senderLab) { l.s.recovery.pathSuspectedAt = l.now.Add(-suspectInterval + 1); l.sack(2) }, 1},
		{"it has failed meanwhile", func(l *senderLab) { l.pathAt(0).State = PotentiallyFailed; l.sack(2) }, 1},
	} {
		l, c := silentLab(t)
		row.sack(l)
		check.That(t, !l.pathAt(0).Suspected() && c.n == row.losses, "%s: %+v, %d reductions", row.name, l.pathAt(0).suspicion, c.n)
	}
}

// How long a path that is suspected again is held follows from how soon that is after its return,
// and how often.
func TestPathThatFlapsIsHeldLonger(t *testing.T) {
	l, _ := farLab(t, 2, 0)
	p := l.pathAt(0)
	for i, row := range []struct{ back, held time.Duration }{{-1, 0}, {0, minHold}, {flapWindow, 2 * minHold}, {flapWindow + 1, 0}, {1, minHold}} {
		if p.suspicion.resumedAt = 0; row.back >= 0 {
			p.suspicion.resumedAt = l.now.Add(-row.back)
		}
		l.s.suspectPath(l.now, p)
		check.Equal(t, fmt.Sprintf("time %d: held for", i), p.suspicion.holdEndAt.Sub(l.now), row.held)
		p.suspicion.level = pathTrusted
		l.now += 20 * second
	}
}
