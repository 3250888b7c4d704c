package pollpolicy

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// quotaGuard keeps a reader from looking for packets while the CPU quota of a control group runs
// out. What the reader takes is missing when the kernel stops the process for the rest of the
// period.
type quotaGuard struct {
	throttleCount func() int64 // how often the kernel has done that so far
	lastCount     int64        // that, when it was asked last
	checkedAt     rawio.Time
	endsAt        rawio.Time
}

const (
	quotaCheckInterval = time.Second
	quotaGuardTime     = 10 * time.Second // after the last time
)

func newQuotaGuard(throttled func() int64) quotaGuard {
	return quotaGuard{throttleCount: throttled, lastCount: throttled()}
}

func (c *quotaGuard) isActive(now rawio.Time) bool {
	if now.Sub(c.checkedAt) >= quotaCheckInterval {
		n := c.throttleCount()
		if n > c.lastCount {
			c.endsAt = now.Add(quotaGuardTime)
		}
		c.lastCount, c.checkedAt = n, now
	}
	return now.Before(c.endsAt)
}
