package tx

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
)

// Over a near path no more is in flight than is of use, over a far one as much as cwnd allows;
// never more than cwnd. The send buffer has twice that, if the peer takes it.
func TestNearWindow(t *testing.T) {
	for _, tt := range []struct {
		name string
		trip time.Duration
		mtu  int
		cwnd int
		want int

		peer, buffer int
	}{
		{"near", 50 * time.Microsecond, labMTU, math.MaxInt32, nearWindowOctets, 5 << 20, FirstBuffer},
		{"just near", nearRTT - 1, labMTU, math.MaxInt32, nearWindowOctets, 5 << 20, FirstBuffer},
		{"far, little cwnd", nearRTT, labMTU, 3 << 18, 3 << 18, 5 << 20, 2 << 20},
		{"far, and the peer takes little", nearRTT, labMTU, 3 << 20, 3 << 20, 1 << 20, 2 << 20},
		{"far, and the peer takes much", nearRTT, labMTU, math.MaxInt32, math.MaxInt32, 64 << 20, MaxBuffer},
		{"far", nearRTT, labMTU, math.MaxInt32, math.MaxInt32, 3 << 20, 8 << 20},
		{"not known yet", 0, labMTU, math.MaxInt32, math.MaxInt32, 5 << 20, FirstBuffer},
		{"near, small cwnd", 50 * time.Microsecond, labMTU, 5000, 5000, 5 << 20, FirstBuffer},
		{"near, long packets", 50 * time.Microsecond, 60012, math.MaxInt32, nearWindowPackets * 60000, 5 << 20, FirstBuffer},
	} {
		l := newLab(t, 1)
		p := l.pathAt(0)
		p.SetMTU(tt.mtu)
		p.cc = newFixedWindow(tt.cwnd)
		p.rttEst.minRTT.current, p.rttEst.srtt, l.s.outstanding.rwnd, l.s.cfg.SendBuffer = tt.trip, tt.trip, tt.peer, 0
		check.Equal(t, tt.name+": octets of the send buffer", l.s.SendBuffer(), tt.buffer)
		check.Equal(t, tt.name+": octets", p.sendWindow(), tt.want)
		for _, more := range []int{-1, 0} {
			p.flight.octets = tt.want + more
			open := p.hasCwndRoom()
			check.That(t, open == (more < 0), "%s: %d octets in flight of %d: open %t", tt.name, p.flight.octets,
				tt.want, open)
		}
		p.flight.octets = 0
	}
}

// A near path that is silent is left as well, but not before TCP would send anything again: what
// takes long there is most often a processor that is wanted elsewhere.
func TestNearPathThatIsSilentIsLeft(t *testing.T) {
	for _, row := range []struct {
		name string
		with func(*senderLab)
		want string
	}{
		{"another path", func(*senderLab) {}, "205 1>1"}, // with minSackDelay,
		{"no HEARTBEAT would ask it", func(l *senderLab) { l.pathAt(0).HeartbeatsOnSuspicion = false }, "1000 1>1"},
		{"the letter", func(l *senderLab) { l.s.cfg.StrictRFC = true }, "1000 1>1"},
	} {
		l := newLab(t, 2)
		l.s.cfg.StrictRFC = false
		for _, p := range l.s.paths {
			p.HeartbeatsOnSuspicion = true
			p.ObserveRTT(time.Millisecond)
			p.rttEst.minRTT = minRTTFilter{current: time.Millisecond, samples: 1}
			p.sackDelays.addSample(0)
		}
		row.with(l)
		l.enqueueMany(3, full)
		l.expectTSNs(row.name, "1 | 2 | 3")
		l.runNextTimeout()
		got := fmt.Sprint(l.now / ms)
		for _, p := range l.transmit()[:1] {
			got += fmt.Sprintf(" %d>%d", chunks(t, p)[0].TSN(), p.Remote.Addr().As4()[3]-1)
		}
		check.Equal(t, row.name, got, row.want)
	}
}
