package simnet

import (
	"math"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// Params say what one direction of a link does to packets. The zero value is a perfect link: no
// delay, infinite rate, no fault. Probabilities are per packet, from 0 to 1.
type Params struct {
	// Delay is the propagation time, after transmission. Jitter adds a uniformly distributed time
	// in [0, Jitter]. A packet never arrives before an earlier one unless Reorder says so.
	Delay, Jitter time.Duration
	// Rate is the transmission rate in IP-level octets per second; 0 is infinite.
	Rate int64
	// Queue is how many IP-level octets may wait while another packet is being transmitted; what
	// does not fit is dropped. 0 is unlimited.
	Queue int
	// Loss is the probability of losing a packet, independently of all others.
	Loss float64
	// Burst makes losses come in bursts.
	Burst Burst
	// Duplicate is the probability that a packet arrives twice. The second copy draws a jitter of
	// its own.
	Duplicate float64
	// Reorder is the probability that a packet takes ReorderDelay longer, so that later ones
	// overtake it.
	Reorder      float64
	ReorderDelay time.Duration
	// Corrupt is the probability that one octet anywhere in the SCTP packet arrives changed.
	Corrupt float64
	// Mark is the probability that a packet of an ECN-capable transport arrives with CE (RFC 3168).
	Mark float64
	// MarkQueue marks packets of ECN-capable transports that find more than so many IP-level octets
	// waiting. 0 marks none.
	MarkQueue int
	// MTU is the IP-level MTU in octets; 0 means rawio.MaxMTU. A longer packet is dropped, unless
	// the sender lets it be fragmented (rawio.Packet.Fragment), and in IPv6 into small enough
	// fragments. Fragments are lost together and arrive as one packet.
	MTU int
	// Quote makes the router in front of the link answer a packet above the MTU with a
	// KindPacketTooBig report. The report quotes that many first octets of the packet, and reaches
	// the sender after Delay. 0 is a black hole: no report.
	Quote int
}

// Burst is the Gilbert-Elliott model. The link is in a good or a bad state, may change state before
// each packet, and loses packets in the bad state only. The mean length of the bad state is 1/Leave
// packets.
type Burst struct {
	Enter float64 // probability of going from good to bad
	Leave float64 // probability of going from bad to good
	Loss  float64 // probability of losing a packet in the bad state
}

// link is one direction between two addresses.
type link struct {
	Params
	rand              *Rand
	partitioned       bool       // partitioned
	inBadState        bool       // Gilbert-Elliott state
	transmitterFreeAt rawio.Time // when the last accepted packet has been transmitted
	lastArrivalAt     rawio.Time // when the last packet in order arrives

	// Packets that wait for the transmitter, oldest at head, and their octets.
	transmitQueue []queuedPacket
	queueHead     int
	queuedOctets  int
}

type queuedPacket struct {
	startsAt rawio.Time // when transmission starts
	size     int        // IP-level octets
}

func newLink(r *Rand) *link {
	return &link{rand: r, transmitterFreeAt: math.MinInt64, lastArrivalAt: math.MinInt64}
}

// scheduleTransmit schedules a packet of size octets. It returns when its last octet has left, or
// false where the queue is full. congested says that the queue is long enough to mark the packet.
func (l *link) scheduleTransmit(now rawio.Time, size int) (left rawio.Time, congested, ok bool) {
	for l.queueHead < len(l.transmitQueue) && l.transmitQueue[l.queueHead].startsAt <= now {
		l.queuedOctets -= l.transmitQueue[l.queueHead].size
		l.queueHead++
	}
	if 2*l.queueHead >= len(l.transmitQueue) { // at least half is gone: move the rest down
		l.transmitQueue = l.transmitQueue[:copy(l.transmitQueue, l.transmitQueue[l.queueHead:])]
		l.queueHead = 0
	}
	start := max(now, l.transmitterFreeAt)
	if start > now {
		if l.Queue > 0 && l.queuedOctets+size > l.Queue {
			return 0, false, false
		}
		congested = l.MarkQueue > 0 && l.queuedOctets > l.MarkQueue
		l.transmitQueue = append(l.transmitQueue, queuedPacket{start, size})
		l.queuedOctets += size
	}
	l.transmitterFreeAt = start.Add(l.serializationTime(size))
	return l.transmitterFreeAt, congested, true
}

// serializationTime is the time to transmit size octets, rounded up to a nanosecond.
func (l *link) serializationTime(size int) time.Duration {
	if l.Rate <= 0 {
		return 0
	}
	return time.Duration((int64(size)*int64(time.Second) + l.Rate - 1) / l.Rate)
}

// stepBurst takes a step of the Gilbert-Elliott model and says whether the packet is lost.
func (l *link) stepBurst(r *Rand) bool {
	if l.inBadState {
		l.inBadState = !drawChance(r, l.Burst.Leave)
	} else {
		l.inBadState = drawChance(r, l.Burst.Enter)
	}
	return l.inBadState && drawChance(r, l.Burst.Loss)
}

// drawJitter draws a time in [0, Jitter].
func (l *link) drawJitter(r *Rand) time.Duration {
	if l.Jitter <= 0 {
		return 0
	}
	return time.Duration(r.uintBelow(uint64(l.Jitter) + 1))
}

// drawChance draws only where the outcome is open, so that unused faults cost nothing.
func drawChance(r *Rand, p float64) bool { return p > 0 && r.Float64() < p }
