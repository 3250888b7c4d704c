package mem

import "github.com/rddp-go/rddp/rawio"

// packetQueue is a bounded ring of packets. It grows to what its use needs, so that an idle link is
// cheap.
type packetQueue struct {
	ring     []rawio.Packet
	head     int // index of the oldest packet
	count    int // packets queued
	maxCount int // most packets queued
}

func (q *packetQueue) push(p rawio.Packet) bool {
	if q.count == q.maxCount {
		return false
	}
	if q.count == len(q.ring) {
		ring := make([]rawio.Packet, min(max(2*q.count, 64), q.maxCount))
		k := copy(ring, q.ring[q.head:])
		copy(ring[k:], q.ring[:q.head])
		q.ring, q.head = ring, 0
	}
	q.ring[(q.head+q.count)%len(q.ring)] = p
	q.count++
	return true
}

// pop takes the oldest packet of a queue that is not empty.
func (q *packetQueue) pop() rawio.Packet {
	p := q.ring[q.head]
	q.ring[q.head] = rawio.Packet{}
	q.head = (q.head + 1) % len(q.ring)
	q.count--
	return p
}

// popInto takes as many packets as fit into pkts, and returns how many.
func (q *packetQueue) popInto(pkts []rawio.Packet) (n int) {
	for n < len(pkts) && q.count > 0 {
		pkts[n] = q.pop()
		n++
	}
	return n
}

// bufferPools hold the receive buffers of a pair in two sizes.
type bufferPools struct{ small, large *rawio.Pool }

func newPools(limit, depth int) *bufferPools {
	pool := func(size int) *rawio.Pool { return rawio.NewPool(size, min(depth, maxIdleOctets/size)) }
	return &bufferPools{small: pool(smallBuf), large: pool(limit)}
}

func (p *bufferPools) get(n int) *rawio.Buf {
	if n <= smallBuf {
		return p.small.Get()
	}
	return p.large.Get()
}

func (p *bufferPools) outstandingBufs() int { return p.small.Outstanding() + p.large.Outstanding() }
