package pace

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// curb keeps a reader from looking for packets where the quota of processor time of a control group runs out: what it takes is missing when the kernel
// stops the process for the rest of the period.
type curb struct {
	throttled func() int64 // how often the kernel has done that so far
	times     int64        // that, when it was asked last
	asked     rawio.Time
	until     rawio.Time
}

const (
	askEvery = time.Second
	curbFor  = 10 * time.Second // after the last time
)

func newCurb(throttled func() int64) curb { return curb{throttled: throttled, times: throttled()} }

func (c *curb) on(now rawio.Time) bool {
	if now.Sub(c.asked) >= askEvery {
		n := c.throttled()
		if n > c.times {
			c.until = now.Add(curbFor)
		}
		c.times, c.asked = n, now
	}
	return now.Before(c.until)
}
