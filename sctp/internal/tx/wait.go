package tx

import "time"

// A peer may wait before it acknowledges a lone packet (RFC 9260 section 6.2), for another one, or for DATA that the SACK goes along with. It does not say
// for how long, so that is learnt: by how much a SACK that leaves nothing to acknowledge comes later than the shortest round trip of
// late, which is that of a HEARTBEAT or of DATA that was acknowledged at once.
const (
	// unknownWait is what a peer is taken to wait that nothing is known of: what section 6.2 recommends.
	unknownWait = 200 * time.Millisecond
	// leastWait is what it may take any peer to come to it.
	leastWait = 5 * time.Millisecond
	// waitMemory is how many waits are remembered at least, and half of how many at most.
	waitMemory = 32
)

// waits are the peer's on one path.
type waits struct {
	of, before time.Duration // the longest of n waits, and of waitMemory before them
	n          int           // 0: there were none
}

func (w *waits) observe(d time.Duration) {
	if w.n == waitMemory {
		*w = waits{before: w.of}
	}
	w.n++
	w.of = max(w.of, d)
}

// longest returns the longest wait of late.
func (w *waits) longest() time.Duration {
	if w.n == 0 {
		return unknownWait
	}
	return max(w.of, w.before, leastWait)
}

// learnWait learns from a SACK that has acknowledged all there was, unless it was asked for.
func (p *Path) learnWait() {
	if k := &p.sack; k.trip > 0 && !k.asked {
		p.waits.observe(k.trip - p.est.trip.get())
	}
}

// overdue takes that the peer has had the chunk of a probe for a lone packet twice: it has waited for longer than it did before, if its SACK was not lost.
func (s *Sender) overdue() {
	if p := s.tail.lone; p != nil {
		p.waits.observe(min(2*s.tail.after, unknownWait))
		s.tail.lone = nil
	}
}
