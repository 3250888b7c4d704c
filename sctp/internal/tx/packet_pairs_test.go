package tx

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/cc"
)

// A window that follows a silence leaves as fast as the ten packets before it have come apart,
// twice; all else at the pace of the window.
func TestWindowAfterSilenceLeavesAsFastAsTheRoadTakesIt(t *testing.T) {
	const perMilli = 8 // packets that the road takes, by SACKs for two
	l := newLab(t, 1)
	l.s.cfg.StrictRFC = false
	p := l.pathAt(0)
	p.cc = &windowOnly{Controller: cc.NewReno(p.pmdcs, false), window: 100 * p.pmdcs}
	p.rttEst.addSample(100 * time.Millisecond)
	// answer sends so many packets and has them acknowledged, and returns how many leave in the
	// fifth millisecond.
	answer := func(n int, gap rawio.Time) (fifth int) {
		began := l.now
		l.enqueueMany(n, full)
		for at := began; at <= began+100*ms; at = min(l.s.NextTimeout(), began+101*ms) {
			l.now = at
			l.s.HandleTimeout(l.now)
			sent := len(l.transmit())
			if at >= began+4*ms && at < began+5*ms {
				fifth += sent
			}
		}
		for l.s.Flight() > 0 {
			l.now += gap
			l.sack(min(l.s.CumTSN()+2, l.s.NextTSN()-1))
		}
		return fifth
	}
	slow := answer(60, 2*ms/perMilli)
	check.That(t, slow <= 3, "%d packets a millisecond, where nothing is known", slow)
	slow = answer(60, 2*ms/perMilli)
	check.That(t, slow <= 3, "%d packets a millisecond, by one measurement", slow)
	fast := answer(60, 2*ms/perMilli)
	check.That(t, fast >= perMilli-1 && fast <= perMilli+1, "%d packets a millisecond, the road takes %d", fast,
		perMilli)
	l.now += 10 * second
	slow = answer(60, 2*ms/perMilli)
	check.That(t, slow <= 3, "%d packets a millisecond, after a silence of more than an RTO", slow)
	answer(60, ms)
	slow = answer(60, ms)
	check.That(t, slow <= 3, "%d packets a millisecond, of a road that has become narrow", slow)
	answer(60, 0)
	slow = answer(60, 0)
	check.That(t, slow <= 3, "%d packets a millisecond, by SACKs that come together", slow)
	for range 2 {
		answer(60, 2*ms/perMilli)
	}
	l.enqueueMany(300, full)
	for range 200 {
		l.s.HandleTimeout(l.now)
		l.transmit()
		l.now = min(l.now+ms, l.s.NextTimeout())
	}
	check.That(t, p.pacing.pairs.octetsLeft <= 0 && p.pacing.pairs.burstRate() == 0, "%d octets of a window are left",
		p.pacing.pairs.octetsLeft)
}

// windowOnly is a controller with a window, and no pace of its own.
type windowOnly struct {
	cc.Controller
	window int
}

func (c *windowOnly) Window() int   { return c.window }
func (c *windowOnly) Ssthresh() int { return 0 }
