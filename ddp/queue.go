package ddp

import "unsafe"

// Queue is one untagged queue of one stream: the n-th buffer posted serves MSN n modulo 2^32, the first
// being 1 (sections 4.3 and 5.1.2). It allocates nothing after NewQueue.
//
// A queue made by NewSharedQueue has no buffers of its own: it takes one from a BufferSource when the
// first segment of a message arrives.
type Queue struct {
	ring   []slot
	head   uint32 // index in ring of the buffer for MSN first
	first  uint32 // MSN of the first available buffer: the next message to be delivered
	posted int    // private queue: buffers from first on; shared queue: all MSNs of the ring are open
	taken  int    // shared queue: buffers taken and not yet popped
	begun  int    // buffers in process
	src    BufferSource
}

type slot struct {
	buf   RecvBuffer
	full  bool
	begun bool // it was asked for: in process
}

// firstMSN is the MSN of the first message of each queue of a new stream (section 4.3).
const firstMSN = 1

// NewQueue returns a queue that holds up to depth posted buffers.
func NewQueue(depth int) *Queue { return &Queue{ring: make([]slot, depth), first: firstMSN} }

// NewSharedQueue returns a queue that takes buffers from src, of which this stream may hold at most
// share at a time between the arrival of a first segment and the delivery of the message. A peer that
// goes beyond its share is a peer without a buffer (CodeNoBuffer), so that it cannot starve the other
// streams (section 8.3.2 item 5, RFC 5042 section 6.4.3.1).
func NewSharedQueue(src BufferSource, share int) *Queue {
	q := NewQueue(share)
	q.src = src
	return q
}

// Held returns the octets of memory that the queue keeps, without what was posted.
func (q *Queue) Held() int { return int(unsafe.Sizeof(*q)) + len(q.ring)*int(unsafe.Sizeof(slot{})) }

// Post adds a buffer for the next MSN, or fails with ErrQueueFull. A shared queue has no place for it.
func (q *Queue) Post(b RecvBuffer) error {
	if q.src != nil || q.posted == len(q.ring) {
		return ErrQueueFull
	}
	s := q.at(uint32(q.posted))
	s.buf, s.full = b, true
	q.posted++
	return nil
}

// Lookup returns the buffer that serves message msn, or a code of TypeUntagged (section 7.1 items 2 and
// 5): CodeMSNRange for a message already delivered, CodeNoBuffer for one beyond the last buffer. MSNs
// are compared modulo 2^32. It answers ULP.Buffer for one queue.
func (q *Queue) Lookup(msn uint32) (*RecvBuffer, uint8) {
	ahead := msn - q.first
	if int32(ahead) < 0 {
		return nil, CodeMSNRange
	}
	if q.src != nil {
		return q.lookupShared(ahead)
	}
	if ahead >= uint32(q.posted) {
		return nil, CodeNoBuffer
	}
	return q.begin(q.at(ahead)), 0
}

// begin notes that a message for s has begun to arrive.
func (q *Queue) begin(s *slot) *RecvBuffer {
	if !s.begun {
		s.begun = true
		q.begun++
	}
	return &s.buf
}

func (q *Queue) lookupShared(ahead uint32) (*RecvBuffer, uint8) {
	if ahead >= uint32(len(q.ring)) {
		return nil, CodeNoBuffer
	}
	s := q.at(ahead)
	if !s.full {
		b, ok := q.src.TakeBuffer()
		if !ok {
			return nil, CodeNoBuffer
		}
		s.buf, s.full = b, true
		q.taken++
	}
	return q.begin(s), 0
}

// Pop retires the first buffer after the delivery of its message, which consumes the buffer even where
// it is only partly filled (section 1.2). It returns false when the first MSN has no buffer.
func (q *Queue) Pop() (RecvBuffer, bool) {
	if len(q.ring) == 0 || !q.at(0).full {
		return RecvBuffer{}, false
	}
	return q.advance(), true
}

// Flush removes the oldest buffer that is left, for the teardown of a stream; repeat it until it
// returns false.
func (q *Queue) Flush() (RecvBuffer, bool) {
	for range q.ring {
		full := q.at(0).full
		b := q.advance()
		if full {
			return b, true
		}
	}
	return RecvBuffer{}, false
}

// advance moves on to the next MSN and returns what the first place held.
func (q *Queue) advance() RecvBuffer {
	s := q.at(0)
	b := s.buf
	if s.full {
		if q.src != nil {
			q.taken--
		} else {
			q.posted--
		}
	}
	if s.begun {
		q.begun--
	}
	*s = slot{}
	q.first++
	if q.head++; q.head == uint32(len(q.ring)) {
		q.head = 0
	}
	return b
}

// First returns the MSN of the first available buffer: that of the next message to be delivered.
func (q *Queue) First() uint32 { return q.first }

// Len returns the number of buffers posted, or taken from the source, and not yet popped.
func (q *Queue) Len() int { return q.posted + q.taken }

// InProcess returns the number of buffers for which a message has begun to arrive that is not delivered
// (RFC 5042 section 6.4.3.1).
func (q *Queue) InProcess() int { return q.begun }

// Free returns how many buffers can still be posted.
func (q *Queue) Free() int {
	if q.src != nil {
		return 0
	}
	return len(q.ring) - q.posted
}

// at returns the place of the i-th MSN after first, for i below the length of the ring.
func (q *Queue) at(i uint32) *slot {
	i += q.head
	if n := uint32(len(q.ring)); i >= n {
		i -= n
	}
	return &q.ring[i]
}
