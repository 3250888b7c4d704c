package tx

import (
	"errors"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/sctp/wire"
)

// sackWithDups acknowledges all up to cum, and says that the peer has had some twice.
func (l *senderLab) sackWithDups(cum wire.TSN, dups ...wire.TSN) {
	l.handleSack(wire.Sack(wire.AppendSack(nil, wire.SackFields{CumTSN: cum, ARwnd: 1 << 20, Dups: dups})))
}

// A reduction for what was only late is taken back, once, when the peer has had all twice that was
// sent again, and the path has more patience.
func TestReductionForWhatWasOnlyLateIsTakenBack(t *testing.T) {
	for _, tt := range []struct {
		name   string
		missed gap // what has arrived, when the others below are lost
		resent string
		dups   [][]wire.TSN // in SACKs that follow
		undone int
		more   int
	}{
		{"one, which came twice", gap{3, 3}, "2", [][]wire.TSN{{2}}, 1, 1},
		{"said again", gap{3, 3}, "2", [][]wire.TSN{{2}, {2}, {2, 2}}, 1, 1},
		{"invented", gap{3, 3}, "2", [][]wire.TSN{{3}, {4, 5}, {130}}, 0, 0},
		{"not all", gap{5, 5}, "2 | 3 | 4", [][]wire.TSN{{2}, {4}}, 0, 1},
		{"all, one by one", gap{5, 5}, "2 | 3 | 4", [][]wire.TSN{{2}, {4}, {3}}, 1, 1},
	} {
		l, c := farLab(t, 1, 0)
		l.sackAfter(100, 1, tt.missed)
		l.expectTimeout(tt.name, 25)
		l.expectTSNs(tt.name, tt.resent)
		l.now += 25 * ms
		for _, dups := range tt.dups {
			l.sackWithDups(5, dups...)
		}
		check.Equal(t, tt.name+": reductions", c.n, 1)
		check.Equal(t, tt.name+": taken back", c.undone, tt.undone)
		check.Equal(t, tt.name+": quarters of patience", int(l.pathAt(0).reordering.extraQuarters), tt.more)
	}
	l, c := farLab(t, 1, 0) // more may be lost until the recovery is over
	l.sackAfter(100, 1, gap{3, 3})
	l.expectTimeout("one is lost", 25)
	l.transmit()
	l.handleSack(wire.Sack(wire.AppendSack(nil,
		wire.SackFields{CumTSN: 1, ARwnd: 1 << 20, Gaps: []wire.GapBlock{{Start: 2, End: 2}}, Dups: []wire.TSN{2}})))
	check.Equal(t, "taken back during the recovery", c.undone, 0)
	l.sack(5)
	check.Equal(t, "taken back behind it", c.undone, 1)
	l, c = farLab(t, 1, 0) // by the letter there is no such thing
	l.s.cfg.StrictRFC = true
	for i := range wire.TSN(3) {
		l.sack(1, gap{3, 3 + i})
	}
	l.transmit()
	l.sackWithDups(5, 2)
	check.Equal(t, "reductions by the letter", c.n, 1)
	check.Equal(t, "taken back", c.undone, 0)
}

// Patience grows by a quarter in a round trip, to a round trip at most, and for sixteen recoveries.
func TestPatienceGrowsAndGoes(t *testing.T) {
	l, c := farLab(t, 1, 0)
	p, next := l.pathAt(0), wire.TSN(2)
	round := func(what string, spurious bool, want int) {
		t.Helper()
		began := p.rackTimeout()
		if next > 2 {
			for range 4 {
				l.enqueueMany(1, full)
			}
			p.pacing.nextSendAt = 0
			l.transmit()
		}
		l.sackAfter(100, next-1, gap{next + 1, next + 1})
		l.expectTimeout(what, int(began.Milliseconds())-100)
		l.transmit()
		l.now += 10 * ms
		if l.sack(next + 3); spurious {
			l.sackWithDups(next+3, next)
		}
		next += 4
		check.Equal(t, what+": patience, ms", int(p.rackTimeout().Milliseconds()), want)
	}
	p.rttEst.srtt = 100_000_000
	p.rttEst.minRTT = minRTTFilter{current: 100_000_000, samples: 1}
	for i, want := range []int{150, 175, 200, 200} {
		round("late again", true, want)
		check.Equal(t, "taken back", c.undone, min(i+1, maxUndoQuarters))
	}
	for range 15 {
		round("really lost", false, 200)
	}
	round("the sixteenth", false, 125)
}

// Over a path that reorders only time says what is lost: not how many have arrived that were sent
// later.
func TestPathThatReordersCountsNoMisses(t *testing.T) {
	for _, late := range []bool{true, false} {
		l, c := farLab(t, 1, 0)
		l.sackAfter(100, 1, gap{3, 3})
		l.now += 5 * ms
		if late {
			l.sack(3) // the one before it, which was sent once
		} else {
			l.sack(1, gap{3, 3})
		}
		l.now += ms
		l.pathAt(0).pacing.nextSendAt = 0
		for range 4 {
			l.enqueueMany(1, full)
		}
		l.transmit()
		l.now += 100 * ms
		if late {
			l.sack(5, gap{7, 9})
			l.expectTSNs("three have arrived that were sent later", "")
			check.Equal(t, "reductions", c.n, 0)
			l.runNextTimeout() // of RACK, after a round trip and a quarter
			l.expectTSNs("it is lost", "6")
		} else {
			l.sack(1, gap{3, 9})
			l.expectTSNs("more than three have arrived that were sent later", "2")
		}
	}
}

// What is withheld goes a round trip later, for the first time: when it is missed, or nobody says
// anything; and at once where nothing is behind it. It is no loss, another chunk measures the round
// trip meanwhile, and who acknowledges it lies.
func TestWhatIsWithheldIsNoLoss(t *testing.T) {
	for _, tt := range []struct {
		name string
		more int // behind the four in flight
		sent string
		wait int // ms
		k    wire.Sack
		then string
		lie  bool
	}{
		{"missed", 3, "6 | 8", 25, makeSack(6, 1<<20, wire.GapBlock{Start: 2, End: 2}), "7", false},
		{"nothing is said of it", 3, "6 | 8", 100, makeSack(1, 1<<20), "7", false},
		{"nothing is behind it", 2, "6 | 7", 0, makeSack(7, 1<<20), "", false},
		{"acknowledged", 3, "6 | 8", 0, makeSack(7, 1<<20), "", true},
		{"named", 3, "6 | 8", 0, makeSack(1, 1<<20, wire.GapBlock{Start: 3, End: 7}), "", true},
	} {
		l, c := farLab(t, 1, 0)
		p := l.pathAt(0)
		l.s.cfg.Rand = func() uint32 { p.timing.active = false; return 0 }
		l.enqueueMany(tt.more, full)
		l.expectTSNs(tt.name, tt.sent)
		l.now += 100 * ms
		var lie *UnsentTSNError
		_, err := l.s.HandleSack(l.now, tt.k)
		check.Equal(t, tt.name+": a lie", errors.As(err, &lie), tt.lie)
		if tt.wait > 0 {
			l.expectTimeout(tt.name, tt.wait)
		}
		l.expectTSNs(tt.name, tt.then)
		st := l.s.Stats()
		check.That(t, c.n == 0 && st.Retransmits == 0 && (st.Chunks == uint64(l.s.NextTSN()-1) || tt.lie) &&
			(p.timing.active && p.timing.tsn == 8 || tt.wait < 100), "%s: %d reductions, %+v, measures %d", tt.name,
			c.n, st,
			p.timing.tsn)
	}
}
