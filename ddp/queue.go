package ddp

import "unsafe"

// Queue is one untagged queue of one stream. The n-th buffer posted serves MSN n modulo 2^32, the
// first being 1 (sections 4.3 and 5.1.2). It allocates nothing after NewQueue.
//
// A queue made by NewSharedQueue has no buffers of its own: it takes one from a BufferSource when
// the first segment of a message arrives.
type Queue struct {
	ring          []queueSlot
	head          uint32 // index in ring of the buffer for MSN first
	nextMSN       uint32 // MSN of the first available buffer: the next message to be delivered
	postedBuffers int    // private queue: buffers from first on; shared queue: all MSNs of the ring are open
	takenBuffers  int    // shared queue: buffers taken and not yet popped
	inProcess     int    // buffers in process
	source        BufferSource
}

type queueSlot struct {
	buf       RecvBuffer
	hasBuffer bool
	inProcess bool // it was asked for: in process
}

// initialMSN is the MSN of the first message of each queue of a new stream (section 4.3).
const initialMSN = 1

// NewQueue returns a queue that holds up to depth posted buffers.
func NewQueue(depth int) *Queue { return &Queue{ring: make([]queueSlot, depth), nextMSN: initialMSN} }

// NewSharedQueue returns a queue that takes buffers from src. This stream may hold at most share of
// them, each from the arrival of a first segment to the delivery of the message. A peer beyond its
// share has no buffer (CodeNoBuffer). So it cannot starve the other streams (section 8.3.2 item 5,
// RFC 5042 section 6.4.3.1).
func NewSharedQueue(src BufferSource, share int) *Queue {
	q := NewQueue(share)
	q.source = src
	return q
}

// Held returns the octets of memory that the queue keeps, without what was posted.
func (q *Queue) Held() int {
	return int(unsafe.Sizeof(*q)) + len(q.ring)*int(unsafe.Sizeof(queueSlot{}))
}

// Post adds a buffer for the next MSN, or fails with ErrQueueFull. A shared queue has no place for
// it.
func (q *Queue) Post(b RecvBuffer) error {
	if q.source != nil || q.postedBuffers == len(q.ring) {
		return ErrQueueFull
	}
	s := q.slotAt(uint32(q.postedBuffers))
	s.buf, s.hasBuffer = b, true
	q.postedBuffers++
	return nil
}

// Lookup returns the buffer that serves message msn, or a code of TypeUntagged (section 7.1 items 2
// and 5). CodeMSNRange is for a message already delivered, CodeNoBuffer for one beyond the last
// buffer. MSNs are compared modulo 2^32. It answers ULP.Buffer for one queue.
func (q *Queue) Lookup(msn uint32) (*RecvBuffer, uint8) {
	ahead := msn - q.nextMSN
	if int32(ahead) < 0 {
		return nil, CodeMSNRange
	}
	if q.source != nil {
		return q.lookupShared(ahead)
	}
	if ahead >= uint32(q.postedBuffers) {
		return nil, CodeNoBuffer
	}
	return q.beginMessage(q.slotAt(ahead)), 0
}

// beginMessage notes that a message for s has begun to arrive.
func (q *Queue) beginMessage(s *queueSlot) *RecvBuffer {
	if !s.inProcess {
		s.inProcess = true
		q.inProcess++
	}
	return &s.buf
}

func (q *Queue) lookupShared(ahead uint32) (*RecvBuffer, uint8) {
	if ahead >= uint32(len(q.ring)) {
		return nil, CodeNoBuffer
	}
	s := q.slotAt(ahead)
	if !s.hasBuffer {
		b, ok := q.source.TakeBuffer()
		if !ok {
			return nil, CodeNoBuffer
		}
		s.buf, s.hasBuffer = b, true
		q.takenBuffers++
	}
	return q.beginMessage(s), 0
}

// Pop retires the first buffer after the delivery of its message. The message consumes the buffer
// even if it fills only part of it (section 1.2). Pop returns false when the first MSN has no
// buffer.
func (q *Queue) Pop() (RecvBuffer, bool) {
	if len(q.ring) == 0 || !q.slotAt(0).hasBuffer {
		return RecvBuffer{}, false
	}
	return q.retireFirst(), true
}

// Flush removes the oldest buffer that is left, for the teardown of a stream. Repeat it until it
// returns false.
func (q *Queue) Flush() (RecvBuffer, bool) {
	for range q.ring {
		full := q.slotAt(0).hasBuffer
		b := q.retireFirst()
		if full {
			return b, true
		}
	}
	return RecvBuffer{}, false
}

// retireFirst moves on to the next MSN and returns what the first place held.
func (q *Queue) retireFirst() RecvBuffer {
	s := q.slotAt(0)
	b := s.buf
	if s.hasBuffer {
		if q.source != nil {
			q.takenBuffers--
		} else {
			q.postedBuffers--
		}
	}
	if s.inProcess {
		q.inProcess--
	}
	*s = queueSlot{}
	q.nextMSN++
	if q.head++; q.head == uint32(len(q.ring)) {
		q.head = 0
	}
	return b
}

// First returns the MSN of the first available buffer: that of the next message to be delivered.
func (q *Queue) First() uint32 { return q.nextMSN }

// Len returns the number of buffers posted, or taken from the source, and not yet popped.
func (q *Queue) Len() int { return q.postedBuffers + q.takenBuffers }

// InProcess returns the number of buffers whose message has begun to arrive and is not delivered
// (RFC 5042 section 6.4.3.1).
func (q *Queue) InProcess() int { return q.inProcess }

// Free returns how many buffers can still be posted.
func (q *Queue) Free() int {
	if q.source != nil {
		return 0
	}
	return len(q.ring) - q.postedBuffers
}

// slotAt returns the place of the i-th MSN after first, for i below the length of the ring.
func (q *Queue) slotAt(i uint32) *queueSlot {
	i += q.head
	if n := uint32(len(q.ring)); i >= n {
		i -= n
	}
	return &q.ring[i]
}
