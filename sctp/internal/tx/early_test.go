package tx

import (
	"fmt"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/cc"
)

// T3-rtx is early where the peer's wait is known, a single path is left and the letter is not kept. Its error comes after RTO, as ever, cwnd
// shrinks once, and all begins anew when something has arrived.
func TestT3ExpiresEarlyButCountsInTime(t *testing.T) {
	for _, tt := range []struct {
		name  string
		paths int
		with  func(*lab)
		want  string // when T3-rtx expires, in ms after the first transmission; with ! where that is an error
	}{
		{"known", 1, func(*lab) {}, "220 660 1000! 3000!"},
		{"known to wait for long", 1, func(l *lab) { l.path(0).waits.observe(150 * time.Millisecond) }, "380 1000! 3000!"},
		{"varying round trips", 1, func(l *lab) { l.path(0).est.rttvar = 100 * time.Millisecond }, "420 1000! 3000!"},
		{"half of RTO", 1, func(l *lab) { l.path(0).est.rttvar = 120 * time.Millisecond }, "500 1000! 3000!"},
		{"more than that", 1, func(l *lab) { l.path(0).est.rttvar = 121 * time.Millisecond }, "1000! 3000!"},
		{"unknown", 1, func(l *lab) { l.path(0).waits = waits{} }, "1000! 3000!"},
		{"the letter", 1, func(l *lab) { l.s.cfg.Letter = true }, "1000! 3000!"},
		{"near", 1, func(l *lab) { l.path(0).est.trip = shortest{of: time.Millisecond, n: 1} }, "220 660 1000! 3000!"},
		{"backed off", 1, func(l *lab) { l.path(0).Backoff() }, "2000! 6000!"},
		{"another path", 2, func(*lab) {}, "1000! 2000!"},
	} {
		l := newLab(t, tt.paths)
		l.s.cfg.Letter = false
		p, hits := l.path(0), 0
		p.cc = &timeouts{p.cc, &hits}
		p.ObserveRTT(20 * time.Millisecond)
		p.est.rttvar = time.Millisecond
		p.waits.observe(0)
		l.s.tail.out = true // no probe comes first
		tt.with(l)
		l.flight(1)
		got := ""
		for len(got) < len(tt.want)-1 && l.now < 10*second {
			before := l.s.Stats().Timeouts
			failed := l.timeout()
			if l.s.Stats().Timeouts > before {
				got += fmt.Sprint(l.now/ms, map[bool]string{true: "! ", false: " "}[failed != 0])
			}
			p.due = 0
			l.transmit()
		}
		check.Equal(t, tt.name, got, tt.want+" ")
		check.That(t, hits == 1 || tt.name == "the letter", "%s: cwnd was reduced %d times", tt.name, hits)
		l.sack(1)
		check.That(t, p.early.n == 0 && p.t3 == rawio.Never, "%s: an acknowledgement leaves %+v", tt.name, p.early)
	}
}

// timeouts counts those that a controller hears of.
type timeouts struct {
	cc.Controller
	n *int
}

func (c *timeouts) OnTimeout(rawio.Time) { *c.n++ }
