package tx

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestTSNsWrap(t *testing.T) {
	l := newLab(t, 1)
	path := l.pathAt(0)
	l.s = NewSender(Config{TSN: 1<<32 - 2, SendBuffer: 1 << 20})
	must.OK(t, l.s.AddPath(path))
	l.s.SetPeer(1<<20, 16)
	l.s.SetUpper(nil, l)
	check.Equal(t, "Cumulative TSN Ack Point before anything is acknowledged", l.s.CumTSN(), 1<<32-3) // req 9260-5.1-12
	l.enqueueMany(5, full)
	l.expectTSNs("0 follows the largest", "4294967294 | 4294967295 | 0 | 1 | 2") // req 9260-1.6-3
	l.sack(1<<32-2, gap{0, 1})                                                   // req 9260-1.6-1: a gap and its misses across the wrap
	n := l.s.outstanding.recordOf(1<<32 - 1).missCount
	check.That(t, n == 1 && l.s.outstanding.numGapAcked == 2, "%d misses, %d gap-acknowledged", n, l.s.outstanding.numGapAcked)
	r := l.sack(0)
	check.That(t, r.CumAdvanced && l.s.Outstanding() == 2, "%+v, %d outstanding", r, l.s.Outstanding())
	check.That(t, l.sack(1<<32-1).Stale, "the SACK from before the wrap is not stale")
	l.sack(2)
	check.Equal(t, "messages acknowledged", len(l.acked), 5)
}

func TestCwndIsSharedByStreams(t *testing.T) {
	// req 9260-7-1
	l := newLab(t, 1)
	for i := range 16 {
		must.OK(t, l.s.Enqueue(&Message{Stream: wire.StreamID(i), Body: [2][]byte{make([]byte, full)}}))
	}
	l.expectTSNs("16 streams with one chunk each have one cwnd of 4000", "1 | 2 | 3 | 4 | 5")
}

func TestEachDestinationHasItsOwnCongestionControl(t *testing.T) {
	l := newLab(t, 2)
	a, b := l.pathAt(0), l.pathAt(1)
	for i, p := range []*Path{a, b} {
		check.That(t, p.cc.Window() == 4000 && p.cc.Ssthresh() >= 1<<30, "path %d starts with cwnd %d ssthresh %d, want slow start", i, p.cc.Window(), p.cc.Ssthresh()) // req 9260-7.1-2
	}
	l.enqueueMany(40, full)
	l.expectTSNs("the window of the primary path alone", "1 | 2 | 3 | 4 | 5") // req 5043-7.2-5
	a.State = Inactive
	l.expectTSNs("the other has a window of its own", "6>1 | 7>1 | 8>1 | 9>1 | 10>1")
	// req 9260-7.2-3
	check.Equal(t, "rwnd, one for both paths", l.s.Rwnd(), 1<<20-10*full)
	a.State = Active
	l.now = a.timers.t3At
	b.timers.t3At = l.now + second // so that the first path alone expires
	l.s.HandleTimeout(l.now)
	check.That(t, a.cc.Window() == 1000 && a.cc.Ssthresh() == 4000 && b.cc.Window() == 4000 && b.cc.Ssthresh() >= 1<<30 && b.Flight() == 5*counted, "T3-rtx of one path: cwnd %d and %d, ssthresh %d and %d", a.cc.Window(), b.cc.Window(), a.cc.Ssthresh(), b.cc.Ssthresh())
	l.sack(0, gap{6, 7})
	check.Equal(t, "cwnd: another path's octets do not count", a.cc.Window(), 1000)
}

func TestWhatCountsInCwndAndInRwnd(t *testing.T) {
	// req 9260-7.2-4: header and padding count in the one, user data alone in the other.
	l := newLab(t, 1)
	l.enqueueMany(3, 5)
	l.transmit()
	check.That(t, l.pathAt(0).Flight() == 3*24 && l.s.Rwnd() == 1<<20-3*5, "flight %d, rwnd used %d, want 72 and 15", l.pathAt(0).Flight(), 1<<20-l.s.Rwnd())
	l.pathAt(0).cc = newFixedWindow(1 << 20)
	l.sack(2)
	check.Equal(t, "octets acknowledged to the controller", l.pathAt(0).sack.ackedOctets, 2*24)
}

// What was in flight when cwnd was full counts when it is acknowledged, however little is in flight
// then; nothing else does, nor what was before a reduction.
func TestWhatFilledCwndCounts(t *testing.T) {
	l, c := newLab(t, 1), &lossCounter{Controller: newFixedWindow(3 * counted)}
	l.pathAt(0).cc = c
	events := [8]func(){3: func() { l.runNextTimeout(); l.transmit() }, 4: func() { l.s.reduceCwnd(l.now, l.pathAt(0)) }, 6: func() { l.s.HandleECNE(l.now, 12) }}
	for i, row := range [8][3]int{{3, 2, 2}, {1, 2, 2}, {0, 4, 3}, {3, 7, 3}, {3, 9, 3}, {2, 10, 4}, {0, 12, 4}, {3, 15, 7}} { // queued, acknowledged up to, and how many count by then
		l.now += ms
		l.sendFull(row[0])
		if events[i] != nil {
			events[i]()
		}
		l.sack(wire.TSN(row[1]))
		check.That(t, c.full == row[2]*counted, "%d octets until TSN %d", c.full, row[1])
	}
	check.That(t, !l.pathAt(0).cwndFull.isSet, "remembered when all is acknowledged: %+v", l.pathAt(0).cwndFull)
}

// Over a far path half of the window is taken for all of it in slow start.
func TestHalfOfTheWindowIsEnoughInSlowStart(t *testing.T) {
	for _, tt := range []struct {
		what        string
		trip        time.Duration
		packets     int
		start, full bool
	}{
		{"slow start, half", 100, 10, true, true}, {"less", 100, 9, true, false}, {"behind slow start", 100, 10, false, false},
		{"a near path", 1, 10, true, false},
	} {
		l, c := farLab(t, 1, 0)
		l.sackAfter(100, 5)
		p := l.pathAt(0)
		p.rttEst.minRTT, p.cwndFull = minRTTFilter{current: tt.trip * time.Millisecond, samples: 1}, sendOrder{}
		if tt.start {
			p.cc = &slowStarting{c}
		}
		l.now += 10 * ms
		l.enqueueMany(tt.packets, full)
		l.transmit()
		check.Equal(t, tt.what, p.cwndFull.isSet, tt.full)
	}
}

// slowStarting is a controller in slow start.
type slowStarting struct{ cc.Controller }

func (c *slowStarting) Ssthresh() int { return 1 << 30 }
