package rx

import (
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// A buffer that follows anything but what is read while it comes is memory for any peer that asks
// for it.
func TestBufferGrowsByWhatIsRead(t *testing.T) {
	const first, most, trip = 100_000, 1_000_000, 100 * time.Millisecond
	d := readRate{received: 5000, read: 5000}
	check.Equal(t, "what was read in the round trip that ends now", d.readPerRTT(1000, 1000, most), 5000)
	for _, tt := range []struct {
		name  string
		trips int
		come  int // messages of 1000 octets in each
		read  int // after so many
		want  int
	}{
		{"as much as four round trips bring", 3, 60, 1, 240_000},
		{"no more than it may", 4, 400, 1, most},
		{"not by what it has room for", 9, 25, 1, first},
		{"not by what nobody reads", 2, 50, 101, first},
		{"not by what comes slowly and is read at once", 30, 3, 90, first},
	} {
		r := NewReceiver(Config{PeerTSN: 1, RecvBuffer: first, MaxBuffer: most, PMDCS: 1400, InStreams: 1})
		now, tsn, x := 1000*ms, 0, strings.Repeat("x", 1000)
		read := func() {
			for m, ok := r.Receive(); ok; m, ok = r.Receive() {
				r.Release(m)
			}
		}
		for range tt.trips {
			for range tt.come {
				tsn++
				now = now.Add(trip / time.Duration(tt.come))
				mustPacket(t, r, now, dataChunk(tsn, tsn-1, be, x))
				if tsn%tt.read == 0 {
					read()
				}
				if n := r.WantedBuffer(now, trip); n > 0 {
					r.GrowBuffer(n)
				}
				sackOf(r)
			}
		}
		check.That(t, r.Window()+r.Buffered() >= tt.want-minGrowStep && r.Window()+r.Buffered() <= tt.want,
			"%s: %d octets, want %d", tt.name, r.Window()+r.Buffered(), tt.want)
		must.OK(t, r.Audit(0))
		if read(); tt.want > first {
			r.SetMemoryPressure(true)
			check.Equal(t, tt.name+", and while memory is short", r.WantedBuffer(now, trip), 0)
			r.SetMemoryPressure(false)
			check.That(t, r.Window() == r.advertisedWindow && r.cfg.RecvBuffer == first,
				"%s: what the peer was told of is %d octets, the window %d", tt.name, r.advertisedWindow, r.Window())
		}
	}
}
