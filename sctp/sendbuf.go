package sctp

// sendBuf holds the octets of messages between WriteMsg and their acknowledgement. WriteMsg returns
// before the peer has acknowledged, so the message is copied once, here. Messages are released in
// the order they were written, so a ring does: a message lies in at most two pieces.
type sendBuf struct {
	ring  []byte
	start int // of the oldest message
	used  int
	gen   uint32 // counts rings: a message of an earlier ring frees nothing in this one
	max   int
}

const sendBufFirst = 16 << 10

// put copies msg into the buffer and returns its two pieces and the token that frees it. It returns
// ok false when the buffer is too full for now.
func (s *sendBuf) put(msg []byte) (body [2][]byte, token uint64, ok bool) {
	if s.used+len(msg) > len(s.ring) && !s.grow(len(msg)) {
		return body, 0, false
	}
	at := (s.start + s.used) % len(s.ring)
	n := copy(s.ring[at:], msg)
	body[0] = s.ring[at : at+n : at+n]
	if n < len(msg) {
		m := copy(s.ring, msg[n:])
		body[1] = s.ring[:m:m]
	}
	s.used += len(msg)
	return body, uint64(s.gen)<<32 | uint64(len(msg)), true
}

// grow makes room for n more octets by starting a larger ring. Messages in the old one stay there,
// held by the association until it is done with them, so a ring is left at most log2(max) times.
func (s *sendBuf) grow(n int) bool {
	size := max(len(s.ring), sendBufFirst/2)
	for size < s.max && size < s.used+n {
		size *= 2
	}
	size = min(size, s.max)
	if size <= len(s.ring) || n > size {
		return false
	}
	s.ring, s.start, s.used = make([]byte, size), 0, 0
	s.gen++
	return true
}

// free releases the oldest message, whose token this is.
func (s *sendBuf) free(token uint64) {
	if uint32(token>>32) != s.gen {
		return
	}
	n := int(uint32(token))
	s.start = (s.start + n) % len(s.ring)
	s.used -= n
}

// undo takes back the newest message, whose token this is.
func (s *sendBuf) undo(token uint64) { s.used -= int(uint32(token)) }
