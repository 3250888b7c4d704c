package tx

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// The probe for a lone packet comes after two round trips and the longest wait of the peer's of
// late. A SACK that was asked for does not tell how long that is; that the peer has had the packet
// twice does.
func TestProbeOfALonePacketAllowsForThePeersWait(t *testing.T) {
	l, _ := farLab(t, 1, 0)
	p := l.pathAt(0)
	l.sackAfter(100, 5)
	p.sackDelays = sackDelays{}
	alone := func(what string, now bool, probe, takes rawio.Time) {
		t.Helper()
		must.OK(t, l.s.Enqueue(&Message{Body: [2][]byte{make([]byte, full)}, SackNow: now}))
		p.pacing.nextSendAt, p.noRTTSinceProbe, p.rttEst.srtt, p.rttEst.rttvar = 0, false, 100*time.Millisecond,
			25*time.Millisecond
		l.transmit()
		check.Equal(t, what+": the probe comes after", p.timers.ptoAt-l.now, probe*ms)
		if takes > 0 {
			l.now += takes * ms
			l.sack(l.s.NextTSN() - 1)
		}
	}
	alone("nothing is known", false, 400, 130)
	for range 2 * sackDelayWindow {
		alone("it has waited for 30 ms", false, 230, 100)
	}
	alone("that was long ago", false, 205, 100)
	alone("it is asked", true, 205, 190)
	for _, probe := range []rawio.Time{205, 400} { // the second is as long as it gets
		alone("it answers when it is asked", false, probe, 0)
		l.expectTimeout("silence", int(probe))
		l.transmit()
		l.now += 100 * ms
		dup := l.s.NextTSN() - 1
		l.handleSack(
			wire.Sack(wire.AppendSack(nil, wire.SackFields{CumTSN: dup, ARwnd: 1 << 20, Dups: []wire.TSN{dup, dup}})))
	}
	check.Equal(t, "waits that were learnt from two probes", p.sackDelays.samples, 4)
}

// That the peer has had the packet twice tells that it has waited for twice as long as was thought,
// and never for more than section 6.2 of RFC 9260 recommends.
func TestLateSackTellsOfTwiceTheWait(t *testing.T) {
	for probe, want := range map[time.Duration]time.Duration{30 * time.Millisecond: 60 * time.Millisecond,
		99 * time.Millisecond: 198 * time.Millisecond, 100 * time.Millisecond: 200 * time.Millisecond,
		101 * time.Millisecond: 200 * time.Millisecond, time.Second: 200 * time.Millisecond} {
		p := new(Path)
		b := tailProbe{probeDelay: probe, singlePacketPath: p}
		b.learnLateSack()
		check.That(t, p.sackDelays.longestDelay() == want && p.sackDelays.samples == 1 && b.singlePacketPath == nil,
			"a probe after %v: %v, of %d", probe, p.sackDelays.longestDelay(), p.sackDelays.samples)
		b.learnLateSack() // once
		check.Equal(t, "waits", p.sackDelays.samples, 1)
	}
}
