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
// of RFC 9260 section 6.3.1. It is judged by each eight of its samples and not by the first alone: packets are spread
// at twice the rate of the round before, so a queue builds behind the first of them, and is empty again when the next round begins.
type hystart struct {
	latest   time.Duration // the shortest of the latest samples, eight at most
	current  time.Duration // the shortest sample of this round, 0 before the first
	samples  int32         // in it
	last     time.Duration // the shortest sample of the round before, 0 at first
	baseline time.Duration // of those that began the careful rounds
	rounds   int32         // careful rounds left, 0 in ordinary slow start
}

// careful reports whether cwnd is to grow more slowly.
func (h *hystart) careful() bool { return h.rounds > 0 }

// acked takes what a SACK says of the round trip and reports whether slow start is over.
func (h *hystart) acked(a *Ack) (over bool) {
	if a.RTT > 0 {
		over = h.ended()
	}
	if a.Trip == 0 {
		return over
	}
	if h.samples%enough == 0 {
		h.latest = a.Trip
	}
	h.latest = min(h.latest, a.Trip)
	if h.samples == 0 {
		h.current = a.Trip
	}
	h.current = min(h.current, a.Trip)
	h.samples++
	return over || h.samples%enough == 0 && h.judge()
}

// ended begins the next round. One with few samples is judged now.
func (h *hystart) ended() (over bool) {
	over = h.samples != 0 && h.samples < enough && h.judge()
	if h.rounds > 0 {
		h.rounds--
		over = over || h.rounds == 0
	}
	h.last, h.current, h.samples = h.current, 0, 0
	return over
}

// judge compares the latest samples with the round before. Where the queue has grown by twice what calls for care, and by a
// quarter of the round trip, there is no time for careful rounds: the queue would overflow in them.
func (h *hystart) judge() (over bool) {
	rise := min(max(h.last/8, minRTTThresh), maxRTTThresh)
	switch {
	case h.last != 0 && h.latest >= h.last+max(2*rise, h.last/4):
		return true
	case h.rounds > 0 && h.latest < h.baseline:
		h.rounds = 0 // it was no queue
	case h.rounds == 0 && h.last != 0 && h.latest >= h.last+rise:
		h.rounds, h.baseline = cautious, h.latest
	}
	return false
}
