package tx

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// A window that is smaller than the next chunk while nothing is in flight may stay so: no SACK is
// due, and a receiver tells of more room by itself only when there is much more of it.
const (
	// shortenAfter is how long the window has to be so before a chunk is cut to fit it.
	shortenAfter = 200 * time.Millisecond
	// leastArwnd is the smallest a_rwnd of a set-up (RFC 9260 section 3.3.2).
	leastArwnd = 1500
)

// opens reports whether a chunk may go to p although the peer's window has no room for it and
// nothing is in flight. Unless the chunk can be cut to the window it is a zero window probe
// (section 6.1, A): the first goes one RTO after the window was found closed, later ones are
// retransmissions by T3-rtx, which backs off.
func (s *Sender) opens(now rawio.Time, p *Path) bool {
	shortens := s.shortens()
	if s.probeAt == rawio.Never || shortens != s.shortening {
		wait := p.est.rto
		if shortens {
			wait = min(wait, shortenAfter)
		}
		s.shortening, s.probeAt = shortens, now.Add(wait)
	}
	s.shorten = shortens && !now.Before(s.probeAt)
	return !now.Before(s.probeAt)
}

// shortens reports whether the next chunk may be cut to the window: it is of a message that may be
// fragmented, and the window is not silly.
func (s *Sender) shortens() bool {
	least := min(s.MaxPayload(), max(s.maxRwnd, leastArwnd)) / 2
	return s.slot.queued && !s.cfg.NoFragments && !s.cfg.Letter && s.ledger.rwnd >= least
}
