package cc

import "time"

// Constants of RFC 9406 section 4.3.
const (
	minRTTThresh  = 4 * time.Millisecond
	maxRTTThresh  = 16 * time.Millisecond
	cssRounds     = 5 // rounds of Conservative Slow Start
	minRTTSamples = 8 // samples that judge a round
)

// hystart is HyStart++ (RFC 9406): slow start ends when queues begin to build. When they overflow,
// hundreds of chunks are lost at once, more than the gap blocks of a SACK can name. A round is a
// measurement of RFC 9260 section 6.3.1. It is judged by each eight of its samples and not by the
// first alone. Packets are spread at twice the rate of the round before, so a queue builds behind
// the first of them. It is empty again when the next round begins.
type hystart struct {
	latestMinRTT      time.Duration // the shortest of the latest samples, eight at most
	roundMinRTT       time.Duration // the shortest sample of this round, 0 before the first
	sampleCount       int32         // in it
	lastRoundMinRTT   time.Duration // the shortest sample of the round before, 0 at first
	cssBaselineMinRTT time.Duration // of those that began the careful rounds
	cssRoundsLeft     int32         // careful rounds left, 0 in ordinary slow start
}

// inCSS reports whether cwnd is to grow more slowly.
func (h *hystart) inCSS() bool { return h.cssRoundsLeft > 0 }

// addSack takes what a SACK says of the round trip and reports whether slow start is over.
func (h *hystart) addSack(a *Ack) (over bool) {
	if a.RTT > 0 {
		over = h.endRound()
	}
	if a.Trip == 0 {
		return over
	}
	if h.sampleCount%minRTTSamples == 0 {
		h.latestMinRTT = a.Trip
	}
	h.latestMinRTT = min(h.latestMinRTT, a.Trip)
	if h.sampleCount == 0 {
		h.roundMinRTT = a.Trip
	}
	h.roundMinRTT = min(h.roundMinRTT, a.Trip)
	h.sampleCount++
	return over || h.sampleCount%minRTTSamples == 0 && h.checkDelayRise()
}

// endRound begins the next round. One with few samples is judged now.
func (h *hystart) endRound() (over bool) {
	over = h.sampleCount != 0 && h.sampleCount < minRTTSamples && h.checkDelayRise()
	if h.cssRoundsLeft > 0 {
		h.cssRoundsLeft--
		over = over || h.cssRoundsLeft == 0
	}
	h.lastRoundMinRTT, h.roundMinRTT, h.sampleCount = h.roundMinRTT, 0, 0
	return over
}

// checkDelayRise compares the latest samples with the round before. There is no time for careful
// rounds if the queue has grown by twice what calls for care, and by a quarter of the round trip.
// The queue would overflow in them.
func (h *hystart) checkDelayRise() (over bool) {
	rise := min(max(h.lastRoundMinRTT/8, minRTTThresh), maxRTTThresh)
	switch {
	case h.lastRoundMinRTT != 0 && h.latestMinRTT >= h.lastRoundMinRTT+max(2*rise, h.lastRoundMinRTT/4):
		return true
	case h.cssRoundsLeft > 0 && h.latestMinRTT < h.cssBaselineMinRTT:
		h.cssRoundsLeft = 0 // it was no queue
	case h.cssRoundsLeft == 0 && h.lastRoundMinRTT != 0 && h.latestMinRTT >= h.lastRoundMinRTT+rise:
		h.cssRoundsLeft, h.cssBaselineMinRTT = cssRounds, h.latestMinRTT
	}
	return false
}
