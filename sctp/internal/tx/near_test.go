package tx

import (
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
