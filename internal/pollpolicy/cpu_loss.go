package pollpolicy

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// trackedCPUs is how many processors are distinguished, by the last bits of their numbers.
const trackedCPUs = 8

// cpuLoss is the time that other threads have had of a processor when it was ceded.
type cpuLoss struct {
	repayEndsAt rawio.Time // until then it is paid back
	parkEndsAt  rawio.Time // until then the kernel is to share it out
	parkFactor  int        // for how many times as long as they had it
}

// parkFactor is doubled if other threads take the processor again before as much time has passed
// once more. Otherwise it is halved. A reader that is away for longer than maxCPULoss was stopped,
// or asleep with the host.
const (
	minParkFactor = 4
	maxParkFactor = 64
	maxCPULoss    = 10 * time.Millisecond
)

// recordLoss notes that other threads have had the processor for so long.
func (t *cpuLoss) recordLoss(now rawio.Time, took time.Duration) {
	took = min(took, maxCPULoss)
	if now.Sub(t.parkEndsAt) < time.Duration(t.parkFactor)*took {
		t.parkFactor = min(2*t.parkFactor, maxParkFactor)
	} else {
		t.parkFactor /= 2
	}
	t.parkFactor = max(t.parkFactor, minParkFactor)
	t.repayEndsAt, t.parkEndsAt = now.Add(took), now.Add(time.Duration(t.parkFactor)*took)
}
