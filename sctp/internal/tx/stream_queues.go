package tx

import (
	"cmp"
	"iter"
	"slices"
	"unsafe"

	"github.com/rddp-go/rddp/internal/invariant"
	"github.com/rddp-go/rddp/internal/sparse"
	"github.com/rddp-go/rddp/sctp/sched"
	"github.com/rddp-go/rddp/sctp/wire"
)

// streamQueues is a queue for each stream, and the scheduler that chooses among them (RFC 8260
// section 3). Without it the messages of all streams go in the order in which they came.
//
//	stream 1:  begun   waiting waiting          \
//	stream 4:          waiting                   > scheduler > sendQueue.current > chunks
//	stream 9:  begun   waiting waiting waiting  /
//
// One message of a stream is begun at a time. With I-DATA another stream may send before it is
// complete (RFC 8260 section 2.2.2). It then waits in its queue.
type streamQueues struct {
	scheduler   sched.Scheduler // nil: messages go in the order in which they came
	values      map[uint16]uint16
	interleaves bool           // I-DATA is negotiated
	queues      []*streamQueue // of streams that were in use, in the order of their ids
	messages    int            // that wait in them
	active      int            // streams that the scheduler knows as active
	arrivals    uint32         // messages that came, for the order among streams; it wraps
	bundled     bool           // the packet that is filled has a chunk already
	fault       *invariant.Error

	ahead   aheadBudget                  // what may be sent beyond cwnd
	numbers sparse.Table[messageNumbers] // with I-DATA
	amounts *streamAmounts               // what each has buffered; nil until somebody asks
	own     messageQueue                 // the association's own, which go first
	hadOwn  bool                         // there were some

	onHold   []*heldMessages // those of streams that are being reset, the oldest Hold first; usually nil
	lastHold Hold
}

// streamQueue is the messages of a stream that wait.
type streamQueue struct {
	stream   wire.StreamID
	isActive bool // so the scheduler was told; it also is while its message is in sendQueue.current
	begun    currentMessage
	waiting  messageQueue
}

// isEmpty reports whether none waits.
func (z *streamQueue) isEmpty() bool { return !z.begun.loaded && z.waiting.length == 0 }

// find returns where the queue of a stream is, or would be.
func (y *streamQueues) find(id wire.StreamID) (at int, found bool) {
	return slices.BinarySearchFunc(y.queues, id, func(z *streamQueue, id wire.StreamID) int {
		return cmp.Compare(z.stream, id)
	})
}

// of returns the queue of a stream, and makes it if there is none.
func (y *streamQueues) of(id wire.StreamID) *streamQueue {
	at, found := y.find(id)
	if !found {
		y.queues = slices.Insert(y.queues, at, &streamQueue{stream: id})
	}
	return y.queues[at]
}

// activate tells the scheduler of a stream that has something to send.
func (y *streamQueues) activate(z *streamQueue) {
	if !z.isActive {
		z.isActive = true
		y.active++
		y.scheduler.Activate(uint16(z.stream))
	}
}

// deactivate tells the scheduler of a stream that has nothing more to send.
func (y *streamQueues) deactivate(z *streamQueue) {
	if z.isActive {
		z.isActive = false
		y.active--
		y.scheduler.Deactivate(uint16(z.stream))
	}
}

// perStream returns what is kept for each stream, and makes it if there is none.
func (s *Sender) perStream() *streamQueues {
	if s.queue.streams == nil {
		s.queue.streams = new(streamQueues)
	}
	return s.queue.streams
}

// addToStream counts a message of n octets for its stream. It says whether the message goes to the
// queue of the stream, which it does under a scheduler.
func (q *sendQueue) addToStream(m *Message, n int) bool {
	y := q.streams
	if y.amounts != nil {
		y.amounts.add(m.Stream, n)
	}
	if y.scheduler == nil {
		return false
	}
	y.push(m)
	q.waitingOctets += n
	return true
}

// push adds a message to the end of its stream's queue.
func (y *streamQueues) push(m *Message) {
	z := y.of(m.Stream)
	z.waiting.push(m)
	y.arrivals++
	z.waiting.at(z.waiting.length - 1).arrival = y.arrivals
	y.messages++
	y.activate(z)
}

// SetScheduler has the streams send in the order that a scheduler chooses, from the next chunk on.
// nil stands for the order in which messages came. Values of streams stay.
func (s *Sender) SetScheduler(scheduler sched.Scheduler) {
	q := &s.queue
	y := q.streams
	if y == nil && scheduler == nil {
		return
	}
	y = s.perStream()
	s.trackStreams()
	waiting := q.takeWaiting()
	for _, z := range y.queues {
		if z.isActive = false; z.begun.loaded {
			y.messages++
		}
	}
	if y.active, y.scheduler = 0, scheduler; scheduler == nil {
		for i := range waiting {
			q.waiting.push(&waiting[i])
		}
		return
	}
	for id, value := range y.values {
		scheduler.SetValue(id, value)
	}
	for _, z := range y.queues {
		if z.begun.loaded {
			y.activate(z)
		}
	}
	if l := &q.current; l.loaded && l.fromQueue && !l.isOwn {
		y.activate(y.of(l.msg.Stream))
	}
	for i := range waiting {
		y.push(&waiting[i])
	}
}

