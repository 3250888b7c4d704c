package tx

import (
	"cmp"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// sendQueue holds the messages of Enqueue that wait to be sent, and the one that is being cut into
// chunks, which may be of the Source. They go in the order in which they came, or a scheduler
// chooses (stream_queues.go).
type sendQueue struct {
	waiting          messageQueue   // those that go in the order in which they came
	streams          *streamQueues  // what is kept for each stream; nil if nothing is
	waitingOctets    int            // octets of user data in it
	current          currentMessage // the one being cut
	bufferedOctets   int            // octets that came through Enqueue and are not acknowledged
	earliestExpiryAt rawio.Time     // no message of the queue expires earlier
}

// currentMessage holds the message that is being cut into chunks, or that waits for room.
type currentMessage struct {
	msg       Message
	offset    int // octets already sent
	ssn       wire.SSN
	loaded    bool
	fromQueue bool // came through Enqueue
	isOwn     bool // or through EnqueueOwn
}

// beginMessage begins with msg.
func (l *currentMessage) beginMessage(queued bool) {
	l.loaded, l.offset, l.fromQueue, l.isOwn = true, 0, queued, false
}

// rest is how many octets of the message are yet to be sent.
func (l *currentMessage) rest() int { return l.msg.Len() - l.offset }

// isEmpty reports whether no message waits.
func (q *sendQueue) isEmpty() bool { return q.numWaiting() == 0 && !q.current.loaded }

// numWaiting is how many messages wait, without the one that is being cut.
func (q *sendQueue) numWaiting() int {
	n := q.waiting.length + q.numOwn()
	if q.streams != nil {
		n += q.streams.messages
	}
	return n
}

// add copies a message to the end of the queue.
func (q *sendQueue) add(m *Message) {
	if m.Expires != 0 {
		q.earliestExpiryAt = min(q.earliestExpiryAt, m.Expires)
	}
	n := m.Len()
	q.bufferedOctets += n
	if q.streams != nil && (q.hold(m, n) || q.addToStream(m, n)) {
		return
	}
	if q.isEmpty() {
		q.current.msg = *m // it is next: to queue it would look at memory that is needed for nothing else
		q.current.beginMessage(true)
		return
	}
	q.waiting.push(m)
	q.waitingOctets += n
}

// peek returns the message that is sent next, nil if none waits.
func (q *sendQueue) peek() *Message {
	switch {
	case q.streams != nil:
		if q.chooseNext() {
			return &q.current.msg
		}
		return nil
	case q.current.loaded:
		return &q.current.msg
	case q.waiting.length > 0:
		return q.waiting.at(0)
	}
	return nil
}

// pick begins with the next message, and says whether there is one.
func (q *sendQueue) pick() bool {
	if q.streams != nil {
		return q.chooseNext()
	}
	return q.waiting.length > 0 && q.pickFirst()
}

// pickFirst is pick where messages go in the order in which they came, and one waits.
func (q *sendQueue) pickFirst() bool {
	q.waiting.pop(&q.current.msg)
	q.waitingOctets -= q.current.msg.Len()
	q.current.beginMessage(true)
	return true
}

// unsentOctets is how many octets of user data of Enqueue are not sent yet.
func (q *sendQueue) unsentOctets() int {
	n := q.waitingOctets
	if q.current.loaded && q.current.fromQueue {
		n += q.current.rest()
	}
	return n
}

// failNext takes the message that would be sent next out of the queue, when the association has
// ended.
func (q *sendQueue) failNext() (FailedMessage, bool) {
	l := &q.current
	if !l.loaded && !q.pick() {
		q.bufferedOctets, q.waitingOctets = 0, 0
		return FailedMessage{}, false
	}
	f := l.failedMessage()
	*l = currentMessage{}
	return f, true
}

// failedMessage is the message as one that has failed.
func (l *currentMessage) failedMessage() FailedMessage {
	return FailedMessage{Stream: l.msg.Stream, Token: l.msg.Token, Sent: l.offset > 0, Pulled: !l.fromQueue,
		Policy: l.msg.Policy}
}

// Enqueue copies m, but not its Body, to the end of the send queue.
func (s *Sender) Enqueue(m *Message) error {
	n := m.Len()
	switch {
	case m.HeadLen > HeadCap:
		return ErrHeadLen
	case n == 0:
		return ErrEmptyMessage
	case int32(m.Stream) >= s.streams.count:
		return ErrStream
	case int(m.Path) > len(s.paths):
		return ErrPath
	case m.Policy != AbandonNever && s.partial() == nil:
		return ErrNoPartialReliability
	case n > cmp.Or(s.cfg.SendBuffer, FirstBuffer):
		return ErrMessageTooBig
	case m.Reserve && !s.HasReserve(m.Stream, n) || !m.Reserve && !s.HasRoom(n):
		return ErrSendBufferFull
	}
	s.queue.add(m)
	if m.Reserve {
		s.queue.streams.amounts.addPassed(m.Stream, n)
	}
	if m.Policy == AbandonForRoom {
		s.partial().forRoom++
	}
	s.burst.enqueuedSinceSack = true
	return nil
}

// Queued returns the octets of user data given to Enqueue and not sent yet.
func (s *Sender) Queued() int { return s.queue.unsentOctets() }

// messageQueue is a FIFO of messages in a ring that grows by doubling.
type messageQueue struct {
	ring   []Message
	head   int
	length int
}

func (q *messageQueue) at(i int) *Message { return &q.ring[(q.head+i)&(len(q.ring)-1)] }

func (q *messageQueue) push(m *Message) {
	if q.length == len(q.ring) {
		ring := make([]Message, max(8, 2*len(q.ring)))
		for i := range q.length {
			ring[i] = *q.at(i)
		}
		q.ring, q.head = ring, 0
	}
	q.length++
	*q.at(q.length - 1) = *m
}

func (q *messageQueue) pop(m *Message) {
	p := q.at(0)
	*m = *p
	*p = Message{} // let go of the user's memory
	if q.length--; q.length == 0 {
		q.head = 0 // which is in the processor's caches
	} else {
		q.head = (q.head + 1) & (len(q.ring) - 1)
	}
}

// removeWhere takes messages out, and returns how many octets they have.
func (q *messageQueue) removeWhere(isRemoved func(*Message) bool) (octets int) {
	kept := 0
	for i := range q.length {
		m := q.at(i)
		if isRemoved(m) {
			octets += m.Len()
			continue
		}
		if kept < i {
			*q.at(kept) = *m
		}
		kept++
	}
	for i := kept; i < q.length; i++ {
		*q.at(i) = Message{}
	}
	q.length = kept
	return octets
}
