package baseline

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Gate tells the sender, past the link, how far the receiver is. So the sender does not send what
// would only be dropped. A cold queue in front of the receiver makes a pump slower than a stack
// with flow control. The zero value serves two ends in one process; MapGate joins two processes.
type Gate struct{ n *atomic.Uint64 }

// NewGate returns a gate for two ends in one process.
func NewGate() Gate { return Gate{new(atomic.Uint64)} }

// window is how many octets may be on their way. It is less than the buffer of any socket.
const window = 2 << 20

// lostAfter is when packets that have not come count as lost.
const lostAfter = 20 * time.Millisecond

// Waiting costs as little as it can: a window lasts for longer than a nap.
const (
	spins = 16
	nap   = 50 * time.Microsecond
)

// waitForRoom returns when fewer than limit packets are on their way. lost corrects the count.
func (g Gate) waitForRoom(sent, limit uint64, lost *uint64) {
	if g.n == nil {
		return
	}
	var since time.Time
	seen := g.n.Load()
	for n := 0; sent-*lost-seen >= limit; n++ {
		if n < spins {
			runtime.Gosched()
		} else {
			time.Sleep(nap)
		}
		switch now := g.n.Load(); {
		case now != seen || since.IsZero():
			seen, since = now, time.Now()
		case time.Since(since) > lostAfter:
			*lost = sent - seen
		}
	}
}

func (g Gate) addArrived(n int) {
	if g.n != nil {
		g.n.Add(uint64(n))
	}
}