// SetStreamValue sets the value of a stream, whose meaning is the scheduler's.
func (s *Sender) SetStreamValue(id wire.StreamID, value uint16) {
	y := s.perStream()
	if y.values == nil {
		y.values = map[uint16]uint16{}
	}
	if y.values[uint16(id)] = value; y.scheduler != nil {
		y.scheduler.SetValue(uint16(id), value)
	}
}

// StreamValue returns the value of a stream.
func (s *Sender) StreamValue(id wire.StreamID) uint16 {
	if s.queue.streams == nil {
		return 0
	}
	return s.queue.streams.values[uint16(id)]
}

// takeWaiting takes all messages out of the queues that have not begun, and returns them in the
// order in which they came.
func (q *sendQueue) takeWaiting() (all []Message) {
	y := q.streams
	for ; q.waiting.length > 0; y.arrivals++ {
		all = append(all, Message{})
		m := &all[len(all)-1]
		q.waiting.pop(m)
		m.arrival = y.arrivals
	}
	for _, z := range y.queues {
		for z.waiting.length > 0 {
			all = append(all, Message{})
			z.waiting.pop(&all[len(all)-1])
		}
	}
	y.messages = 0
	slices.SortFunc(all, func(a, b Message) int { return int(int32(a.arrival - b.arrival)) })
	return all
}

// chooseNext puts the message in the slot whose chunk goes next, and says whether there is one.
func (q *sendQueue) chooseNext() bool {
	y, l := q.streams, &q.current
	if l.loaded && (!l.fromQueue || l.isOwn || l.offset > 0 && !y.interleaves || y.scheduler == nil) {
		return true // it is finished first (RFC 9260 section 6.9)
	}
	if q.numOwn() > 0 {
		if l.loaded {
			q.parkCurrent()
		}
		return q.pickOwn()
	}
	if y.scheduler == nil {
		return q.resumeBegun() || q.waiting.length > 0 && q.pickFirst()
	}
	if y.active == 0 || y.fault != nil {
		return false
	}
	id, ok := y.scheduler.Next(y.bundled)
	if !ok {
		return false
	}
	if l.loaded {
		if l.msg.Stream == wire.StreamID(id) {
			return true
		}
		q.parkCurrent()
	}
	return q.loadFrom(wire.StreamID(id))
}

// resumeBegun goes on with the oldest of the messages that a scheduler had begun. It has none any
// more: they go first.
func (q *sendQueue) resumeBegun() bool {
	var oldest *streamQueue
	for _, z := range q.streams.queues {
		if z.begun.loaded && (oldest == nil || int32(z.begun.msg.arrival-oldest.begun.msg.arrival) < 0) {
			oldest = z
		}
	}
	return oldest != nil && q.loadFrom(oldest.stream)
}

// parkCurrent puts the message in the slot back to the front of its stream's queue.
func (q *sendQueue) parkCurrent() {
	z := q.streams.of(q.current.msg.Stream)
	z.begun = q.current
	q.waitingOctets += q.current.rest()
	q.streams.messages++
	q.current = currentMessage{}
}

// loadFrom loads the slot from the queue of a stream.
func (q *sendQueue) loadFrom(id wire.StreamID) bool {
	y := q.streams
	at, found := y.find(id)
	if !found || y.queues[at].isEmpty() {
		y.fault = invariant.Violation("tx.sendQueue.loadFrom",
			"the scheduler has chosen stream %d, which has nothing to send; %d streams have", id, y.active)
		return false
	}
	z := y.queues[at]
	y.messages--
	if z.begun.loaded {
		q.current, z.begun = z.begun, currentMessage{}
	} else {
		z.waiting.pop(&q.current.msg)
		q.current.beginMessage(true)
	}
	q.waitingOctets -= q.current.rest()
	return true
}

// noteSent tells the scheduler that the message in the slot has sent octets. With last it is
// complete.
func (q *sendQueue) noteSent(stream wire.StreamID, octets int, last bool) {
	y := q.streams
	if y.scheduler == nil {
		return
	}
	y.scheduler.Sent(uint16(stream), octets, last)
	if last {
		y.deactivateIfEmpty(stream)
	}
}

// deactivateIfEmpty tells the scheduler of a stream that may have nothing more to send. Its message
// is not in the slot.
func (y *streamQueues) deactivateIfEmpty(stream wire.StreamID) {
	if z := y.of(stream); z.isEmpty() {
		y.deactivate(z)
	}
}

