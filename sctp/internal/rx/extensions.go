package rx

import (
	"unsafe"

	"github.com/rddp-go/rddp/internal/sparse"
	"github.com/rddp-go/rddp/sctp/wire"
)

// extensions is what a Reassembly has beside if the peer may give messages up (RFC 3758), or sends
// I-DATA (RFC 8260). What waits in a stream may then be delivered before its SSN is next. So it has
// to be found in order, and lies in trees of its own instead of Reassembly.outOfOrder.
type extensions struct {
	mayAbandon   bool // see Config.MayAbandon
	waiting      sparse.Table[orderedQueue]
	abandoned    uint64        // messages that the peer has given up after some of it had come
	interleaving *interleaving // nil if the peer sends DATA
}

// orderedQueue is the messages of a stream that wait for their SSN.
type orderedQueue struct {
	tree   orderTree
	skipTo streamOrder // what is before it is not waited for any more
}

func newExtensions(cfg Config) *extensions {
	if !cfg.MayAbandon && !cfg.Interleaved {
		return nil
	}
	x := &extensions{mayAbandon: cfg.MayAbandon}
	if cfg.Interleaved {
		x.interleaving = new(interleaving)
	}
	return x
}

// hasOpen says whether messages of I-DATA are in assembly.
func (x *extensions) hasOpen() bool {
	return x != nil && x.interleaving != nil && x.interleaving.numOpen > 0
}

// isAtRest says whether there is nothing in them but what a stream goes on from.
func (x *extensions) isAtRest() bool {
	return x == nil || x.abandoned == 0 && (x.interleaving == nil || x.interleaving.numOpen == 0 &&
		x.interleaving.numPopped == 0)
}

// mayAbandon says whether the peer may give messages up.
func (r *Reassembly) mayAbandon() bool { return r.ext != nil && r.ext.mayAbandon }

// addWaiting adds a message with an order to the queue of its stream, unless there is one with that
// order.
func (r *Reassembly) addWaiting(m *Message, q *streamQueue) bool {
	w := r.ext.waiting.Use(uint16(m.Stream))
	if q.count == 0 {
		w.skipTo = q.nextOrder
	}
	*r.workSteps += 2 * w.tree.steps()
	return w.tree.insert(m, q.nextOrder)
}

// takeWaiting takes a message out of the queue of its stream.
func (r *Reassembly) takeWaiting(m *Message) {
	s, q, w := r.stateOfStream(m.Stream), r.queueOf(m.Stream), r.ext.waiting.Use(uint16(m.Stream))
	*r.workSteps += w.tree.steps()
	w.tree.remove(m, q.nextOrder)
	r.outOfOrder.count--
	q.count--
	if s.hasWaiting = q.count > 0; !s.hasWaiting && q.nextOrder.isBefore(w.skipTo) {
		q.nextOrder, s.nextSSN = w.skipTo, wire.SSN(w.skipTo)
	}
}

// takeFirstWaiting is takeNext with extensions.
func (r *Reassembly) takeFirstWaiting(id wire.StreamID, s *streamState, q *streamQueue) *Message {
	if !s.hasWaiting {
		return nil
	}
	w := r.ext.waiting.Use(uint16(id))
	m := w.tree.first()
	*r.workSteps += w.tree.steps()
	next := q.nextOrder
	if next.isBefore(w.skipTo) {
		if next = w.skipTo; m.order.isBefore(next) {
			next = m.order
		}
	}
	if m.order != next {
		m = nil
	} else {
		r.takeWaiting(m)
		if next++; !s.hasWaiting && next.isBefore(w.skipTo) {
			next = w.skipTo
		}
	}
	if q.nextOrder, s.nextSSN = next, wire.SSN(next); w.skipTo.isBefore(next) {
		w.skipTo = next
	}
	if r.interleaves() {
		if n := r.ext.interleaving.mids.Use(uint16(id)); streamOrder(n.ordered).isBefore(next) {
			n.ordered = wire.MID(next)
		}
	}
	return m
}

// skipThrough stops waiting for messages of a stream up to an SSN. The peer has given up the
// message with that SSN, which had a TSN up to t. All TSNs up to cum had come before. What waits
// becomes due.
func (r *Reassembly) skipThrough(id wire.StreamID, ssn wire.SSN, t, cum wire.TSN) {
	if int(id) >= r.inStreams {
		return
	}
	s := r.stateOfStream(id)
	if !s.hasWaiting {
		var q streamQueue
		q.resetNext(s.nextSSN, cum)
		if o := q.skippedOrder(ssn, t, cum); !o.isBefore(q.nextOrder) {
			s.nextSSN = ssn + 1
		}
		return
	}
	q, w := r.queueOf(id), r.ext.waiting.Use(uint16(id))
	o := q.skippedOrder(ssn, t, cum)
	if o.isBefore(q.nextOrder) || o.isBefore(w.skipTo) {
		return
	}
	w.skipTo = o + 1
	r.markDue(id)
}

// markDue notes that messages of a stream may be delivered.
func (r *Reassembly) markDue(id wire.StreamID) {
	if s := r.stateOfStream(id); !s.isDue {
		s.isDue = true
		r.streams.due = append(r.streams.due, id)
	}
}

// skippedOrder returns the order of a message that the peer has given up. Its TSN is up to t, and
// all up to cum had come before. As in assignOrder, TSNs decide where SSNs do not: d messages
// farther on there are d TSNs at least.
func (q *streamQueue) skippedOrder(ssn wire.SSN, t, cum wire.TSN) streamOrder {
	q.limitLatestTSN(cum)
	ahead, behind := streamOrder(ssn-wire.SSN(q.latestOrder)), streamOrder(wire.SSN(q.latestOrder)-ssn)
	room := streamOrder(t - q.latestTSN)
	if !q.latestTSN.Less(t) || room < ahead || room >= numSSNs/2 && ahead >= numSSNs/2 {
		return q.latestOrder - behind
	}
	q.latestOrder, q.latestTSN = q.latestOrder+ahead, t
	return q.latestOrder
}

// closeExtensions gives all messages back that wait, or are in assembly.
func (r *Reassembly) closeExtensions() {
	if r.interleaves() {
		r.closeInterleaving()
	}
	for _, w := range r.ext.waiting.All {
		w.tree.forEach(func(m *Message) {
			if m.isPlaceholder {
				r.freePlaceholder(m)
			} else {
				r.Release(m)
			}
		})
	}
	r.ext.waiting = sparse.Table[orderedQueue]{}
}

// memorySize is the octets of memory behind the extensions.
func (x *extensions) memorySize() int {
	if x == nil {
		return 0
	}
	return int(unsafe.Sizeof(*x)) + x.waiting.Held() + x.interleaving.memorySize()
}
