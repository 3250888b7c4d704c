package ddpadapt

import "github.com/rddp-go/rddp/ddp/llp"

// EventKind says what an Event reports.
type EventKind uint8

const (
	// EventUp: the association is established and both sides speak DDP. Session is nil.
	EventUp EventKind = iota + 1
	// EventInitiate: the peer asks for a session. Answer with Session.Accept or Session.Reject.
	EventInitiate
	// EventAccepted: the peer accepted the session; Private is its private data.
	EventAccepted
	// EventRejected: the peer's upper layer rejected the session; Err is a *RejectedError. The
	// session is over.
	EventRejected
	// EventTerminated: Err is a *TerminatedError. If the peer terminated an accepted session, it
	// sends nothing more but still receives (half close). Answer with Session.Terminate when all is
	// sent, or with Session.Abort. In all other cases the session is over.
	EventTerminated
	// EventEnded: nothing of the session is outstanding in either direction; its stream is free.
	// It is a session's last event.
	EventEnded
	// EventDown: the association is gone; Err says why. There is one for each session that had not
	// ended, then one with a nil Session. With ErrRestarted the Mux goes on; otherwise it is dead.
	EventDown
)

var eventNames = [...]string{"none", "up", "initiate", "accepted", "rejected", "terminated", "ended", "down"}

// String returns a short name for the kind, for traces.
func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return "unknown"
}

// Event is one notification of a Mux.
type Event struct {
	Kind    EventKind
	Session *Session
	Private []byte     // EventInitiate, EventAccepted, EventRejected: the peer's private data; the receiver may keep it
	Setup   *llp.Setup // the same, in an enhanced session: the peer's connection data; nil in a plain one
	Err     error      // EventRejected, EventTerminated, EventDown
}

// eventQueue is a FIFO. It needs no bound of its own: a session has at most four events to report.
type eventQueue struct {
	items []Event
	head  int
}

// maxSpareEvents is what an empty queue keeps for reuse.
const maxSpareEvents = 64

func (q *eventQueue) push(e Event) { q.items = append(q.items, e) }

func (q *eventQueue) pop() (Event, bool) {
	if q.head == len(q.items) {
		if q.items, q.head = q.items[:0], 0; cap(q.items) > maxSpareEvents {
			q.items = nil
		}
		return Event{}, false
	}
	e := q.items[q.head]
	q.items[q.head] = Event{}
	q.head++
	return e, true
}

// Eventful says whether PollEvent has something to return, or to give back. It is for callers that
// ask often.
func (m *Mux) Eventful() bool { return len(m.events.items) > 0 || cap(m.events.items) > maxSpareEvents }

// closeSteps is the cost of the end of a DDP stream, in steps: its user gives back all that was
// posted.
const closeSteps = 16

// PollEvent returns the oldest event not yet returned. When a session ended with its association,
// PollEvent also closes its DDP stream. So a caller with many sessions can let others run in
// between.
func (m *Mux) PollEvent() (Event, bool) {
	e, ok := m.events.pop()
	if e.Kind == EventDown && e.Session != nil {
		m.workSteps += closeSteps
		e.Session.closeStream(e.Err)
	}
	return e, ok
}
