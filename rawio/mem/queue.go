package mem

import "github.com/rddp-go/rddp/rawio"

// queue is a bounded ring of packets. It grows to what its use needs, so that an idle link is cheap.
type queue struct {
	ring []rawio.Packet
	head int // index of the oldest packet
	n    int // packets queued
	max  int // most packets queued
}

func (q *queue) push(p rawio.Packet) bool {
	if q.n == q.max {
		return false
	}
	if q.n == len(q.ring) {
		ring := make([]rawio.Packet, min(max(2*q.n, 64), q.max))
		k := copy(ring, q.ring[q.head:])
		copy(ring[k:], q.ring[:q.head])
		q.ring, q.head = ring, 0
	}
	q.ring[(q.head+q.n)%len(q.ring)] = p
	q.n++
	return true
}

// pop takes the oldest packet of a queue that is not empty.
func (q *queue) pop() rawio.Packet {
	p := q.ring[q.head]
	q.ring[q.head] = rawio.Packet{}
	q.head = (q.head + 1) % len(q.ring)
	q.n--
	return p
}

// fill takes what pkts have room for, and says how many.
func (q *queue) fill(pkts []rawio.Packet) (n int) {
	for n < len(pkts) && q.n > 0 {
		pkts[n] = q.pop()
		n++
	}
	return n
}

// pools hold the receive buffers of a pair in two sizes.
type pools struct{ small, large *rawio.Pool }

func newPools(limit, depth int) *pools {
	pool := func(size int) *rawio.Pool { return rawio.NewPool(size, min(depth, idleOctets/size)) }
	return &pools{small: pool(smallBuf), large: pool(limit)}
}

func (p *pools) get(n int) *rawio.Buf {
	if n <= smallBuf {
		return p.small.Get()
	}
	return p.large.Get()
}

func (p *pools) outstanding() int { return p.small.Outstanding() + p.large.Outstanding() }
