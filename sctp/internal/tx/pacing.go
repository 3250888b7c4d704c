package tx

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// pacingQuantum is how much of its rate a paced path may use at once: timers are not finer, and
// batches are cheap. pacingBurstPackets is how many full packets it may in any case. An association
// begins with as many (RFC 9002 section 7.7).
const (
	pacingQuantum      = time.Millisecond
	pacingBurstPackets = 10
)

// pacing is how packets to a path are spread.
type pacing struct {
	nextSendAt rawio.Time    // the next packet does not leave earlier
	lag        time.Duration // what late timers have cost, see addTimerLateness
	held       bool          // a packet waits for nextSendAt
	pairs      packetPairs
}

// isPaced reports whether packets to p are spread over the round trip. They are where the
// controller asks for it. Else they are over all but near paths, as soon as one round trip is
// known. In strict RFC mode Max.Burst takes its place.
func (s *Sender) isPaced(p *Path) bool { return p.pacer != nil || s.isFarPath(p) }

// pacingBlocks reports whether a packet to p has to wait for its time, and remembers until when.
func (s *Sender) pacingBlocks(now rawio.Time, p *Path) bool {
	if !now.Before(p.pacing.nextSendAt) || !s.isPaced(p) {
		return false
	}
	s.burst.paceAt, p.pacing.held = p.pacing.nextSendAt, true
	return true
}

// schedulePacing makes the packet after one of so many octets wait, if they are to be spread.
func (s *Sender) schedulePacing(now rawio.Time, p *Path, octets int) {
	if !s.isPaced(p) {
		return
	}
	rate, quantum := p.pacingRate(), pacingQuantum
	if rate <= 0 {
		p.pacing.nextSendAt = now
		return
	}
	if p.pacer == nil {
		rate = max(rate, p.pacing.pairs.burstRate())
		p.pacing.pairs.octetsLeft -= octets
	}
	if p.pacer == nil || p.rateSampler != nil && p.flight.octets <= pacingBurstPackets*p.pmdcs {
		quantum = max(quantum, durationAtRate(pacingBurstPackets*p.pmdcs, rate))
	}
	gap := durationAtRate(octets, rate)
	p.addTimerLateness(now.Sub(p.pacing.nextSendAt)-quantum, rate)
	made := min(p.pacing.lag, gap/2)
	p.pacing.lag -= made
	p.pacing.nextSendAt = max(p.pacing.nextSendAt, now.Add(-quantum)).Add(gap - made)
}

// addTimerLateness handles a packet that waited for its time and left so much later. Timers are
// late where others have the processors. With a controller that sets a pace, the pace alone fills
// the path. So the lost time is made up at twice the pace, until as much is in flight as the
// controller keeps there.
func (p *Path) addTimerLateness(late time.Duration, rate int64) {
	if p.pacing.held && p.pacer != nil && late > 0 {
		p.pacing.lag += late
	}
	if p.pacing.held = false; durationAtRate(p.flight.octets, rate) >= p.rttEst.minRTT.get() {
		p.pacing.lag = 0
	}
}

// pacingRate returns how many octets may leave in a second, by the factors that Linux has for TCP.
// RFC 9002 section 7.7 recommends the second of them. 0 is as many as the window allows. There is a
// round trip time.
func (p *Path) pacingRate() int64 {
	if p.pacer != nil {
		return p.pacer.PacingRate(p.rttEst.srtt)
	}
	rate := int64(p.cc.Window()) * int64(time.Second) / int64(p.rttEst.srtt)
	if p.cc.Window() < p.cc.Ssthresh() {
		return 2 * rate
	}
	return rate + rate/4
}

// durationAtRate returns how long octets take at a rate.
func durationAtRate(octets int, rate int64) time.Duration {
	return time.Duration(int64(octets) * int64(time.Second) / rate)
}
