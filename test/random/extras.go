package random

import (
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/sched"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Bits of Assoc.Extras. What one side alone offers is not agreed on.
const (
	abandonsA = 1 << iota
	abandonsB
	interleavesA
	interleavesB
	resets         // both reset streams and TSNs, and add streams
	firstScheduler // and from here on the number of a scheduler

	maxExtras = firstScheduler*6 - 1
)

var schedulers = [...]func() sched.Scheduler{nil, sched.RoundRobin, sched.Priority, sched.FairCapacity,
	sched.WeightedFairQueueing, sched.RoundRobinPerPacket}

// setExtras sets what a side offers beyond RFC 9260.
func setExtras(c *assoc.Config, extras, side int) {
	c.PartialReliability = extras&(abandonsA<<side) != 0
	c.Interleaving = extras&(interleavesA<<side) != 0
	if extras&resets != 0 {
		c.StreamReset = assoc.AllowStreamReset | assoc.AllowTSNReset | assoc.AllowAddStreams
	}
	c.NewScheduler = schedulers[extras/firstScheduler]
}

// resetStreams asks for a change of streams now and then. Whether it is done is for the peer to say:
// messages arrive as ever.
func (l *assocSide) resetStreams(d *drawer) {
	if !l.a.Extensions().Has(assoc.StreamReconfiguration) || d.n(30) > 0 {
		return
	}
	now, err := l.e.h.node.Time(), error(nil)
	switch d.n(4) {
	case 0:
		err = l.a.AddStreams(now, d.n(3), d.n(3))
	case 1:
		err = l.a.ResetTSNs(now)
	default:
		var streams []wire.StreamID
		if d.n(3) > 0 {
			streams = append(streams, wire.StreamID(d.n(l.a.OutStreams())))
		}
		err = l.a.ResetStreams(now, d.n(3) > 0, d.n(3) == 0, streams)
	}
	if err == nil {
		l.e.t.r.tally.Resets++
	}
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
