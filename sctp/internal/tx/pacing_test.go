package tx

import (
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// fixedPacer is a controller with a fixed window and rate.
type fixedPacer struct {
	cc.Controller
	rate int64
}

func (p *fixedPacer) Window() int                         { return 1 << 20 }
func (p *fixedPacer) PacingRate(srtt time.Duration) int64 { return p.rate }

// paceLab has one path with such a controller, which asks for ten chunks of a lab in a millisecond.
func paceLab(t *testing.T, maxBurst int) *senderLab {
	l := newLab(t, 0)
	l.s.cfg.MaxBurst = maxBurst
	p := NewPath(netip.AddrPort{}, netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 1}), 0), labMTU, labRTO,
		func(pmdcs int, ipv6 bool) cc.Controller {
			return &fixedPacer{cc.NewReno(pmdcs, ipv6), 10 * counted * 1000}
		})
	p.State = Active
	must.OK(t, l.s.AddPath(p))
	l.now = second
	return l
}

// Packets leave at the pace that the controller asks for, a millisecond's worth at once.
func TestPacketsLeaveAtThePaceOfTheController(t *testing.T) {
	l := paceLab(t, 0)
	l.enqueueMany(100, full)
	sent := len(l.transmit())
	must.That(t, sent >= 10 && sent <= 11, "%d packets at once, want a millisecond's worth", sent)
	start := l.now
	for sent < 100 {
		next := l.s.NextTimeout()
		must.That(t, next > l.now && next <= l.now+ms/2, "after %d packets at %v the next may go at %v", sent, l.now,
			next)
		l.now = next
		must.Equal(t, "paths that failed because of the pace", l.s.HandleTimeout(l.now), 0)
		n := len(l.transmit())
		must.That(t, n == 1, "%d packets after %v, want one", n, l.now.Sub(start))
		sent += n
	}
	took := l.now.Sub(start)
	check.That(t, took >= 8800*time.Microsecond && took <= 9*time.Millisecond,
		"90 packets took %v at ten in a millisecond", took)
	check.That(t, l.s.NextTimeout() >= l.now+second/2, "a pace timer runs with nothing to send")
}

// Where a packet leaves later than by the pace, as its timer was late, that is made up at twice the
// pace, until as much is in flight as the pace keeps there.
func TestWhatTimersHaveCostIsMadeUp(t *testing.T) {
	for _, tt := range []struct {
		name       string
		trip, late rawio.Time
		waits      bool
		want       []int // packets in each millisecond from then on
	}{
		{"in time", second, 0, true, []int{10, 10}},
		{"a millisecond may be used at once", second, ms, true, []int{20, 10}},
		{"three more are made up", second, 4 * ms, true, []int{40, 20, 10, 10}},
		{"there was nothing to send", second, 4 * ms, false, []int{20, 10}},
		{"no more in flight than a round trip has, 100", 10 * ms, 100 * ms, true, []int{40, 20, 20, 14, 10}},
	} {
		l := paceLab(t, 0)
		p := l.pathAt(0)
		p.rttEst.minRTT.addSample(time.Duration(tt.trip))
		l.enqueueMany(11, full)
		if tt.waits {
			l.enqueueMany(1, full)
		}
		l.transmit()
		l.enqueueMany(1000, full)
		var got []int
		l.now = p.pacing.nextSendAt + tt.late
		for range tt.want {
			n := 0
			for end := l.now + ms - 1; l.now < end; l.now = l.s.NextTimeout() {
				n += len(l.transmit())
			}
			got = append(got, n)
		}
		check.Slice(t, tt.name, got, tt.want)
	}
}

// A controller that asks for no pace, as before the first round trip is known, gets none, and what
// waited goes.
func TestNoPaceAskedFor(t *testing.T) {
	l := paceLab(t, 0)
	l.sendFull(100)
	l.pathAt(0).pacer.(*fixedPacer).rate = 0
	l.now = l.s.NextTimeout() + 1
	n := len(l.transmit())
	check.That(t, n >= 80 && l.pathAt(0).pacing.nextSendAt == l.now, "%d packets, the next at %d", n,
		l.pathAt(0).pacing.nextSendAt)
}

// What Max.Burst allows after a SACK is not lost to a pace that lets less go at once.
func TestPacingKeepsTheBurst(t *testing.T) {
	l := paceLab(t, 4)
	l.enqueueMany(200, full)
	for range 10 { // 40 packets are in flight
		l.now += second / 100
		l.transmit()
	}
	l.now += second / 100
	l.sack(40)
	sent := len(l.transmit())
	for range 100 {
		next := l.s.NextTimeout()
		if next == rawio.Never || next > l.now+ms {
			break
		}
		l.now = next
		l.s.HandleTimeout(l.now)
		sent += len(l.transmit())
	}
	check.Equal(t, "packets after a SACK for 40, Max.Burst for every two", sent, 80)
}

// Unless it is to keep to the letter, an association begins with ten packets, whatever Max.Burst
// is, and then spreads them.
func TestFirstTenLeaveAtOnceAndTheOthersArePaced(t *testing.T) {
	for _, tt := range []struct {
		name         string
		trip         rawio.Time
		letter       bool
		first, again int // packets that leave at once before and after the first SACK
	}{
		{"far", 100 * ms, false, 11, 11},
		{"near: two trains of 64 KiB, and so all of cwnd", 2*ms - 1, false, 11, 16},
		{"as near as to be spread", 2 * ms, false, 11, 22},
		{"by the letter", 100 * ms, true, 2, 2},
	} {
		l := newLab(t, 0)
		l.s.cfg.MaxBurst, l.s.cfg.StrictRFC = 3, tt.letter
		p := NewPath(netip.AddrPort{}, netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 1}), 0), labMTU, labRTO,
			nil)
		p.State = Active
		must.OK(t, l.s.AddPath(p))
		l.now = second
		l.enqueueMany(100, full)
		if tt.letter {
			l.s.cfg.MaxBurst = 2
		}
		check.Equal(t, tt.name+": packets at first", len(l.transmit()), tt.first)
		l.now += tt.trip
		l.sack(wire.TSN(tt.first))
		n := len(l.transmit())
		check.Equal(t, tt.name+": packets after the first SACK", n, tt.again)
		if tt.letter || n != 11 {
			continue
		}
		for ; p.flight.octets < p.cc.Window(); n++ { // 2 cwnd in a round trip
			next, gap := l.s.NextTimeout(), tt.trip*counted/rawio.Time(2*p.cc.Window())
			must.That(t, n <= 11 || next.Sub(l.now+gap).Abs() <= time.Microsecond, "%s: packet %d after %v, want %v",
				tt.name, n, next.Sub(l.now), time.Duration(gap))
			l.now = l.s.NextTimeout()
			must.Equal(t, tt.name+": packets at once", len(l.transmit()), 1)
		}
		check.Equal(t, tt.name+": packets of a window, twice the first", n, 22)
	}
}
