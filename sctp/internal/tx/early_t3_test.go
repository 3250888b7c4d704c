package tx

import (
	"fmt"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/cc"
)

// T3-rtx is early where the peer's wait is known, a single path is left and the letter is not kept.
// Its error comes after RTO, as ever, cwnd shrinks once, and all begins anew when something has
// arrived.
func TestT3ExpiresEarlyButCountsInTime(t *testing.T) {
	for _, tt := range []struct {
		name  string
		paths int
		with  func(*senderLab)
		want  string // when T3-rtx expires, in ms after the first transmission; with ! where that is an error
	}{
		{"known", 1, func(*senderLab) {}, "220 660 1000! 3000!"},
		{"known to wait for long", 1, func(l *senderLab) { l.pathAt(0).sackDelays.addSample(150 * time.Millisecond) }, "380 1000! 3000!"},
		{"varying round trips", 1, func(l *senderLab) { l.pathAt(0).rttEst.rttvar = 100 * time.Millisecond }, "420 1000! 3000!"},
		{"half of RTO", 1, func(l *senderLab) { l.pathAt(0).rttEst.rttvar = 120 * time.Millisecond }, "500 1000! 3000!"},
		{"more than that", 1, func(l *senderLab) { l.pathAt(0).rttEst.rttvar = 121 * time.Millisecond }, "1000! 3000!"},
		{"unknown", 1, func(l *senderLab) { l.pathAt(0).sackDelays = sackDelays{} }, "1000! 3000!"},
		{"the letter", 1, func(l *senderLab) { l.s.cfg.StrictRFC = true }, "1000! 3000!"},
		{"near", 1, func(l *senderLab) { l.pathAt(0).rttEst.minRTT = minRTTFilter{current: time.Millisecond, samples: 1} }, "220 660 1000! 3000!"},
		{"backed off", 1, func(l *senderLab) { l.pathAt(0).Backoff() }, "2000! 6000!"},
		{"another path", 2, func(*senderLab) {}, "1000! 2000!"},
	} {
		l := newLab(t, tt.paths)
		l.s.cfg.StrictRFC = false
		p, hits := l.pathAt(0), 0
		p.cc = &timeoutCounter{p.cc, &hits}
		p.ObserveRTT(20 * time.Millisecond)
		p.rttEst.rttvar = time.Millisecond
		p.sackDelays.addSample(0)
		l.s.tailProbe.unacked = true // no probe comes first
		tt.with(l)
		l.sendFull(1)
		got := ""
		for len(got) < len(tt.want)-1 && l.now < 10*second {
			before := l.s.Stats().Timeouts
			failed := l.runNextTimeout()
			if l.s.Stats().Timeouts > before {
				got += fmt.Sprint(l.now/ms, map[bool]string{true: "! ", false: " "}[failed != 0])
			}
			p.pacing.nextSendAt = 0
			l.transmit()
		}
		check.Equal(t, tt.name, got, tt.want+" ")
		check.That(t, hits == 1 || tt.name == "the letter", "%s: cwnd was reduced %d times", tt.name, hits)
		l.sack(1)
		check.That(t, p.timers.early.expiries == 0 && p.timers.t3At == rawio.Never,
			"%s: an acknowledgement leaves %+v", tt.name,
			p.timers.early)
	}
}

// timeoutCounter counts those that a controller hears of.
type timeoutCounter struct {
	cc.Controller
	n *int
}

func (c *timeoutCounter) OnTimeout(rawio.Time) { *c.n++ }
