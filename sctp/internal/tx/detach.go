package tx

import (
	"slices"

	"github.com/rddp-go/rddp/internal/overlap"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Detach copies user data to memory of the sender, so that the user's is free at once. It looks at
// the messages of the stream that are not acknowledged. It copies the pieces that share an octet
// with within, or all if within is nil. A packet that is already in a pack.Batch still references
// the user's memory until it is written.
//
// more says that there was too much to copy at once. Then the user's memory is free when a later
// call with the same arguments returns false. Others may have their turn in between.
func (s *Sender) Detach(stream wire.StreamID, within []byte) (more bool) {
	n := 0
	for t, ok := s.lastInStream(stream); ok && !more; t, ok = s.outstanding.prevInStream(t) {
		*s.work.steps++
		if r := s.outstanding.recordOf(t); r.flags&flagDetached == 0 {
			n += s.detached.copyBody(&r.body, within)
			more = n >= maxDetachOctets
			if within == nil {
				r.flags |= flagDetached
			}
		}
	}
	if s.queue.current.loaded && s.queue.current.msg.Stream == stream {
		n += s.detached.copyBody(&s.queue.current.msg.Body, within)
	}
	for m := range s.queue.allWaiting {
		*s.work.steps++
		if m.Stream == stream {
			n += s.detached.copyBody(&m.Body, within)
		}
	}
	if n > 0 {
		s.detached.upTo = s.outstanding.nextTSN + wire.TSN(s.queue.numWaiting()+s.queue.numHeld()) + 1
	}
	return more
}

// detachedOctets counts what Detach has copied.
type detachedOctets struct {
	octets int
	upTo   wire.TSN // up to which TSN it is kept, for Held
}

// maxDetachOctets is how much Detach copies at once, in octets; each piece counts for
// minDetachOctets at least.
const (
	maxDetachOctets = 256 << 10
	minDetachOctets = 64
)

// copyBody copies what it is to and returns what that counts.
func (d *detachedOctets) copyBody(body *[2][]byte, within []byte) (n int) {
	for i, b := range body {
		if len(b) > 0 && (within == nil || overlap.Slices(b, within)) {
			body[i] = slices.Clone(b)
			d.octets += len(b)
			n += max(len(b), minDetachOctets)
		}
	}
	return n
}
