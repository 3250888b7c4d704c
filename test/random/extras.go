package random

import (
	"slices"

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

// resetStreams asks for a change of streams now and then, most of the time without waiting for the
// answer to the one before. Whether it is done is for the peer to say: messages arrive as ever.
func (l *assocSide) resetStreams(d *drawer) {
	if !l.a.Extensions().Has(assoc.StreamReconfiguration) || d.n(30) > 0 {
		return
	}
	var r assoc.StreamRequest
	switch d.n(4) {
	case 0:
		r.AddOut, r.AddIn = d.n(3), d.n(3)
	case 1:
		r.ResetTSNs = true
	default:
		if d.n(3) > 0 {
			r.Streams = append(r.Streams, wire.StreamID(d.n(l.a.OutStreams())))
		}
		r.ResetOut, r.ResetIn = d.n(3) > 0, d.n(3) == 0
	}
	now := l.e.h.node.Time()
	for range 1 + d.n(2)*d.n(3) {
		if l.a.StreamResetUnderWay() && d.n(4) == 0 {
			break
		}
		id, err := l.a.StartInTurn(now, r)
		if err != nil {
			continue
		}
		l.e.t.r.tally.Resets++
		if l.out.noteAsked(id, r); d.n(8) == 0 {
			l.a.StopWaiting(now, id)
		}
		if len(r.Streams) == 1 {
			r.Streams = []wire.StreamID{wire.StreamID(d.n(l.a.OutStreams()))}
		}
	}
}

// renumbering is a reset that was asked for: if it is performed, a stream's ordered messages from one
// on have SSNs from 0 on.
type renumbering struct {
	request   assoc.StreamRequestID
	stream    wire.StreamID
	from      int // how many ordered messages were said in the stream before
	performed bool
}

// noteAsked notes what a request would do to streams that are in use.
func (l *incarnation) noteAsked(id assoc.StreamRequestID, r assoc.StreamRequest) {
	for stream, n := range l.ordered {
		if r.ResetTSNs || r.ResetOut && (len(r.Streams) == 0 || slices.Contains(r.Streams, stream)) {
			l.renumberings = append(l.renumberings, renumbering{request: id, stream: stream, from: n})
		}
	}
}

// notePerformed notes that a request has ended well.
func (l *incarnation) notePerformed(ev assoc.Event) {
	if ev.Err != nil || ev.Change.Request == 0 || ev.Change.Incoming {
		return
	}
	for i := range l.renumberings {
		if x := &l.renumberings[i]; x.request == ev.Change.Request {
			x.performed = true
		}
	}
}

// highestSSN is the highest SSN that an ordered message can have.
func (l *incarnation) highestSSN(m *message) int {
	highest := m.ordinal
	for _, x := range l.renumberings {
		if x.performed && x.stream == m.stream && x.from <= m.ordinal {
			highest = min(highest, m.ordinal-x.from)
		}
	}
	return highest
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
