package tx

import (
	"fmt"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// lossCounter counts what a controller hears of.
type lossCounter struct {
	cc.Controller
	n, undone, octets, full int
}

func (c *lossCounter) OnLoss(now rawio.Time) { c.n++ }
func (c *lossCounter) Undo(now rawio.Time)   { c.undone++ }

func (c *lossCounter) OnAck(now rawio.Time, a cc.Ack) {
	c.octets, c.full = c.octets+a.Octets, c.full+a.Full
}

// farLab has paths of 100 ms, over which TSN 1 has been acknowledged and 2 to 5 are on their way;
// the last n go to the second path.
func farLab(t *testing.T, paths, n int) (*senderLab, *lossCounter) {
	l, c := newLab(t, paths), &lossCounter{Controller: newFixedWindow(20 * counted)}
	l.s.cfg.StrictRFC = false
	l.pathAt(0).cc = c
	l.sendFull(1)
	l.sackAfter(100, 1)
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

// expectTimeout lets the next timer expire, which is so many milliseconds away.
func (l *senderLab) expectTimeout(what string, millis int) {
	l.t.Helper()
	began := l.now
	expired := l.runNextTimeout()
	check.That(l.t, expired == 0 && l.now == began+ms*rawio.Time(millis), "%s: a timer after %v, %b have failed",
		what, l.now.Sub(began), expired)
	l.pathAt(0).pacing.nextSendAt = 0
}

func TestTailProbeTellsWhatIsMissing(t *testing.T) {
	l, c := farLab(t, 1, 0)
	t3 := l.pathAt(0).timers.t3At
	l.expectTimeout("two round trips of silence", 200)
	l.expectTSNs("the last in flight", "5")
	d := chunks(t, l.b.Pkts[0])[0]
	check.That(t, d.I() && l.pathAt(0).timers.t3At == t3 && l.s.Stats().TailProbes == 1,
		"I bit %v, T3 at %v, was %v, %+v",
		d.I(), l.pathAt(0).timers.t3At, t3, l.s.stats)
	l.sackAfter(100, 1, gap{5, 5})
	l.expectTSNs("all that a round trip has passed for", "2 | 3 | 4")
	check.That(t, c.n == 1 && l.pathAt(0).timers.ptoAt == rawio.Never,
		"%d reductions, a probe at %v, before a round trip was measured", c.n, l.pathAt(0).timers.ptoAt)
	l, c = farLab(t, 1, 0)
	l.sackAfter(100, 1, gap{3, 3})
	l.expectTimeout("one above has arrived", 25)
	l.expectTSNs("it is lost", "2")
	l.expectTimeout("two round trips after what was sent before Fast Recovery", 75)
	l.expectTSNs("the last in flight", "5")
	l.sackAfter(100, 1, gap{3, 3}, gap{5, 5})
	l.expectTSNs("the others", "2 | 4")
	check.Equal(t, "reductions", c.n, 1)
	for _, tt := range []struct {
		name   string
		after  rawio.Time
		dups   []wire.TSN
		losses int
	}{{"repaired a loss", 100 * ms, nil, 1}, {"arrived twice", 100 * ms, []wire.TSN{5}, 0},
		{"was too early", 99 * ms, nil, 0}} {
		l, c := farLab(t, 1, 0)
		l.sackAfter(100, 4)
		l.expectTimeout("a lone packet, two round trips and a little after it was sent", 105)
		l.expectTSNs(tt.name, "5")
		l.now += tt.after
		l.pathAt(0).rttEst.minRTT = minRTTFilter{current: 100_000_000, samples: 1}
		l.handleSack(wire.Sack(wire.AppendSack(nil, wire.SackFields{CumTSN: 5, ARwnd: 1 << 20, Dups: tt.dups})))
		check.That(t, c.n == tt.losses, "a probe that %s: %d reductions", tt.name, c.n)
	}
}

// A probe goes after two round trips, or sooner where they vary little.
func TestProbeAllowsForHowRoundTripsVary(t *testing.T) {
	for _, tt := range []struct{ srtt, rttvar, want time.Duration }{{100, 50, 200}, {100, 20, 180}, {100, 1, 125},
		{10, 0, 12}, {4, 1, 10}} {
		e := rttEstimator{srtt: tt.srtt * time.Millisecond, rttvar: tt.rttvar * time.Millisecond}
		check.Equal(t, fmt.Sprint(tt), e.probeTimeout().Truncate(time.Millisecond), tt.want*time.Millisecond)
	}
}

// A packet goes whatever cwnd is while the probe is due, and no longer.
func TestAnsweredProbeIsNotUrgent(t *testing.T) {
	l, _ := farLab(t, 1, 0)
	l.sackAfter(100, 3)
	l.runNextTimeout()
	l.s.OnSendRefused(l.pathAt(0), 4)
	l.sack(3, gap{5, 5})
	l.pathAt(0).cc = newFixedWindow(0)
	l.expectTSNs("cwnd is full", "")
}

func TestMissingIsLostAfterARoundTripAndAQuarter(t *testing.T) {
	l, c := farLab(t, 1, 0)
	l.sackAfter(100, 1, gap{3, 3})
	l.expectTimeout("one above has arrived", 25)
	l.expectTSNs("it is lost", "2")
	l.enqueueMany(1, full)
	l.expectTSNs("sent later", "6")
	l.sackAfter(100, 1, gap{3, 6})
	l.expectTimeout("what was sent after it has arrived", 25)
	l.expectTSNs("lost once more", "2")
	check.Equal(t, "reductions in one recovery", c.n, 1)
	l, _ = farLab(t, 1, 0)
	l.sackAfter(100, 1, gap{3, 3})
	l.now, l.pathAt(0).pacing.nextSendAt = l.now+25*ms, 0
	l.sack(1, gap{3, 4})
	l.expectTSNs("a SACK at the very moment", "2")
	l, _ = farLab(t, 1, 0)
	again := maxRetransmitRatio*l.s.stats.Octets + freeRetransmitOctets + 1 // to a peer that lies
	l.s.stats.retransmittedOctets, l.s.stats.Octets = again, l.s.stats.Octets+again
	l.sackAfter(100, 1, gap{3, 3})
	check.Equal(t, "a timer for what is reported missing and not believed", l.s.recovery.rackAt, rawio.Never)
	l, _ = farLab(t, 2, 1)
	l.pathAt(1).ObserveRTT(100_000_000)
	l.sackAfter(100, 1, gap{4, 4})
	l.expectTimeout("one above has arrived over the same path", 25)
	l.expectTSNs("they are lost", "2 | 3")
	l.expectTimeout("the other path has been silent", 200)
	check.Equal(t, "probes", l.s.Stats().TailProbes, 1)
	l, _ = farLab(t, 2, 1)
	l.pathAt(1).ObserveRTT(150_000_000)
	must.OK(t, l.s.Enqueue(&Message{Body: [2][]byte{make([]byte, full)}, Path: 2}))
	l.expectTSNs("a second one over the other path", "6>1")
	l.expectTimeout("two round trips of silence", 200)
	l.expectTSNs("the last in flight there", "4")
	l.expectTimeout("two of the other path", 100)
	l.expectTSNs("one probe at a time", "")
	l, c = farLab(t, 1, 0)
	l.sackAfter(100, 1, gap{4, 5})
	l.sackAfter(20, 1, gap{5, 5})
	l.expectTimeout("a SACK that says nothing new", 5)
	l.expectTSNs("but not what was taken back", "2 | 3")
	l.sack(5)
	check.Equal(t, "octets that open the window, each once", c.octets, 5*counted)
	check.Equal(t, "a timer", l.s.recovery.rackAt, rawio.Never)
	l, _ = farLab(t, 2, 2)
	l.sackAfter(100, 1, gap{4, 5})
	l.expectTSNs("arrivals over another path say nothing", "")
	check.Equal(t, "a timer", l.s.recovery.rackAt, rawio.Never)
}

// What is lost is marked in parts where there is much of it: so many chunks at once, and a
// millisecond later the next.
func TestMuchThatIsLostIsMarkedInParts(t *testing.T) {
	for name, lose := range map[string]func(*senderLab){
		"missing for too long": func(l *senderLab) {
			l.sack(1, gap{6000, 6000})
			l.runNextTimeout()
		},
		"on a path that is left": func(l *senderLab) { l.s.LeavePath(l.now, l.pathAt(0)) },
	} {
		l, _ := farLab(t, 2, 0)
		l.pathAt(0).HeartbeatsOnSuspicion, l.pathAt(0).cc = true, newFixedWindow(1<<30)
		l.s.SetPeer(1<<30, 16)
		l.enqueueMany(5995, 4)
		for len(l.transmit()) > 0 {
		}
		l.now += 100 * ms
		lose(l)
		check.Equal(t, name+": marked at once", l.s.outstanding.numToRetransmit, maxRACKChunks)
		check.Equal(t, name+": goes on", min(l.s.recovery.rackAt, l.pathAt(0).timers.ptoAt), l.now.Add(minRACKTimeout))
		l.now = l.now.Add(minRACKTimeout)
		l.s.HandleTimeout(l.now)
		check.That(t, l.s.outstanding.numToRetransmit >= 5998, "%s: marked in the end: %d", name,
			l.s.outstanding.numToRetransmit)
	}
}
