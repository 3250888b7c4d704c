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
func (s *Sender) Detach(stream wire.StreamID, within []byte) {
	g := &s.ring
	n := 0
	for t := g.base; t != g.next; t++ {
		if r := g.rec(t); r.stream == stream {
			n += detach(&r.body, within)
		}
	}
	if s.slot.full && s.slot.msg.Stream == stream {
		n += detach(&s.slot.msg.Body, within)
	}
	for i := range s.queue.n {
		if m := s.queue.at(i); m.Stream == stream {
			n += detach(&m.Body, within)
		}
	}
	if n > 0 {
		s.copied, s.copiedTo = s.copied+n, g.next+wire.TSN(s.queue.n)+1
	}
}

// detach returns how many octets it has copied.
func detach(body *[2][]byte, within []byte) (n int) {
	for i, b := range body {
		if within == nil || overlap(b, within) {
			body[i] = slices.Clone(b)
			n += len(b)
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
