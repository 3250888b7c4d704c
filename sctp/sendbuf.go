package sctp

import (
	"math/bits"
	"slices"
	"unsafe"
)

// sendBuf holds messages between WriteMsg and their acknowledgement. WriteMsg returns before the peer has
// acknowledged, so the message is copied once, here: into a ring, where it lies in at most two pieces.
// Most messages end in the order they were written; one that ends before an older one, because its
// lifetime is over, keeps its place until that has ended too.
type sendBuf struct {
	ring  []byte
	start int // of the oldest message in this ring
	used  int
	max   int // octets of messages that it takes
	base  int // before it has grown

	msgs  []written // from head on: those that keep their place, oldest first
	head  int
	first uint64 // token of msgs[head]; tokens count up
	old   int    // octets of earlier rings, as long as there are messages in them
	fresh uint64 // those of lower tokens are

	seen uint64 // the token of the next message at the last trim
	// affords says whether there is memory for so many more octets; nil: there is.
	affords func(octets int) bool
}

// written is a message in the buffer.
type written struct {
	info SendInfo
	body [2][]byte
	done bool
}

func (w *written) len() int { return len(w.body[0]) + len(w.body[1]) }

// held returns the octets of memory that the buffer keeps, earlier rings included.
func (s *sendBuf) held() int {
	return s.earlier() + cap(s.ring) + cap(s.msgs)*int(unsafe.Sizeof(written{}))
}

// earlier returns the octets of rings that messages are left in.
func (s *sendBuf) earlier() int {
	if s.old > 0 && s.first >= s.fresh {
		s.old = 0
	}
	return s.old
}

// ring is what the octets of messages are put into, and where they lie.
type ring struct {
	octets []byte
	msgs   []written // nil where it does not come with the octets
}

// newRing makes one of a length that wants has returned.
func newRing(octets int) ring {
	if octets == sendBufFirst {
		f := new(firstRing)
		return ring{f.octets[:], f.msgs[:0]}
	}
	return ring{octets: make([]byte, octets)}
}

// firstRing is the first: a program that has some messages of a hundred octets on their way needs no more, and there may be very many of it.
// So it lies with where a message lies, and both on one page of memory.
type firstRing struct {
	msgs   [1]written
	octets [sendBufFirst]byte
}

// sendBufFirst is how many octets it has: with all else 1 KiB, with what the runtime puts before it.
const sendBufFirst = 1<<10 - 8 - int(unsafe.Sizeof(written{}))

// put copies msg into the buffer and returns what it has of it, until the next call, and the token that frees it. It returns
// ok false when the buffer is too full for now.
func (s *sendBuf) put(msg []byte, info *SendInfo) (w *written, token uint64, ok bool) {
	if s.used+len(msg) > min(len(s.ring), s.max) {
		return nil, 0, false
	}
	token = s.next()
	if len(s.msgs) == cap(s.msgs) && s.head > len(s.msgs)/2 {
		s.msgs, s.head = slices.Delete(s.msgs, 0, s.head), 0
	}
	s.msgs = append(s.msgs, written{})
	w = &s.msgs[len(s.msgs)-1]
	w.info = *info
	at := (s.start + s.used) % len(s.ring)
	n := copy(s.ring[at:], msg)
	w.body[0] = s.ring[at : at+n : at+n]
	if n < len(msg) {
		m := copy(s.ring, msg[n:])
		w.body[1] = s.ring[:m:m]
	}
	s.used += len(msg)
	return w, token, true
}

// next returns the token of the next message.
func (s *sendBuf) next() uint64 { return s.first + uint64(len(s.msgs)-s.head) }

// wants returns the length of the ring that it takes to have room for n more octets, a shorter one where it had grown; 0: there is room, or
// there will be no more as the buffer is full, or memory short and messages are on their way whose room it gets.
func (s *sendBuf) wants(n int) int {
	if s.used+n <= min(len(s.ring), s.max) {
		return 0
	}
	if len(s.ring) >= 4*s.max && n <= s.max {
		return s.max
	}
	size := max(len(s.ring), sendBufFirst)
	if size < s.used+n {
		size = 1 << bits.Len(uint(s.used+n-1))
	}
	size = min(size, s.max)
	if size <= len(s.ring) || n > size || s.used > 0 && s.affords != nil && !s.affords(size) {
		return 0
	}
	return size
}

// grow goes on with another ring, which takes long to make and is made before the gate is taken. Messages in the old one stay there, held by
// the association until it is done with them.
func (s *sendBuf) grow(r ring) {
	s.old = s.earlier() + len(s.ring)
	s.ring, s.start, s.used = r.octets, 0, 0
	if s.fresh = s.next(); len(s.msgs) == 0 {
		s.msgs = r.msgs
	}
}

// get returns a message that is not freed yet.
func (s *sendBuf) get(token uint64) *written { return &s.msgs[s.head+int(token-s.first)] }

// free releases a message.
func (s *sendBuf) free(token uint64) {
	s.get(token).done = true
	for ; s.head < len(s.msgs) && s.msgs[s.head].done; s.head++ {
		w := &s.msgs[s.head]
		if s.first >= s.fresh {
			s.start = (s.start + w.len()) % len(s.ring)
			s.used -= w.len()
		}
		*w = written{}
		s.first++
	}
	if s.head == len(s.msgs) {
		s.msgs, s.head, s.start = s.msgs[:0], 0, 0 // the next one goes where the last was, which is in the processor's caches
	}
}

// trim gives everything back when nothing is there, nor was written since the last call.
func (s *sendBuf) trim() {
	next := s.next()
	if s.first == next && s.seen == next {
		s.ring, s.msgs, s.start, s.used, s.old, s.fresh = nil, nil, 0, 0, 0, next
	}
	s.seen = next
}

// takes says whether there is room for n octets more, whatever it may have grown to.
func (s *sendBuf) takes(n int) bool { return s.used+n <= s.max }

// roomy reports whether a quarter of the buffer is free, as all of it will be some time.
func (s *sendBuf) roomy() bool { return s.used <= s.max-s.max/4 }

// undo takes back the newest message.
func (s *sendBuf) undo() {
	w := &s.msgs[len(s.msgs)-1]
	s.used -= w.len()
	*w = written{}
	s.msgs = s.msgs[:len(s.msgs)-1]
}
