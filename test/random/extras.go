package random

import (
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/sched"
)

// Bits of Assoc.Extras. What one side alone offers is not agreed on.
const (
	abandonsA = 1 << iota
	abandonsB
	interleavesA
	interleavesB
	firstScheduler // and from here on the number of a scheduler

	maxExtras = firstScheduler*6 - 1
)

var schedulers = [...]func() sched.Scheduler{nil, sched.RoundRobin, sched.Priority, sched.FairCapacity,
	sched.WeightedFairQueueing, sched.RoundRobinPerPacket}

// setExtras sets what a side offers beyond RFC 9260.
func setExtras(c *assoc.Config, extras, side int) {
	c.PartialReliability = extras&(abandonsA<<side) != 0
	c.Interleaving = extras&(interleavesA<<side) != 0
	c.NewScheduler = schedulers[extras/firstScheduler]
}

// drawPolicy draws when a message is given up, if the peer has agreed to that.
func (d *drawer) drawPolicy(a *assoc.Assoc, m *assoc.Message) {
	if !a.Extensions().Has(assoc.PartialReliability) || d.n(3) > 0 {
		return
	}
	switch d.n(3) {
	case 0:
		m.Policy, m.Limit = assoc.AbandonResent, uint32(d.n(3))
	case 1:
		m.Policy, m.Limit = assoc.AbandonForRoom, uint32(d.n(5))
	default:
		if m.Expires != 0 {
			m.Policy = assoc.AbandonExpired
		}
	}
}
