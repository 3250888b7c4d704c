package tx

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// sampleLog is a controller with a fixed window that writes down what it is told of the path.
type sampleLog struct {
	fixedPacer
	entries []string
	samples []cc.Sample
	slowed  bool
}

func (h *sampleLog) OnSample(_ rawio.Time, s *cc.Sample) bool {
	h.samples = append(h.samples, *s)
	return h.slowed
}
func (h *sampleLog) OnLost(_ rawio.Time, l *cc.Lost) {
	h.entries = append(h.entries, fmt.Sprintf("lost, %d since, of %d, limited %v, adjacent %v", l.Since/counted,
		l.TxInFlight/counted, l.AppLimited, l.Adjacent))
}
func (h *sampleLog) OnRestart(now rawio.Time) {
	h.entries = append(h.entries, fmt.Sprint("restart ", now/ms))
}

// rateLab has paths with such controllers, ten packets a millisecond, and what goes leaves at once.
func rateLab(t *testing.T, paths int) (*senderLab, []*sampleLog) {
	l, all := newLab(t, 0), []*sampleLog(nil)
	l.s.cfg.StrictRFC = false
	for i := range paths {
		h := &sampleLog{fixedPacer: fixedPacer{cc.NewReno(1000, false), 1 << 30}}
		all = append(all, h)
		p := NewPath(netip.AddrPort{}, netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(1 + i)}), 0),
			labMTU, labRTO, func(int, bool) cc.Controller { return h })
		p.State = Active
		must.OK(t, l.s.AddPath(p))
	}
	l.now = second
	return l, all
}

// sendFull sends n chunks, and expire what T3-rtx has lost.
func (l *senderLab) sendFull(n int) *senderLab { l.enqueueMany(n, full); l.transmit(); return l }

func (l *senderLab) slowDown() *senderLab        { l.pathAt(0).cc.(*sampleLog).slowed = true; return l }
func (l *senderLab) setDraw(n uint32) *senderLab { l.s.cfg.Rand = func() uint32 { return n }; return l }
func (l *senderLab) loseAll() *senderLab         { l.runNextTimeout(); return l.sendFull(0) }

// sackAfter has a SACK come so many milliseconds later.
func (l *senderLab) sackAfter(trip rawio.Time, cum wire.TSN, gaps ...[2]wire.TSN) *senderLab {
	l.now += trip * ms
	l.sack(cum, gaps...)
	return l
}

