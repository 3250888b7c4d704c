package pace

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// cpus is how many processors are told apart, by the last bits of their numbers.
const cpus = 8

// taken is what others have had of a processor when it was ceded.
type taken struct {
	back   rawio.Time // until then it is paid back
	shared rawio.Time // until then the kernel is to share it out
	times  int        // for how many times as long as they had it
}

// times is doubled where others have the processor again before as much time is over once more, and else halved. Who is away for longer than mostTaken was
// stopped, or asleep with the host.
const (
	timesLeast = 4
	timesMost  = 64
	mostTaken  = 10 * time.Millisecond
)

// lost takes that others have had it for so long.
func (t *taken) lost(now rawio.Time, took time.Duration) {
	took = min(took, mostTaken)
	if now.Sub(t.shared) < time.Duration(t.times)*took {
		t.times = min(2*t.times, timesMost)
	} else {
		t.times /= 2
	}
	t.times = max(t.times, timesLeast)
	t.back, t.shared = now.Add(took), now.Add(time.Duration(t.times)*took)
}
