package mpa

import "github.com/rddp-go/rddp/ddp/llp"

// EventKind says what an Event reports.
type EventKind uint8

const (
	// EventRequest: the peer asks for a session. Answer with Conn.Accept or Conn.Reject.
	EventRequest EventKind = iota + 1
	// EventAccepted: the peer accepted; Private is its private data.
	EventAccepted
	// EventRejected: the peer's upper layer rejected; Err is an *llp.RejectedError. MPA was exited,
	// and the TCP connection is the upper layer's.
	EventRejected
	// EventLeft: the Reply that rejects is written. MPA was exited, and the TCP connection is the
	// upper layer's.
	EventLeft
	// EventEnded: the connection has ended, and refers to no memory of the user any more. Err says
	// why. The TCP connection is to be closed.
	EventEnded
)

var eventNames = [...]string{"none", "request", "accepted", "rejected", "left", "ended"}

// String returns a short name for the kind, for traces.
func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return "unknown"
}

// Event is one notification of a Conn.
type Event struct {
	Kind    EventKind
	Private []byte     // EventRequest, EventAccepted, EventRejected: the peer's private data; the receiver may keep it
	Setup   *llp.Setup // the same, where the frame is enhanced: the peer's connection data
	Err     error      // EventRejected, EventEnded
}

// maxEvents is the most that a connection has to report.
const maxEvents = 2

// eventQueue is a FIFO of fixed size.
type eventQueue struct {
	items [maxEvents]Event
	n     int
}

func (q *eventQueue) push(e Event) {
	q.items[q.n] = e
	q.n++
}

// PollEvent returns the oldest event not yet returned.
func (c *Conn) PollEvent() (Event, bool) {
	q := &c.events
	if q.n == 0 {
		return Event{}, false
	}
	e := q.items[0]
	q.n--
	copy(q.items[:], q.items[1:])
	q.items[q.n] = Event{}
	return e, true
}
