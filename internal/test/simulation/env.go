package simulation

import (
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
)

// Env is what nodes share: virtual time, the network between them, and what is to be done at
// some time.
type Env struct {
	net    *simnet.Net
	now    rawio.Time
	events uint64
	pkt    rawio.Packet // being handled
	nodes  []*Node
	at     map[netip.Addr]*Node
	later  eventQueue

	// Arrive, where it is set, takes each packet in place of the node that has the address it is
	// for.
	Arrive func(to netip.Addr, p *rawio.Packet)
}

// NewEnv returns a ground without nodes. The seed decides what the network does to packets.
func NewEnv(seed uint64) *Env {
	return &Env{net: simnet.New(seed), at: make(map[netip.Addr]*Node)}
}

// Net returns the network.
func (g *Env) Net() *simnet.Net { return g.net }

// Now returns the virtual time.
func (g *Env) Now() rawio.Time { return g.now }

// Events returns how often time has stood still for something.
func (g *Env) Events() uint64 { return g.events }

// NodeAt returns the node that has an address, nil if there is none.
func (g *Env) NodeAt(a netip.Addr) *Node { return g.at[a] }

// After has do called when d has passed.
func (g *Env) After(d time.Duration, do func()) { g.later.pushEvent(g.now.Add(d), do) }

// Step goes on to the next thing that happens, at the latest until, and does it. It returns false
// when nothing ever will.
func (g *Env) Step(until rawio.Time) bool {
	next := min(g.net.NextArrival(), g.later.nextAt(), until)
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
		n.runTimers()
	}
	for g.later.nextAt() <= g.now {
		g.later.popEvent()()
	}
	return true
}

// eventQueue is a binary heap of what is to be done, earliest first.
type eventQueue struct {
	heap []timer
	seq  uint64
}

// timer is something to be done at a time.
type timer struct {
	at  rawio.Time
	seq uint64 // decides between equal times
	do  func()
}

func (a *eventQueue) isBefore(i, j int) bool {
	x, y := &a.heap[i], &a.heap[j]
	return x.at < y.at || x.at == y.at && x.seq < y.seq
}

// nextAt returns when there is something to do.
func (a *eventQueue) nextAt() rawio.Time {
	if len(a.heap) == 0 {
		return rawio.Never
	}
	return a.heap[0].at
}

func (a *eventQueue) pushEvent(at rawio.Time, do func()) {
	a.seq++
	a.heap = append(a.heap, timer{at, a.seq, do})
	for i := len(a.heap) - 1; i > 0 && a.isBefore(i, (i-1)/2); i = (i - 1) / 2 {
		a.heap[i], a.heap[(i-1)/2] = a.heap[(i-1)/2], a.heap[i]
	}
}

func (a *eventQueue) popEvent() func() {
	do, last := a.heap[0].do, len(a.heap)-1
	a.heap[0] = a.heap[last]
	a.heap[last] = timer{}
	a.heap = a.heap[:last]
	for i := 0; ; {
		c := 2*i + 1
		if c >= last {
			return do
		}
		if c+1 < last && a.isBefore(c+1, c) {
			c++
		}
		if !a.isBefore(c, i) {
			return do
		}
		a.heap[i], a.heap[c] = a.heap[c], a.heap[i]
		i = c
	}
}
