package tx

import (
	"math"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/check"
)

// Over a near path no more is in flight than is of use, over a far one as much as cwnd allows; never more than cwnd.
func TestNearWindow(t *testing.T) {
	for _, tt := range []struct {
		name string
		trip time.Duration
		mtu  int
		cwnd int
		want int
	}{
		{"near", 50 * time.Microsecond, labMTU, math.MaxInt32, nearWindow},
		{"just near", nearTrip - 1, labMTU, math.MaxInt32, nearWindow},
		{"far", nearTrip, labMTU, math.MaxInt32, math.MaxInt32},
		{"not known yet", 0, labMTU, math.MaxInt32, math.MaxInt32},
		{"near, small cwnd", 50 * time.Microsecond, labMTU, 5000, 5000},
		{"near, long packets", 50 * time.Microsecond, 60012, math.MaxInt32, nearPackets * 60000},
	} {
		l := newLab(t, 1)
		p := l.path(0)
		p.SetMTU(tt.mtu)
		p.cc = fixed(tt.cwnd)
		p.est.trip.of = tt.trip
		check.Equal(t, tt.name+": octets", p.window(), tt.want)
		for _, more := range []int{-1, 0} {
			p.flight = tt.want + more
			open := p.open()
			check.That(t, open == (more < 0), "%s: %d octets in flight of %d: open %t", tt.name, p.flight, tt.want, open)
		}
		p.flight = 0
	}
}
