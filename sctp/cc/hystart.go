package cc

import "time"

// Constants of RFC 9406 section 4.3.
const (
	minRTTThresh = 4 * time.Millisecond
	maxRTTThresh = 16 * time.Millisecond
	cautious     = 5 // rounds of Conservative Slow Start
)

// hystart is HyStart++ (RFC 9406): slow start ends when queues begin to build, not when they overflow
// and hundreds of chunks are lost at once, more than the gap blocks of a SACK can name. A round trip
// has one measurement here (RFC 9260 section 6.3.1), so a round is a measurement, and one that was
// too high by accident is corrected by a lower one after it.
type hystart struct {
	last     time.Duration // measurement of the round before, 0 at first
	baseline time.Duration // measurement that began the careful rounds
	rounds   int           // careful rounds left, 0 in ordinary slow start
}

// careful reports whether cwnd is to grow more slowly.
func (h *hystart) careful() bool { return h.rounds > 0 }

// round takes the measurement of a round and reports whether slow start is over.
func (h *hystart) round(rtt time.Duration) bool {
	last := h.last
	h.last = rtt
	switch {
	case h.rounds > 0 && rtt < h.baseline:
		h.rounds = 0 // it was no queue
	case h.rounds > 0:
		h.rounds--
		return h.rounds == 0
	case last > 0 && rtt >= last+min(max(last/8, minRTTThresh), maxRTTThresh):
		h.rounds, h.baseline = cautious, rtt
	}
	return false
}
