package simulation

import (
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
)

// Ground is what nodes share: virtual time, the network between them, and what is to be done at
// some time.
type Ground struct {
	net    *simnet.Net
	now    rawio.Time
	events uint64
	pkt    rawio.Packet // being handled
	nodes  []*Node
	at     map[netip.Addr]*Node
	later  agenda

	// Arrive, where it is set, takes each packet in place of the node that has the address it is
	// for.
	Arrive func(to netip.Addr, p *rawio.Packet)
}

// NewGround returns a ground without nodes. The seed decides what the network does to packets.
func NewGround(seed uint64) *Ground {
	return &Ground{net: simnet.New(seed), at: make(map[netip.Addr]*Node)}
}

// Net returns the network.
func (g *Ground) Net() *simnet.Net { return g.net }

// Now returns the virtual time.
func (g *Ground) Now() rawio.Time { return g.now }

// Events returns how often time has stood still for something.
func (g *Ground) Events() uint64 { return g.events }

// NodeAt returns the node that has an address, nil if there is none.
func (g *Ground) NodeAt(a netip.Addr) *Node { return g.at[a] }

// After has do called when d has passed.
func (g *Ground) After(d time.Duration, do func()) { g.later.push(g.now.Add(d), do) }

// Step goes on to the next thing that happens, at the latest until, and does it. It returns false
// when nothing ever will.
func (g *Ground) Step(until rawio.Time) bool {
	next := min(g.net.NextArrival(), g.later.next(), until)
	for _, n := range g.nodes {
		next = min(next, n.nextTimeout())
	}
	if next == rawio.Never {
		return false
	}
	g.now = max(g.now, next)
	g.events++
	for {
		to, p, ok := g.net.Deliver(g.now)
		if !ok {
			break
		}
		g.pkt = p
		if g.Arrive != nil {
			g.Arrive(to, &g.pkt)
		} else {
			g.at[to].Receive(&g.pkt)
		}
		g.pkt.Release()
	}
	for _, n := range g.nodes {
		n.timeouts()
	}
	for g.later.next() <= g.now {
		g.later.pop()()
	}
	return true
}

// agenda is a binary heap of what is to be done, earliest first.
type agenda struct {
	heap []timer
	seq  uint64
}

// timer is something to be done at a time.
type timer struct {
	at  rawio.Time
	seq uint64 // decides between equal times
	do  func()
}

func (a *agenda) before(i, j int) bool {
	x, y := &a.heap[i], &a.heap[j]
	return x.at < y.at || x.at == y.at && x.seq < y.seq
}

// next returns when there is something to do.
func (a *agenda) next() rawio.Time {
	if len(a.heap) == 0 {
		return rawio.Never
	}
	return a.heap[0].at
}

func (a *agenda) push(at rawio.Time, do func()) {
	a.seq++
	a.heap = append(a.heap, timer{at, a.seq, do})
	for i := len(a.heap) - 1; i > 0 && a.before(i, (i-1)/2); i = (i - 1) / 2 {
		a.heap[i], a.heap[(i-1)/2] = a.heap[(i-1)/2], a.heap[i]
	}
}

func (a *agenda) pop() func() {
	do, last := a.heap[0].do, len(a.heap)-1
	a.heap[0] = a.heap[last]
	a.heap[last] = timer{}
	a.heap = a.heap[:last]
	for i := 0; ; {
		c := 2*i + 1
		if c >= last {
			return do
		}
		if c+1 < last && a.before(c+1, c) {
			c++
		}
		if !a.before(c, i) {
			return do
		}
		a.heap[i], a.heap[c] = a.heap[c], a.heap[i]
		i = c
	}
}
