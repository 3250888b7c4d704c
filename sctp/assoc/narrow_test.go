package assoc_test

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// The set-up may have taken longer than the way there and back does. An honest peer with a narrow
// window is held up by that until a HEARTBEAT has asked, which is at once. Where nothing is held up
// none asks.
func TestNarrowWindowHasTheRoundTripProvedAnew(t *testing.T) {
	for _, tt := range []struct {
		name   string
		window int
		setUp  time.Duration // one way
		asks   bool
	}{
		{"the set-up was slow", 3000, 100 * time.Millisecond, true},
		{"the set-up was as fast as it goes", 3000, 10 * time.Millisecond, false},
		{"the window is wide", 1 << 20, 100 * time.Millisecond, false},
	} {
		w := sctptest.NewWorld(t)
		way := tt.setUp
		w.Filter = func(int, wire.Packet) (int, time.Duration) { return 1, way }
		w.Listen(&assoc.Config{RecvBuffer: tt.window})
		a := w.Connect(&assoc.Config{HeartbeatInterval: time.Hour})
		w.Run(time.Second)
		b := w.Peer()
		asked, way := a.Stats().HeartbeatsOut, 10*time.Millisecond
		w.Filter = func(int, wire.Packet) (int, time.Duration) { return 1, way }
		got, sent := 0, 0
		for begun := w.Now; w.Now < begun.Add(2*time.Second); {
			for ; sent < got+20; sent++ {
				w.Send(a, 0, make([]byte, 1000))
			}
			w.Run(time.Millisecond)
			got += len(sctptest.Drain(b))
		}
		check.Equal(t, tt.name+": a HEARTBEAT asks", a.Stats().HeartbeatsOut > asked, tt.asks)
		check.That(t, got >= 85, "%s: %d messages have come in 100 round trips", tt.name, got)
	}
}