// What is acknowledged becomes a sample of how fast its path delivers (draft-ietf-ccwg-bbr,
// "Delivery Rate Samples"): each story ends with the last one, in chunks, and with all that the
// controller was told.
func TestDeliveryIsSampled(t *testing.T) {
	gap := func(from, to wire.TSN) [2]wire.TSN { return [2]wire.TSN{from, to} }
	for _, tt := range []struct {
		name  string
		story func(l *senderLab)
		want  string
	}{
		{"a flight in 100 ms", func(l *senderLab) { l.sendFull(10).sackAfter(100, 10) }, "true: 10 of 10 at 100, limited false, tx 10, lost 0, trip 100ms, repairing false"},
		{"the next counts for itself", func(l *senderLab) { l.sendFull(10).sackAfter(100, 10).sendFull(5).sackAfter(50, 15) }, "true: 5 of 15 at 100, limited true, tx 5, lost 0, trip 50ms, repairing false; restart 1100"},
		{"it begins when the last was acknowledged", func(l *senderLab) { l.sendFull(10).sackAfter(100, 5).sendFull(5).sackAfter(60, 15) }, "true: 10 of 15 at 100, limited true, tx 10, lost 0, trip 60ms, repairing false"},
		{"no more than was sent", func(l *senderLab) { l.sendFull(2).sackAfter(100, 1).sackAfter(50, 1).sendFull(1).sackAfter(1, 3) }, "true: 2 of 3 at 13, limited true, tx 2, lost 0, trip 1ms, repairing false"},
		{"no more than the proved round trip allows", func(l *senderLab) {
			l.pathAt(0).BoundProvedRTT(200 * time.Millisecond)
			l.sendFull(10).sackAfter(100, 10)
		}, "true: 10 of 10 at 50, limited false, tx 10, lost 0, trip 100ms, repairing false"},
		{"too soon to be true", func(l *senderLab) { l.sendFull(1).sackAfter(100, 1).sendFull(2).sackAfter(20, 1, gap(3, 3)) }, "true: 1 of 2 at 0, limited true, tx 2, lost 0, trip 20ms, repairing false; restart 1100"},
		{"what is taken back counts once", func(l *senderLab) { l.sendFull(3).sackAfter(100, 0, gap(2, 2)).sackAfter(1, 0).sackAfter(1, 3) }, "true: 3 of 3 at 29, limited false, tx 3, lost 0, trip 102ms, repairing false"},
		{"the chunk sent last counts", func(l *senderLab) { l.sendFull(2).sackAfter(10, 0).sendFull(2).sackAfter(90, 4) }, "true: 4 of 4 at 40, limited true, tx 4, lost 0, trip 90ms, repairing false"},
		{"lost chunks are told of", func(l *senderLab) {
			l.sendFull(6).sackAfter(100, 1, gap(3, 3), gap(5, 6)).sackAfter(100, 1, gap(3, 3), gap(5, 6))
		}, "true: 4 of 4 at 40, limited false, tx 6, lost 1, trip 100ms, repairing true; lost, 1 since, of 2, " +
			"limited false, adjacent false"},
		{"and what lost means then", func(l *senderLab) {
			l.sendFull(6).sackAfter(100, 0, gap(3, 6)).sackAfter(100, 0, gap(3, 6)).sackAfter(100, 6)
		}, "true: 6 of 6 at 20, limited false, tx 2, lost 2, trip 300ms, repairing false; lost, 1 since, of 1, " +
			"limited false, adjacent true; lost, 2 since, of 2, limited false, adjacent true"},
		{"which of two was acknowledged is not known", func(l *senderLab) {
			l.sendFull(1).sackAfter(100, 1).sendFull(5).sackAfter(300, 1, gap(3, 6)).sendFull(0).sackAfter(50, 6)
		}, "false: 0 of 6 at 0, limited false, tx 0, lost 0, trip 0s, repairing false; restart 1100; lost, 1 " +
			"since, of 1, limited true, adjacent false; restart 1400"},
		{"T3-rtx loses all, and it is repaired", func(l *senderLab) { l.s.paths = l.s.paths[:1]; l.sendFull(2).loseAll().sackAfter(100, 1) }, "false: 0 of 1 at 0, limited false, tx 0, lost 0, trip 0s, repairing true; lost, 1 since, of 1, limited false, adjacent true; lost, 2 since, of 2, limited false, adjacent true; restart 2000"},
		{"nor before there is a round trip", func(l *senderLab) {
			l.sendFull(6).sackAfter(100, 0, gap(2, 6)).sackAfter(200, 0, gap(2, 6)).sendFull(0).sackAfter(5, 6)
		}, "false: 0 of 6 at 0, limited false, tx 0, lost 0, trip 0s, repairing false; lost, 1 since, of 1, " +
			"limited false, adjacent true; restart 1300"},
		{"and is over when that is", func(l *senderLab) { l.s.paths = l.s.paths[:1]; l.sendFull(2).loseAll().sackAfter(100, 2) }, "true: 2 of 2 at 2, limited false, tx 2, lost 2, trip 1.1s, repairing false; lost, 1 since, of 1, limited false, adjacent true; lost, 2 since, of 2, limited false, adjacent true; restart 2000"},
		{"what went elsewhere is not this path's", func(l *senderLab) { l.sendFull(1).loseAll().sackAfter(100, 1) }, "nothing; lost, 1 since, of 1, limited false, adjacent true"},
		{"a zero window probe loses nothing", func(l *senderLab) { l.s.setRwnd(0); l.sendFull(1).now += second; l.sendFull(0).loseAll() }, "nothing"},
		{"the program has too little", func(l *senderLab) { l.sendFull(10).sendFull(10).sackAfter(100, 20) }, "true: 20 of 20 at 200, limited true, tx 20, lost 0, trip 100ms, repairing false"},
		{"the peer has too little room", func(l *senderLab) {
			l.s.setRwnd(10 * full)
			l.sendFull(15).sackAfter(100, 10).sendFull(0).sackAfter(100, 15)
		}, "true: 5 of 15 at 50, limited false, tx 5, lost 0, trip 100ms, repairing false"},
		{"the path is slowed down on purpose", func(l *senderLab) {
			l.slowDown().s.setRwnd(10 * full)
			l.sendFull(15).sackAfter(100, 10).sendFull(0).sackAfter(100, 15)
		}, "true: 5 of 15 at 50, limited true, tx 5, lost 0, trip 100ms, repairing false; restart 1100"},
		{"what is withheld is not lost", func(l *senderLab) {
			l.setDraw(7).sendFull(20).sackAfter(100, 12, gap(14, 20)).sackAfter(100, 12, gap(14, 20))
		}, "true: 19 of 19 at 190, limited false, tx 20, lost 0, trip 100ms, repairing false"},
		{"the ring grows", func(l *senderLab) { l.sendFull(60).sackAfter(50, 30).sendFull(200).sackAfter(50, 260) }, "true: 230 of 260 at 4600, limited true, tx 230, lost 0, trip 50ms, repairing false"},
	} {
		l, h := rateLab(t, 2)
		tt.story(l)
		got := "nothing"
		if n := len(h[0].samples); n > 0 {
			s := h[0].samples[n-1]
			got = fmt.Sprintf("%v: %d of %d at %.0f, limited %v, tx %d, lost %d, trip %v, repairing %v", s.Valid,
				s.Volume/counted, s.Delivered/counted, float64(s.Rate)/counted, s.AppLimited, s.TxInFlight/counted,
				s.Lost/counted, s.RTT, s.Recovery)
		}
		for _, s := range h[0].entries {
			got += "; " + s
		}
		check.That(t, got == tt.want, "%s: %s, want %s", tt.name, got, tt.want)
	}
}
