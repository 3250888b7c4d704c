package tx

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// A window that is smaller than the next chunk while nothing is in flight may stay so. No SACK is
// due, and a receiver reports a larger window by itself only when it is much larger.
const (
	// cutToWindowTimeout is how long the window has to be so before a chunk is cut to fit it.
	cutToWindowTimeout = 200 * time.Millisecond
	// minArwnd is the smallest a_rwnd of a set-up (RFC 9260 section 3.3.2).
	minArwnd = 1500
)

// mayProbeWindow reports whether a chunk may go to p although the peer's window has no room for it
// and nothing is in flight. Unless the chunk can be cut to the window it is a zero window probe
// (section 6.1, A). The first goes one RTO after the window was found closed. Later ones are
// retransmissions by T3-rtx, which backs off.
func (s *Sender) mayProbeWindow(now rawio.Time, p *Path) bool {
	shortens := s.canCutToWindow()
	if s.window.probeAt == rawio.Never || shortens != s.window.probeIsCut {
		wait := p.rttEst.rto
		if shortens {
			wait = min(wait, cutToWindowTimeout)
		}
		s.window.probeIsCut, s.window.probeAt = shortens, now.Add(wait)
	}
	s.window.cutsNext = shortens && !now.Before(s.window.probeAt)
	return !now.Before(s.window.probeAt)
}

// canCutToWindow reports whether the next chunk may be cut to the window. Its message may be
// fragmented, and the window is not silly.
func (s *Sender) canCutToWindow() bool {
	least := min(s.MaxPayload(), max(int(s.window.largest), minArwnd)) / 2
	return s.queue.current.fromQueue && !s.cfg.NoFragments && !s.cfg.StrictRFC && s.outstanding.rwnd >= least
}

// retryWindowProbe sends a zero window probe again as soon as the window is open. The peer has most
// likely dropped it, and waiting for T3-rtx would stall the association.
func (s *Sender) retryWindowProbe(now rawio.Time, arwnd int) {
	if !s.window.probing {
		return
	}
	t := s.outstanding.firstUnacked
	r := s.outstanding.recordOf(t)
	if arwnd < int(r.size) || r.state == stateGapAcked {
		return
	}
	s.window.probing = false
	if p := s.paths[r.path]; r.isIn(inFlight) { // or it is marked already
		p.timers.t3At = rawio.Never
		s.markLost(now, t, r, p)
	}
}
