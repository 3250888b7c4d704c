package sctp

import (
	"time"

	"github.com/rddp-go/rddp/internal/pollpolicy"
	"github.com/rddp-go/rddp/rawio"
)

// adaptivePolicy does what pays for the packets that have come lately. Package pollpolicy judges
// them.
type adaptivePolicy struct {
	*pollpolicy.Policy
	blocking simplePolicy // how to wait without a waiter
	waiter   rawio.Waiter // nil: the queue decides itself how its reader waits
}

func newAdaptivePolicy(t *Transport, q rawio.Shard, waits bool) *adaptivePolicy {
	p, poll := &adaptivePolicy{blocking: simplePolicy{q}}, time.Duration(0)
	if w, ok := q.(rawio.Waiter); ok && waits {
		p.waiter, poll = w, w.Polling()
	}
	p.Policy = pollpolicy.New(poll, t.now)
	return p
}

// WaitBatch looks for packets, and pauses between two looks as the Policy says.
func (p *adaptivePolicy) WaitBatch(pkts []rawio.Packet) (n int, err error) {
	if p.waiter == nil {
		return p.blocking.WaitBatch(pkts)
	}
	return p.NextBatch(p.waiter, pkts)
}

// Coalesces lets the answers of several goroutines go together, and what the reader, or the timer,
// sends for several associations in turn.
func (p *adaptivePolicy) Coalesces(withOthers, repliesExpected bool) bool {
	return withOthers || repliesExpected && p.GathersReplies()
}

// GathersReplies is true while packets come in numbers and wake goroutines.
func (p *adaptivePolicy) GathersReplies() bool { return p.State() == pollpolicy.Concurrent }

// FlushOnWait puts a flushingWaiter before the link.
func (p *adaptivePolicy) FlushOnWait(t *Transport) bool {
	if p.waiter == nil {
		return false
	}
	p.waiter = flushingWaiter{p.waiter, t}
	return true
}

// YieldsForLock is true while packets come in bulk: the reader holds the lock for batch after
// batch, and releases it in between.
func (p *adaptivePolicy) YieldsForLock() bool { return p.State() == pollpolicy.Bulk }
