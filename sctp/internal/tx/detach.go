package tx

import (
	"slices"
	"unsafe"

	"github.com/rddp-go/rddp/sctp/wire"
)

// Detach copies user data to memory of the sender's own, so that the user's is free at once: of all
// messages of the stream that are not acknowledged, the pieces that share an octet with within, or
// all of them when within is nil. A packet that is already in a pack.Batch still references the
// user's memory until it is written.
//
// more says that there was so much to copy that only a part is: the user's memory is free when a call with the same has said otherwise, which may
// be after others have had their turn.
func (s *Sender) Detach(stream wire.StreamID, within []byte) (more bool) {
	n := 0
	for t, ok := s.lastOf(stream); ok && !more; t, ok = s.prior(t) {
		*s.steps++
		if r := s.ledger.rec(t); r.flags&own == 0 {
			n += s.detach(&r.body, within)
			more = n >= copyAtOnce
			if within == nil {
				r.flags |= own
			}
		}
	}
	if s.slot.full && s.slot.msg.Stream == stream {
		n += s.detach(&s.slot.msg.Body, within)
	}
	for i := range s.queue.n {
		*s.steps++
		if m := s.queue.at(i); m.Stream == stream {
			n += s.detach(&m.Body, within)
		}
	}
	if n > 0 {
		s.copiedTo = s.ledger.next + wire.TSN(s.queue.n) + 1
	}
	return more
}

// copyAtOnce is how much Detach copies at once, in octets; each piece counts for copyLeast at least.
const (
	copyAtOnce = 256 << 10
	copyLeast  = 64
)

// detach copies what it is to and returns what that counts.
func (s *Sender) detach(body *[2][]byte, within []byte) (n int) {
	for i, b := range body {
		if len(b) > 0 && (within == nil || overlap(b, within)) {
			body[i] = slices.Clone(b)
			s.copied += len(b)
			n += max(len(b), copyLeast)
		}
	}
	return n
}

// overlap reports whether a and b, both in use, share an octet. Their addresses are compared only,
// and both are kept alive by the caller.
func overlap(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	x, y := uintptr(unsafe.Pointer(unsafe.SliceData(a))), uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return x-y < uintptr(len(b)) || y-x < uintptr(len(a))
}
