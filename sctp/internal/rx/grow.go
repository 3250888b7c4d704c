package rx

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// growStep is the least, in octets, that a receive buffer grows by.
const growStep = 64 << 10

// reading is what has come and been read of late, in octets of user data.
type reading struct {
	began rawio.Time // the present round trip
	came  int        // in it
	read  int
	past  int // the lesser of both in the one before
}

// rate returns what was read in the round trip that ends now. A burst of reading counts by no more than what has come meanwhile, what a peer sends and
// nobody reads not at all.
func (d *reading) rate(now rawio.Time, trip time.Duration, most int) int {
	since := now.Sub(d.began)
	if since >= trip {
		*d = reading{began: now, past: part(min(d.came, d.read, most), trip, since)}
		since = 0
	}
	return min(d.came, d.read) + part(d.past, trip-since, trip)
}

// part returns as many of n octets as d is of the whole.
func part(n int, d, whole time.Duration) int { return int(int64(n) * int64(d) / int64(whole)) }

// Wants returns how large the receive buffer should be, if that is more than it is, else 0. As in TCP (dynamic right-sizing) it is twice what the user may
// read until the window is heard of again, as a sender in slow start doubles what it sends. That takes two round trips behind a chunk that was lost: one until
// it is known, and one until it is there.
func (r *Receiver) Wants(now rawio.Time, trip time.Duration) int {
	if r.cfg.MaxBuffer <= r.cfg.RecvBuffer || r.squeezed {
		return 0
	}
	n := min(2*2*r.reading.rate(now, trip, r.cfg.MaxBuffer), r.cfg.MaxBuffer)
	if n < r.cfg.RecvBuffer+growStep {
		return 0
	}
	return n
}

// Grow makes the receive buffer as large as Wants has said.
func (r *Receiver) Grow(octets int) {
	r.cfg.RecvBuffer = octets
	r.fit()
}

// ungrow has the receive buffer become what it was at first.
func (r *Receiver) ungrow() {
	r.cfg.RecvBuffer = r.first
	r.fit()
}
