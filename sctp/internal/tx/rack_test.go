package tx

import (
	"fmt"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// losses counts what a controller hears of.
type losses struct {
	cc.Controller
	n, undone, octets, full int
}

func (c *losses) OnLoss(now rawio.Time) { c.n++ }
func (c *losses) Undo(now rawio.Time)   { c.undone++ }

func (c *losses) OnAck(now rawio.Time, a cc.Ack) { c.octets, c.full = c.octets+a.Octets, c.full+a.Full }

// farLab has paths of 100 ms, over which TSN 1 has been acknowledged and 2 to 5 are on their way; the last n go to the second path.
func farLab(t *testing.T, paths, n int) (*lab, *losses) {
	l, c := newLab(t, paths), &losses{Controller: fixed(20 * counted)}
	l.s.cfg.Letter = false
	l.path(0).cc = c
	l.flight(1)
	l.after(100, 1)
	for i := range 4 {
		m := Message{Body: [2][]byte{make([]byte, full)}}
		if i >= 4-n {
			m.Path = 2
		}
		l.token++
		must.OK(t, l.s.Enqueue(&m))
	}
	l.transmit()
	return l, c
}

// wait lets the next timer expire, which is so many milliseconds away.
func (l *lab) wait(what string, millis int) {
	l.t.Helper()
	began := l.now
	expired := l.timeout()
	check.That(l.t, expired == 0 && l.now == began+ms*rawio.Time(millis), "%s: a timer after %v, %b have failed", what, l.now.Sub(began), expired)
	l.path(0).due = 0
}

func TestTailProbeTellsWhatIsMissing(t *testing.T) {
	l, c := farLab(t, 1, 0)
	t3 := l.path(0).t3
	l.wait("two round trips of silence", 200)
	l.expect("the last in flight", "5")
	d := chunks(t, l.b.Pkts[0])[0]
	check.That(t, d.I() && l.path(0).t3 == t3 && l.s.Stats().TailProbes == 1, "I bit %v, T3 at %v, was %v, %+v", d.I(), l.path(0).t3, t3, l.s.stats)
	l.after(100, 1, gap{5, 5})
	l.expect("all that a round trip has passed for", "2 | 3 | 4")
	check.That(t, c.n == 1 && l.path(0).pto == rawio.Never, "%d reductions, a probe at %v, before a round trip was measured", c.n, l.path(0).pto)
	l, c = farLab(t, 1, 0)
	l.after(100, 1, gap{3, 3})
	l.wait("one above has arrived", 25)
	l.expect("it is lost", "2")
	l.wait("two round trips after what was sent before Fast Recovery", 75)
	l.expect("the last in flight", "5")
	l.after(100, 1, gap{3, 3}, gap{5, 5})
	l.expect("the others", "2 | 4")
	check.Equal(t, "reductions", c.n, 1)
	for _, tt := range []struct {
		name   string
		after  rawio.Time
		dups   []wire.TSN
		losses int
	}{{"repaired a loss", 100 * ms, nil, 1}, {"arrived twice", 100 * ms, []wire.TSN{5}, 0}, {"was too early", 99 * ms, nil, 0}} {
		l, c := farLab(t, 1, 0)
		l.after(100, 4)
		l.wait("a lone packet, two round trips and a little after it was sent", 105)
		l.expect(tt.name, "5")
		l.now += tt.after
		l.path(0).est.trip = shortest{of: 100_000_000, n: 1}
		l.sackFor(wire.Sack(wire.AppendSack(nil, wire.SackFields{CumTSN: 5, ARwnd: 1 << 20, Dups: tt.dups})))
		check.That(t, c.n == tt.losses, "a probe that %s: %d reductions", tt.name, c.n)
	}
}

// A probe goes after two round trips, or sooner where they vary little.
func TestProbeAllowsForHowRoundTripsVary(t *testing.T) {
	for _, tt := range []struct{ srtt, rttvar, want time.Duration }{{100, 50, 200}, {100, 20, 180}, {100, 1, 125}, {10, 0, 12}, {4, 1, 10}} {
		e := estimator{srtt: tt.srtt * time.Millisecond, rttvar: tt.rttvar * time.Millisecond}
		check.Equal(t, fmt.Sprint(tt), e.overdue().Truncate(time.Millisecond), tt.want*time.Millisecond)
	}
}

// A packet goes whatever cwnd is while the probe is due, and no longer.
func TestAnsweredProbeIsNotUrgent(t *testing.T) {
	l, _ := farLab(t, 1, 0)
	l.after(100, 3)
	l.timeout()
	l.s.Refused(l.path(0), 4)
	l.sack(3, gap{5, 5})
	l.path(0).cc = fixed(0)
	l.expect("cwnd is full", "")
}

func TestMissingIsLostAfterARoundTripAndAQuarter(t *testing.T) {
	l, c := farLab(t, 1, 0)
	l.after(100, 1, gap{3, 3})
	l.wait("one above has arrived", 25)
	l.expect("it is lost", "2")
	l.queue(1, full)
	l.expect("sent later", "6")
	l.after(100, 1, gap{3, 6})
	l.wait("what was sent after it has arrived", 25)
	l.expect("lost once more", "2")
	check.Equal(t, "reductions in one recovery", c.n, 1)
	l, _ = farLab(t, 1, 0)
	l.after(100, 1, gap{3, 3})
	l.now, l.path(0).due = l.now+25*ms, 0
	l.sack(1, gap{3, 4})
	l.expect("a SACK at the very moment", "2")
	l, _ = farLab(t, 1, 0)
	again := moreAgain*l.s.stats.Octets + againFree + 1 // to a peer that lies
	l.s.resentOctets, l.s.stats.Octets = again, l.s.stats.Octets+again
	l.after(100, 1, gap{3, 3})
	check.Equal(t, "a timer for what is reported missing and not believed", l.s.rackAt, rawio.Never)
	l, _ = farLab(t, 2, 1)
	l.path(1).ObserveRTT(100_000_000)
	l.after(100, 1, gap{4, 4})
	l.wait("one above has arrived over the same path", 25)
	l.expect("they are lost", "2 | 3")
	l.wait("the other path has been silent", 200)
	check.Equal(t, "probes", l.s.Stats().TailProbes, 1)
	l, _ = farLab(t, 2, 1)
	l.path(1).ObserveRTT(150_000_000)
	must.OK(t, l.s.Enqueue(&Message{Body: [2][]byte{make([]byte, full)}, Path: 2}))
	l.expect("a second one over the other path", "6>1")
	l.wait("two round trips of silence", 200)
	l.expect("the last in flight there", "4")
	l.wait("two of the other path", 100)
	l.expect("one probe at a time", "")
	l, c = farLab(t, 1, 0)
	l.after(100, 1, gap{4, 5})
	l.after(20, 1, gap{5, 5})
	l.wait("a SACK that says nothing new", 5)
	l.expect("but not what was taken back", "2 | 3")
	l.sack(5)
	check.Equal(t, "octets that open the window, each once", c.octets, 5*counted)
	check.Equal(t, "a timer", l.s.rackAt, rawio.Never)
	l, _ = farLab(t, 2, 2)
	l.after(100, 1, gap{4, 5})
	l.expect("arrivals over another path say nothing", "")
	check.Equal(t, "a timer", l.s.rackAt, rawio.Never)
}

// What is lost is marked in parts where there is much of it: so many chunks at once, and a millisecond later the next.
func TestMuchThatIsLostIsMarkedInParts(t *testing.T) {
	for name, lose := range map[string]func(*lab){
		"missing for too long": func(l *lab) {
			l.sack(1, gap{6000, 6000})
			l.timeout()
		},
		"on a path that is left": func(l *lab) { l.s.Cut(l.now, l.path(0)) },
	} {
		l, _ := farLab(t, 2, 0)
		l.path(0).Asks, l.path(0).cc = true, fixed(1<<30)
		l.s.SetPeer(1<<30, 16)
		l.queue(5995, 4)
		for len(l.transmit()) > 0 {
		}
		l.now += 100 * ms
		lose(l)
		check.Equal(t, name+": marked at once", l.s.ledger.nmarked, rackMost)
		check.Equal(t, name+": goes on", min(l.s.rackAt, l.path(0).pto), l.now.Add(rackTick))
		l.now = l.now.Add(rackTick)
		l.s.HandleTimeout(l.now)
		check.That(t, l.s.ledger.nmarked >= 5998, "%s: marked in the end: %d", name, l.s.ledger.nmarked)
	}
}
