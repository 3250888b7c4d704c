package rx

import (
	"github.com/rddp-go/rddp/internal/sparse"
	"github.com/rddp-go/rddp/sctp/wire"
)

// streamStates is what is known of the incoming streams that were used.
type streamStates struct {
	due             []wire.StreamID // streams whose next message may be in Reassembly.outOfOrder
	table           sparse.Table[streamState]
	numPlaceholders int // messages that MarkDelivered has put in the place of others
}

// streamState is an incoming stream.
type streamState struct {
	nextSSN    wire.SSN // the next to deliver
	hasWaiting bool     // complete messages beyond it wait, see streamQueue
	isDue      bool     // some of them may be delivered, see streamStates.due
}

func (r *Reassembly) stateOfStream(id wire.StreamID) *streamState {
	return r.streams.table.Use(uint16(id))
}

// deliverComplete delivers a complete message, or queues it until its SSN is next.
func (r *Reassembly) deliverComplete(m *Message) error {
	if m.firstTSN == r.byLastTSN.baseTSN+1 {
		r.byLastTSN.baseTSN = m.lastTSN
	}
	if m.Unordered {
		r.pushReady(m)
		return nil
	}
	s := r.stateOfStream(m.Stream)
	if m.SSN == s.nextSSN && !s.isDue {
		r.pushReady(m)
		r.advanceStream(m.Stream, s)
		return nil
	}
	if !r.queueOutOfOrder(m, s) {
		err := &ViolationError{m.firstTSN, "two messages of a stream with the same SSN"}
		r.Release(m)
		return err
	}
	r.byLastTSN.put(m)
	return nil
}

// advanceStream counts the next SSN as delivered. Messages that have waited for it are due.
func (r *Reassembly) advanceStream(id wire.StreamID, s *streamState) {
	if s.nextSSN++; s.hasWaiting {
		r.queueOf(id).nextOrder++
		s.isDue = true
		r.streams.due = append(r.streams.due, id)
	}
}

// deliverBatchSize is how many out-of-order messages are looked at when nothing else is ready.
// Thousands can wait for one chunk: they become ready as they are read.
const deliverBatchSize = 32

// deliverDue makes some of the messages ready that are due.
func (r *Reassembly) deliverDue() {
	for range deliverBatchSize {
		if len(r.streams.due) == 0 {
			return
		}
		id := r.streams.due[len(r.streams.due)-1]
		s := r.stateOfStream(id)
		q := r.queueOf(id)
		m := r.takeNext(id, s, q)
		if m == nil {
			s.isDue = false
			r.streams.due = r.streams.due[:len(r.streams.due)-1]
			if r.interleaves() {
				r.noteTurn(id)
			}
			continue
		}
		if m.isPlaceholder {
			r.freePlaceholder(m)
			continue
		}
		if r.interleaves() {
			r.pushReadyInStream(m)
			continue
		}
		if r.byLastTSN.messageEndingAt(m.lastTSN) == m {
			r.byLastTSN.take(m.lastTSN)
		}
		r.pushReady(m)
	}
}

// takeNext takes out the next message of a stream if it waits, and counts it as delivered.
func (r *Reassembly) takeNext(id wire.StreamID, s *streamState, q *streamQueue) *Message {
	if r.ext != nil {
		return r.takeFirstWaiting(id, s, q)
	}
	m := r.takeOutOfOrder(orderKey(id, q.nextOrder), s)
	if m != nil {
		q.nextOrder++
		s.nextSSN++
	}
	return m
}

// Pop returns the next message or piece in delivery order. It counts against the window until
// Release.
func (r *Reassembly) Pop() (*Message, bool) {
	m := r.ready.pop()
	for m == nil {
		if len(r.streams.due) == 0 {
			return nil, false
		}
		r.deliverDue()
		m = r.ready.pop()
	}
	if r.interleaves() {
		r.notePoppedInterleaved(m)
	} else {
		r.partial.notePopped(m)
	}
	return m, true
}

// Release takes a message back that Pop has returned.
func (r *Reassembly) Release(m *Message) {
	r.heldOctets -= m.Size
	r.store.dropMessage(m)
}

// MarkDelivered counts SSN n of a stream as delivered: its message, of TSN t, was placed.
func (r *Reassembly) MarkDelivered(id wire.StreamID, n wire.SSN, t wire.TSN) {
	if int(id) >= r.inStreams {
		return
	}
	s := r.stateOfStream(id)
	if n == s.nextSSN && !s.isDue {
		r.advanceStream(id, s)
		return
	}
	m := r.store.newMessage()
	m.Stream, m.SSN, m.firstTSN, m.isPlaceholder = id, n, t, true
	if !r.queueOutOfOrder(m, s) {
		r.store.recycleMessage(m)
		return
	}
	r.streams.numPlaceholders++
}

// maxPlaceholders bounds the messages that count as delivered and wait for an SSN before theirs.
// They cost the peer no window.
const maxPlaceholders = 1 << 14

// isBlockedByMissingSSN says whether a chunk would have to wait for its SSN behind too many others.
// The chunk that they wait for never has to.
func (r *Reassembly) isBlockedByMissingSSN(d wire.Data) bool {
	return r.streams.numPlaceholders >= maxPlaceholders && r.waitsForSSN(d)
}

func (r *Reassembly) waitsForSSN(d wire.Data) bool {
	if d.U() || int(d.Stream()) >= r.inStreams {
		return false
	}
	s := r.stateOfStream(d.Stream())
	return s.isDue || d.SSN() != s.nextSSN
}

// freePlaceholder takes back what MarkDelivered has put in the place of a message.
func (r *Reassembly) freePlaceholder(m *Message) {
	r.streams.numPlaceholders--
	r.store.recycleMessage(m)
}
