package cc

import "time"

// Constants of RFC 9406 section 4.3.
const (
	minRTTThresh = 4 * time.Millisecond
	maxRTTThresh = 16 * time.Millisecond
	cautious     = 5 // rounds of Conservative Slow Start
	enough       = 8 // samples that judge a round
)

// hystart is HyStart++ (RFC 9406): slow start ends when queues begin to build, not when they overflow
// and hundreds of chunks are lost at once, more than the gap blocks of a SACK can name. A round is a measurement
// of RFC 9260 section 6.3.1, and is judged by the shortest of its first samples.
type hystart struct {
	current  time.Duration // the shortest sample of this round, 0 before the first
	samples  int           // in it
	last     time.Duration // the shortest sample of the round before, 0 at first
	baseline time.Duration // of the round that began the careful ones
	rounds   int           // careful rounds left, 0 in ordinary slow start
}

// careful reports whether cwnd is to grow more slowly.
func (h *hystart) careful() bool { return h.rounds > 0 }

// acked takes what a SACK says of the round trip and reports whether slow start is over.
func (h *hystart) acked(a Ack) (over bool) {
	if a.RTT > 0 {
		over = h.samples != 0 && h.samples < enough && h.judge()
		h.last, h.current, h.samples = h.current, 0, 0
	}
	if a.Trip == 0 {
		return over
	}
	if h.samples == 0 {
		h.current = a.Trip
	}
	h.current = min(h.current, a.Trip)
	h.samples++
	return over || h.samples == enough && h.judge()
}

// judge compares a round with the one before. Where the queue has grown by twice what calls for care, and by a
// quarter of the round trip, there is no time for careful rounds: the queue would overflow in them.
func (h *hystart) judge() (over bool) {
	rise := min(max(h.last/8, minRTTThresh), maxRTTThresh)
	switch {
	case h.last != 0 && h.current >= h.last+max(2*rise, h.last/4):
		return true
	case h.rounds > 0 && h.current < h.baseline:
		h.rounds = 0 // it was no queue
	case h.rounds > 0:
		h.rounds--
		return h.rounds == 0
	case h.last != 0 && h.current >= h.last+rise:
		h.rounds, h.baseline = cautious, h.current
	}
	return false
}
