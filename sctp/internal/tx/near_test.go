package tx

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/check"
)

// Over a near path no more is in flight than is of use, over a far one as much as cwnd allows; never more than cwnd. The send
// buffer has twice that, if the peer takes it.
func TestNearWindow(t *testing.T) {
	for _, tt := range []struct {
		name string
		trip time.Duration
		mtu  int
		cwnd int
		want int

		peer, buffer int
	}{
		{"near", 50 * time.Microsecond, labMTU, math.MaxInt32, nearWindow, 5 << 20, FirstBuffer},
		{"just near", nearTrip - 1, labMTU, math.MaxInt32, nearWindow, 5 << 20, FirstBuffer},
		{"far, little cwnd", nearTrip, labMTU, 3 << 18, 3 << 18, 5 << 20, 2 << 20},
		{"far, and the peer takes little", nearTrip, labMTU, 3 << 20, 3 << 20, 1 << 20, 2 << 20},
		{"far, and the peer takes much", nearTrip, labMTU, math.MaxInt32, math.MaxInt32, 64 << 20, MaxBuffer},
		{"far", nearTrip, labMTU, math.MaxInt32, math.MaxInt32, 3 << 20, 8 << 20},
		{"not known yet", 0, labMTU, math.MaxInt32, math.MaxInt32, 5 << 20, FirstBuffer},
		{"near, small cwnd", 50 * time.Microsecond, labMTU, 5000, 5000, 5 << 20, FirstBuffer},
		{"near, long packets", 50 * time.Microsecond, 60012, math.MaxInt32, nearPackets * 60000, 5 << 20, FirstBuffer},
	} {
		l := newLab(t, 1)
		p := l.path(0)
		p.SetMTU(tt.mtu)
		p.cc = fixed(tt.cwnd)
		p.est.trip.of, p.est.srtt, l.s.ledger.rwnd, l.s.cfg.SendBuffer = tt.trip, tt.trip, tt.peer, 0
		check.Equal(t, tt.name+": octets of the send buffer", l.s.SendBuffer(), tt.buffer)
		check.Equal(t, tt.name+": octets", p.window(), tt.want)
		for _, more := range []int{-1, 0} {
			p.flight = tt.want + more
			open := p.open()
			check.That(t, open == (more < 0), "%s: %d octets in flight of %d: open %t", tt.name, p.flight, tt.want, open)
		}
		p.flight = 0
	}
}

// A near path that is silent is left as well, but not before TCP would send anything again: what
// takes long there is most often a processor that is wanted elsewhere.
func TestNearPathThatIsSilentIsLeft(t *testing.T) {
	for _, row := range []struct {
		name string
		with func(*lab)
		want string
	}{
		{"another path", func(*lab) {}, "205 1>1"}, // with leastWait,
		{"no HEARTBEAT would ask it", func(l *lab) { l.path(0).Asks = false }, "1000 1>1"},
		{"the letter", func(l *lab) { l.s.cfg.Letter = true }, "1000 1>1"},
	} {
		l := newLab(t, 2)
		l.s.cfg.Letter = false
		for _, p := range l.s.paths {
			p.Asks = true
			p.ObserveRTT(time.Millisecond)
			p.est.trip = shortest{of: time.Millisecond, n: 1}
			p.waits.observe(0)
		}
		row.with(l)
		l.queue(3, full)
		l.expect(row.name, "1 | 2 | 3")
		l.timeout()
		got := fmt.Sprint(l.now / ms)
		for _, p := range l.transmit()[:1] {
			got += fmt.Sprintf(" %d>%d", chunks(t, p)[0].TSN(), p.Remote.Addr().As4()[3]-1)
		}
		check.Equal(t, row.name, got, row.want)
	}
}
