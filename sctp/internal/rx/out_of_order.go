package rx

import (
	"github.com/rddp-go/rddp/internal/sparse"
	"github.com/rddp-go/rddp/sctp/internal/tsnset"
	"github.com/rddp-go/rddp/sctp/wire"
)

// streamOrder is the place of a message in its stream. Its low bits are the SSN, and it counts on
// where that wraps. If the program does not read, more messages may wait than there are SSNs.
type streamOrder uint32

// isBefore reports whether o is delivered before p.
func (o streamOrder) isBefore(p streamOrder) bool { return int32(o-p) < 0 }

// streamQueue describes the messages of a stream that wait for their SSN, while any do.
type streamQueue struct {
	nextOrder   streamOrder // of the next to deliver
	latestOrder streamOrder // of the one with the highest TSN,
	latestTSN   wire.TSN    // which is this
	count       int32       // how many wait
}

// resetNext empties the queue of a stream that goes on with next. All TSNs up to cum have come.
func (q *streamQueue) resetNext(next wire.SSN, cum wire.TSN) {
	*q = streamQueue{nextOrder: streamOrder(next), latestOrder: streamOrder(next) - 1, latestTSN: cum}
}

// assignOrder gives a message its order. All TSNs up to cum, which is before its own, have come.
//
// SSNs order two messages only if they are less than 2^15 apart. A peer may have 2^16-1 messages of
// a stream outstanding (RFC 9260 sections 1.6 and 6.1). So TSNs decide, which a sender gives in the
// order of the stream: d messages farther on there are d TSNs at least. A message with fewer was
// given its TSN out of turn, and is the near one on the other side.
func (q *streamQueue) assignOrder(m *Message, cum wire.TSN) {
	q.limitLatestTSN(cum)
	ahead, behind := streamOrder(m.SSN-wire.SSN(q.latestOrder)), streamOrder(wire.SSN(q.latestOrder)-m.SSN)
	room := streamOrder(m.firstTSN - q.latestTSN) // for messages in between
	forward := room >= ahead || ahead < numSSNs/2
	if !q.latestTSN.Less(m.firstTSN) {
		forward = -room < behind && behind >= numSSNs/2
	}
	if m.order = q.latestOrder - behind; forward {
		m.order = q.latestOrder + ahead
	}
	if m.order.isBefore(q.nextOrder) { // a delivered SSN has its turn again after a wrap
		m.order = q.nextOrder + streamOrder(m.SSN-wire.SSN(q.nextOrder))
	}
	if q.latestOrder.isBefore(m.order) && q.latestTSN.Less(m.firstTSN) {
		q.latestOrder, q.latestTSN = m.order, m.firstTSN
	}
}

// limitLatestTSN makes the TSN of the latest message cum if it is before that: nothing of the
// stream has come since.
func (q *streamQueue) limitLatestTSN(cum wire.TSN) {
	if uint32(q.latestTSN-cum) >= tsnset.MaxWindow {
		q.latestTSN = cum
	}
}

// numSSNs is how many SSNs there are.
const numSSNs = 1 << 16

// outOfOrderMessages finds messages that wait for their SSN, by their order and their stream. It is
// a digital search tree: a message lies on the way that the bits of its key describe, the lowest of
// the SSN first. No way is longer than a key has bits, whichever keys a peer chooses. The links are
// part of the messages.
type outOfOrderMessages struct {
	root   *Message
	count  int
	queues sparse.Table[streamQueue] // of the streams that have messages here
}

// orderKey puts the bits above the SSN last: most streams never use them.
func orderKey(id wire.StreamID, o streamOrder) uint64 {
	return uint64(o>>16)<<32 | uint64(id)<<16 | uint64(o&0xffff)
}

func (m *Message) treeKey() uint64 { return orderKey(m.Stream, m.order) }

// findLink returns the link to the message with key k, or where it would be, and how many steps
// that took.
func (w *outOfOrderMessages) findLink(k uint64) (link **Message, steps int) {
	link = &w.root
	for bit := k; *link != nil && (*link).treeKey() != k; bit >>= 1 {
		link = &(*link).children[bit&1]
		steps++
	}
	return link, steps + 1
}

// removeLink removes the message that link leads to. One below takes its place.
func (w *outOfOrderMessages) removeLink(link **Message) (steps int) {
	m, last := *link, link
	for {
		steps++
		switch d := *last; {
		case d.children[0] != nil:
			last = &d.children[0]
		case d.children[1] != nil:
			last = &d.children[1]
		default:
			*last = nil
			if d != m {
				d.children = m.children
				*link = d
			}
			m.children = [2]*Message{}
			w.count--
			return steps
		}
	}
}

// anyLink returns the link of any message, nil when there is none.
func (w *outOfOrderMessages) anyLink() **Message {
	if w.root == nil {
		return nil
	}
	return &w.root
}

// forEach goes through all of them.
func (w *outOfOrderMessages) forEach(f func(*Message)) {
	var walk func(*Message)
	walk = func(m *Message) {
		if m != nil {
			f(m)
			walk(m.children[0])
			walk(m.children[1])
		}
	}
	walk(w.root)
}

// queueOf is that of a stream of which messages wait, or are about to.
func (r *Reassembly) queueOf(id wire.StreamID) *streamQueue {
	return r.outOfOrder.queues.Use(uint16(id))
}

// queueOutOfOrder lets m wait for its SSN, unless another does.
func (r *Reassembly) queueOutOfOrder(m *Message, s *streamState) bool {
	cum := r.byLastTSN.baseTSN
	if m.firstTSN.LessEq(cum) { // it has moved that on
		cum = m.firstTSN - 1
	}
	q := r.queueOf(m.Stream)
	if !s.hasWaiting {
		q.resetNext(s.nextSSN, cum)
	}
	q.assignOrder(m, cum)
	if r.ext != nil {
		if !r.addWaiting(m, q) {
			return false
		}
	} else {
		link, steps := r.outOfOrder.findLink(m.treeKey())
		*r.workSteps += uint64(steps)
		if *link != nil {
			return false
		}
		*link = m
	}
	r.outOfOrder.count++
	q.count++
	s.hasWaiting = true
	return true
}

// takeOutOfOrder takes out the message that waits with key k, if there is one.
func (r *Reassembly) takeOutOfOrder(k uint64, s *streamState) *Message {
	if !s.hasWaiting {
		return nil
	}
	link, steps := r.outOfOrder.findLink(k)
	m := *link
	if m != nil {
		q := r.queueOf(m.Stream)
		q.count--
		s.hasWaiting = q.count > 0
		steps += r.outOfOrder.removeLink(link)
	}
	*r.workSteps += uint64(steps)
	return m
}
