package sctp

import (
	"math/bits"
	"slices"
	"unsafe"
)

// sendBuf holds messages between WriteMsg and their acknowledgement. WriteMsg returns before the
// peer has acknowledged. So the message is copied once, into a ring, where it lies in at most two
// pieces. Most messages end in the order they were written. If the lifetime of one is over before
// an older one has ended, it keeps its place until then.
type sendBuf struct {
	ring       []byte
	start      int // of the oldest message in this ring
	usedOctets int
	maxOctets  int // octets of messages that it takes
	baseOctets int // before it has grown

	msgs           []bufferedMessage // from head on: those that keep their place, oldest first
	head           int
	firstToken     uint64 // token of msgs[head]; tokens count up
	oldRingOctets  int    // octets of earlier rings, as long as there are messages in them
	ringFirstToken uint64 // those of lower tokens are

	tokenAtTrim uint64 // the token of the next message at the last trim
}

// bufferedMessage is a message in the buffer.
type bufferedMessage struct {
	info  SendInfo
	body  [2][]byte
	freed bool
}

func (w *bufferedMessage) len() int { return len(w.body[0]) + len(w.body[1]) }

// heldOctets returns the octets of memory that the buffer keeps, earlier rings included.
func (s *sendBuf) heldOctets() int {
	return s.earlierRingOctets() + cap(s.ring) + cap(s.msgs)*int(unsafe.Sizeof(bufferedMessage{}))
}

// earlierRingOctets returns the octets of rings that messages are left in.
func (s *sendBuf) earlierRingOctets() int {
	if s.oldRingOctets > 0 && s.firstToken >= s.ringFirstToken {
		s.oldRingOctets = 0
	}
	return s.oldRingOctets
}

// ring is what the octets of messages are put into, and where they lie.
type ring struct {
	octets []byte
	msgs   []bufferedMessage // nil where it does not come with the octets
}

// newRing makes a ring of a length that ringSizeFor has returned.
func newRing(octets int) ring {
	if octets == firstRingOctets {
		f := new(firstRing)
		return ring{f.octets[:], f.msgs[:0]}
	}
	return ring{octets: make([]byte, octets)}
}

// firstRing is the first ring. A program with a few messages of a hundred octets on their way needs
// no more. There may be very many such rings. So it lies beside the descriptor of a message, and
// both on one page of memory.
type firstRing struct {
	msgs   [1]bufferedMessage
	octets [firstRingOctets]byte
}

// firstRingOctets is the length of firstRing. With everything else, and what the runtime puts
// before it, that makes 1 KiB.
const firstRingOctets = 1<<10 - 8 - int(unsafe.Sizeof(bufferedMessage{}))

// putMessage copies msg into the buffer. It returns what it has of it, until the next call, and the
// token that frees it. It returns ok false when the buffer is too full for now.
func (s *sendBuf) putMessage(msg []byte, info *SendInfo) (w *bufferedMessage, token uint64, ok bool) {
	if s.usedOctets+len(msg) > min(len(s.ring), s.maxOctets) {
		return nil, 0, false
	}
	token = s.nextToken()
	if len(s.msgs) == cap(s.msgs) && s.head > len(s.msgs)/2 {
		s.msgs, s.head = slices.Delete(s.msgs, 0, s.head), 0
	}
	s.msgs = append(s.msgs, bufferedMessage{})
	w = &s.msgs[len(s.msgs)-1]
	w.info = *info
	at := (s.start + s.usedOctets) % len(s.ring)
	n := copy(s.ring[at:], msg)
	w.body[0] = s.ring[at : at+n : at+n]
	if n < len(msg) {
		m := copy(s.ring, msg[n:])
		w.body[1] = s.ring[:m:m]
	}
	s.usedOctets += len(msg)
	return w, token, true
}

// nextToken returns the token of the next message.
func (s *sendBuf) nextToken() uint64 { return s.firstToken + uint64(len(s.msgs)-s.head) }

// ringSizeFor returns the length of the ring that has space for n more octets. It is a shorter one
// if the ring had grown. 0 means that there is space, or that there will be no more as the buffer
// is full.
func (s *sendBuf) ringSizeFor(n int) int {
	if s.usedOctets+n <= min(len(s.ring), s.maxOctets) {
		return 0
	}
	if len(s.ring) >= 4*s.maxOctets && n <= s.maxOctets {
		return s.maxOctets
	}
	size := max(len(s.ring), firstRingOctets)
	if size < s.usedOctets+n {
		size = 1 << bits.Len(uint(s.usedOctets+n-1))
	}
	size = min(size, s.maxOctets)
	if size <= len(s.ring) || n > size {
		return 0
	}
	return size
}

// switchRing goes on with another ring, which takes long to make and is made before the lock is
// taken. Messages in the old one stay there, held by the association until it is done with them.
func (s *sendBuf) switchRing(r ring) {
	s.oldRingOctets = s.earlierRingOctets() + len(s.ring)
	s.ring, s.start, s.usedOctets = r.octets, 0, 0
	if s.ringFirstToken = s.nextToken(); len(s.msgs) == 0 {
		s.msgs = r.msgs
	}
}

// get returns a message that is not freed yet.
func (s *sendBuf) get(token uint64) *bufferedMessage { return &s.msgs[s.head+int(token-s.firstToken)] }

// freeMessage releases a message.
func (s *sendBuf) freeMessage(token uint64) {
	s.get(token).freed = true
	for ; s.head < len(s.msgs) && s.msgs[s.head].freed; s.head++ {
		w := &s.msgs[s.head]
		if s.firstToken >= s.ringFirstToken {
			s.start = (s.start + w.len()) % len(s.ring)
			s.usedOctets -= w.len()
		}
		*w = bufferedMessage{}
		s.firstToken++
	}
	if s.head == len(s.msgs) {
		s.msgs, s.head, s.start = s.msgs[:0], 0, 0 // the next one goes where the last was, which is cached
	}
}

// trimIdle gives everything back if the buffer is empty and nothing was written since the last
// call.
func (s *sendBuf) trimIdle() {
	next := s.nextToken()
	if s.firstToken == next && s.tokenAtTrim == next {
		s.ring, s.msgs, s.start, s.usedOctets, s.oldRingOctets, s.ringFirstToken = nil, nil, 0, 0, 0, next
	}
	s.tokenAtTrim = next
}

// hasRoomFor says whether there is space for n octets more, whatever it may have grown to.
func (s *sendBuf) hasRoomFor(n int) bool { return s.usedOctets+n <= s.maxOctets }

// hasQuarterFree reports whether a quarter of the buffer is free, as all of it will be some time.
func (s *sendBuf) hasQuarterFree() bool { return s.usedOctets <= s.maxOctets-s.maxOctets/4 }

// undoPut takes back the newest message.
func (s *sendBuf) undoPut() {
	w := &s.msgs[len(s.msgs)-1]
	s.usedOctets -= w.len()
	*w = bufferedMessage{}
	s.msgs = s.msgs[:len(s.msgs)-1]
}
