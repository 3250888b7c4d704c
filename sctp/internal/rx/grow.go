package rx

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// minGrowStep is the least, in octets, that a receive buffer grows by.
const minGrowStep = 64 << 10

// readRate is what has recently come and been read, in octets of user data.
type readRate struct {
	rttBeganAt rawio.Time // the present round trip
	received   int        // in it
	read       int
	lastRTT    int // the lesser of both in the one before
}

// readPerRTT returns what was read in the round trip that ends now. A burst of reading counts for
// no more than what has come meanwhile. What is not read does not count.
func (d *readRate) readPerRTT(now rawio.Time, trip time.Duration, most int) int {
	since := now.Sub(d.rttBeganAt)
	if since >= trip {
		*d = readRate{rttBeganAt: now, lastRTT: proportionOf(min(d.received, d.read, most), trip, since)}
		since = 0
	}
	return min(d.received, d.read) + proportionOf(d.lastRTT, trip-since, trip)
}

// proportionOf returns as many of n octets as d is of the whole.
func proportionOf(n int, d, whole time.Duration) int { return int(int64(n) * int64(d) / int64(whole)) }

// WantedBuffer returns how large the receive buffer should be if that is more than it is, else 0.
// As in TCP (dynamic right-sizing) that is twice what the user may read until the next window
// update takes effect. A sender in slow start doubles what it sends. A lost chunk takes two round
// trips: one until the loss is known, and one until the chunk is there.
func (r *Receiver) WantedBuffer(now rawio.Time, trip time.Duration) int {
	if r.cfg.MaxBuffer <= r.cfg.RecvBuffer || r.underPressure {
		return 0
	}
	n := min(2*2*r.readRate.readPerRTT(now, trip, r.cfg.MaxBuffer), r.cfg.MaxBuffer)
	if n < r.cfg.RecvBuffer+minGrowStep {
		return 0
	}
	return n
}

// GrowBuffer makes the receive buffer as large as WantedBuffer has returned.
func (r *Receiver) GrowBuffer(octets int) {
	r.cfg.RecvBuffer = octets
	r.fitBuffer()
}

// resetBufferSize makes the receive buffer what it was at first.
func (r *Receiver) resetBufferSize() {
	r.cfg.RecvBuffer = int(r.initialBuffer)
	r.fitBuffer()
}
