package tx

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// packetPairs tells how fast a path takes packets. The first of a window leave together after a
// silence. They come apart at the narrowest link, and their SACKs keep that distance (Keshav's
// packet pairs). The window, which the path took before, may then leave as fast as that: it fills
// no queue.
type packetPairs struct {
	ackedOctets     int        // octets acknowledged since the silence
	firstSackAt     rawio.Time // the first SACK of these,
	firstSackOctets int        // which acknowledged so many
	measuring       bool       // a measurement is under way
	lastRates       [2]int64   // the last two, octets a second: SACKs may have been held up, and come together, once
	octetsLeft      int        // octets of the window that may leave so
}

// packetPairCount is how many packets are measured: fewer than leave together.
const packetPairCount = pacingBurstPackets - 2

// startTrain begins a train: DATA ends a silence that is shorter than an RTO.
func (r *packetPairs) startTrain(window int) {
	r.octetsLeft, r.ackedOctets, r.firstSackAt, r.measuring = window, 0, rawio.Never, true
}

// onAcked takes so many octets that a SACK acknowledges.
func (r *packetPairs) onAcked(now rawio.Time, octets, pmdcs int) {
	if !r.measuring || octets == 0 {
		return
	}
	r.ackedOctets += octets
	switch {
	case r.firstSackAt == rawio.Never:
		r.firstSackAt, r.firstSackOctets = now, r.ackedOctets
	case r.ackedOctets >= packetPairCount*pmdcs:
		r.measuring = false
		if took := now.Sub(r.firstSackAt); took > 0 {
			r.lastRates = [2]int64{int64(r.ackedOctets-r.firstSackOctets) * int64(time.Second) / int64(took),
				r.lastRates[0]}
		}
	}
}

// burstRate is how fast what is left may leave, 0 if nothing is known.
func (r *packetPairs) burstRate() int64 {
	if r.octetsLeft <= 0 {
		return 0
	}
	return min(r.lastRates[0], r.lastRates[1])
}
