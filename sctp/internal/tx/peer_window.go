package tx

import "github.com/rddp-go/rddp/rawio"

// peerWindow is what is known about the peer's receive window, beside outstanding.rwnd.
type peerWindow struct {
	largest       uint32     // largest a_rwnd seen
	last          uint32     // the last
	probing       bool       // the only TSN outstanding is a zero window probe
	probeAnswered bool       // a SACK has come since it was last sent
	probeIsCut    bool       // probeAt is of a chunk that is cut to the window
	cutsNext      bool       // the next chunk is
	probeAt       rawio.Time // when a zero window probe may go, or a shorter chunk, see mayProbeWindow; or Never
	sentSpans     *sentSpans // nil while the window is not narrow
}

// setRwnd takes an a_rwnd (section 6.2.1, D).
func (s *Sender) setRwnd(arwnd uint32) {
	s.outstanding.rwnd = max(int(arwnd)-s.outstanding.dataInFlight, 0)
	s.window.largest, s.window.last = max(s.window.largest, arwnd), arwnd
}

// windowIsSilly reports whether the window is too small to be worth a packet of new DATA. That
// needs DATA in flight, whose SACK will say more (silly window syndrome, section 6.1, A; RFC 1122
// section 4.2.3.4).
func (s *Sender) windowIsSilly() bool {
	if g := &s.outstanding; g.flightSize == 0 || g.rwnd >= s.MaxPayload() || g.rwnd >= int(s.window.largest)/2 {
		return false
	}
	// All that is queued would fit; of a Source it is not known what else it has.
	return s.upper.source != nil || s.queue.waitingOctets+s.queue.current.rest() > s.outstanding.rwnd
}
