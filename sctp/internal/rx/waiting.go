package rx

import (
	"github.com/rddp-go/rddp/sctp/internal/tsnset"
	"github.com/rddp-go/rddp/sctp/wire"
)

// order is the place of a message in its stream. It ends in the SSN, and goes on where that
// begins anew: while nobody reads, more messages may wait than there are SSNs.
type order uint32

// before reports whether o is delivered before p.
func (o order) before(p order) bool { return int32(o-p) < 0 }

// streamQueue is what is known of the messages of a stream that wait for their SSN, while any do.
type streamQueue struct {
	next   order    // of the next to deliver
	latest order    // of the one with the highest TSN,
	tsn    wire.TSN // which is this
	n      int32    // how many wait
}

// begin empties the queue of a stream that goes on with next.
func (q *streamQueue) begin(next wire.SSN) {
	*q = streamQueue{next: order(next), latest: order(next) - 1}
}

// place gives a message its order. All TSNs up to cum, which is before its own, have come.
//
// SSNs tell which of two messages comes first only where they are less than 2^15 apart, and a
// peer may have 2^16-1 messages of a stream outstanding (RFC 9260 sections 1.6 and 6.1). So TSNs,
// which a sender gives in the order of the stream, decide: d messages farther on there are d TSNs
// at least. What has fewer was given its TSN out of turn, and is the near one on the other side.
func (q *streamQueue) place(m *Message, cum wire.TSN) {
	if uint32(q.tsn-cum) >= tsnset.MaxWindow {
		q.tsn = cum // nothing of the stream has come since
	}
	ahead, behind := order(m.SSN-wire.SSN(q.latest)), order(wire.SSN(q.latest)-m.SSN)
	room := order(m.first - q.tsn) // for messages in between
	forward := room >= ahead || ahead < ssns/2
	if !q.tsn.Less(m.first) {
		forward = -room < behind && behind >= ssns/2
	}
	if m.order = q.latest - behind; forward {
		m.order = q.latest + ahead
	}
	if m.order.before(q.next) { // an SSN that was delivered has its turn again when they have gone round
		m.order = q.next + order(m.SSN-wire.SSN(q.next))
	}
	if q.latest.before(m.order) && q.tsn.Less(m.first) {
		q.latest, q.tsn = m.order, m.first
	}
}

// ssns is how many SSNs there are.
const ssns = 1 << 16

// waiting finds messages that wait for their SSN, by their order and their stream: a digital
// search tree, in which a message lies somewhere on the way that the bits of its key describe,
// the lowest of the SSN first. No way is longer than a key has bits, whichever keys a peer
// chooses; the links are part of the messages.
type waiting struct {
	root *Message
	n    int
}

// key puts what is above the SSN last: most streams never have it.
func key(id wire.StreamID, o order) uint64 {
	return uint64(o>>16)<<32 | uint64(id)<<16 | uint64(o&0xffff)
}

func (m *Message) key() uint64 { return key(m.Stream, m.order) }

// find returns where the message with key k is linked to, or would be, and how many steps that
// took.
func (w *waiting) find(k uint64) (link **Message, steps int) {
	link = &w.root
	for bit := k; *link != nil && (*link).key() != k; bit >>= 1 {
		link = &(*link).kids[bit&1]
		steps++
	}
	return link, steps + 1
}

// unlink removes the message that link leads to. One below takes its place.
func (w *waiting) unlink(link **Message) (steps int) {
	m, last := *link, link
	for {
		steps++
		switch d := *last; {
		case d.kids[0] != nil:
			last = &d.kids[0]
		case d.kids[1] != nil:
			last = &d.kids[1]
		default:
			*last = nil
			if d != m {
				d.kids = m.kids
				*link = d
			}
			m.kids = [2]*Message{}
			w.n--
			return steps
		}
	}
}

// any returns the link of one of the messages, nil when there is none.
func (w *waiting) any() **Message {
	if w.root == nil {
		return nil
	}
	return &w.root
}

// each goes through all of them.
func (w *waiting) each(f func(*Message)) {
	var walk func(*Message)
	walk = func(m *Message) {
		if m != nil {
			f(m)
			walk(m.kids[0])
			walk(m.kids[1])
		}
	}
	walk(w.root)
}