// held returns the octets of memory behind the queues.
func (y *streamQueues) held() int {
	if y == nil {
		return 0
	}
	n := int(unsafe.Sizeof(*y)) + cap(y.queues)*int(unsafe.Sizeof(y.queues[0])) + y.numbers.Held() + y.amounts.held()
	for _, h := range y.onHold {
		n += int(unsafe.Sizeof(h)) + h.memory()
	}
	for _, z := range y.queues {
		n += int(unsafe.Sizeof(*z)) + len(z.waiting.ring)*int(unsafe.Sizeof(Message{}))
	}
	return n
}

// setBundled says whether the packet that is filled has a chunk already.
func (q *sendQueue) setBundled(is bool) {
	if q.streams != nil {
		q.streams.bundled = is
	}
}

// hasChoice reports whether the next chunk may be of another stream than the last.
func (q *sendQueue) hasChoice() bool { return q.streams != nil && q.streams.active > 1 }

// trim gives back the queues that are empty, when nothing waits.
func (y *streamQueues) trim() {
	if y != nil && y.messages == 0 && y.active == 0 {
		y.queues = nil
	}
}

// allQueued visits the messages that were never in the slot, without those that are held.
func (q *sendQueue) allQueued(yield func(*Message) bool) {
	for i := range q.numOwn() {
		if !yield(q.streams.own.at(i)) {
			return
		}
	}
	for i := range q.waiting.length {
		if !yield(q.waiting.at(i)) {
			return
		}
	}
	if q.streams == nil {
		return
	}
	for _, z := range q.streams.queues {
		for i := range z.waiting.length {
			if !yield(z.waiting.at(i)) {
				return
			}
		}
	}
}

// allUnheld visits the messages that wait, also those that wait for their turn again.
func (q *sendQueue) allUnheld(yield func(*Message) bool) {
	for l := range q.allBegun {
		if !yield(&l.msg) {
			return
		}
	}
	q.allQueued(yield)
}

// allHeld visits those that wait for Release.
func (q *sendQueue) allHeld(yield func(*Message) bool) {
	for _, h := range q.holds() {
		for i := range h.waiting.length {
			if !yield(h.waiting.at(i)) {
				return
			}
		}
	}
}

// allWaiting visits all of these.
func (q *sendQueue) allWaiting(yield func(*Message) bool) {
	for _, visit := range []iter.Seq[*Message]{q.allUnheld, q.allHeld} {
		for m := range visit {
			if !yield(m) {
				return
			}
		}
	}
}

// allBegun visits the messages that wait for their turn again.
func (q *sendQueue) allBegun(yield func(*currentMessage) bool) {
	if q.streams == nil {
		return
	}
	for _, z := range q.streams.queues {
		if z.begun.loaded && !yield(&z.begun) {
			return
		}
	}
}

// allWholeUnsent visits the messages of which nothing was sent.
func (q *sendQueue) allWholeUnsent(yield func(*Message) bool) {
	if l := &q.current; l.loaded && l.fromQueue && l.offset == 0 && !yield(&l.msg) {
		return
	}
	for l := range q.allBegun {
		if l.offset == 0 && !yield(&l.msg) {
			return
		}
	}
	for _, visit := range []iter.Seq[*Message]{q.allQueued, q.allHeld} {
		for m := range visit {
			if !yield(m) {
				return
			}
		}
	}
}

// begunOctets is how many octets were sent of messages that wait for their turn again.
func (q *sendQueue) begunOctets() (n int) {
	for l := range q.allBegun {
		n += l.offset
	}
	return n
}

// begunOf returns the message that a stream has begun to send, nil if there is none.
func (q *sendQueue) begunOf(id wire.StreamID) *currentMessage {
	if l := &q.current; l.loaded && l.offset > 0 && l.msg.Stream == id {
		return l
	}
	for l := range q.allBegun {
		if l.msg.Stream == id && l.offset > 0 {
			return l
		}
	}
	return nil
}

// dropBegun drops that message.
func (q *sendQueue) dropBegun(id wire.StreamID) {
	l := q.begunOf(id)
	if l != &q.current {
		q.waitingOctets -= l.rest()
		q.streams.messages--
	}
	if *l = (currentMessage{}); q.streams != nil && q.streams.scheduler != nil {
		q.streams.deactivateIfEmpty(id)
	}
}

// removeFromStreams takes messages of which nothing was sent out of the queues of streams. It
// returns how many octets they have.
func (q *sendQueue) removeFromStreams(isRemoved func(*Message) bool) (octets int) {
	y := q.streams
	for _, z := range y.queues {
		before := z.waiting.length
		if l := &z.begun; l.loaded && l.offset == 0 && isRemoved(&l.msg) {
			octets += l.msg.Len()
			*l = currentMessage{}
			y.messages--
		}
		octets += z.waiting.removeWhere(isRemoved)
		y.messages -= before - z.waiting.length
		if z.isEmpty() && !(q.current.loaded && !q.current.isOwn && q.current.msg.Stream == z.stream) {
			y.deactivate(z)
		}
	}
	return octets
}
