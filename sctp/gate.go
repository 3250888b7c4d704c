package sctp

import (
	"sync"
	"sync/atomic"

	"github.com/rddp-go/rddp/rawio"
)

const (
	// backlogMax and backlogOctets bound the packets that wait for the owner of an association: the default window
	// of rdma in packets of 1500 octets, which come while the kernel lets another thread run on the owner's
	// processor. Beyond it packets are dropped as a full NIC ring would.
	backlogMax    = 12 << 10
	backlogOctets = 24 << 20
	// spareMax is the longest slice, in packets, that an association keeps for its backlog.
	spareMax = 4096
	// ownerBatches bounds the batches that the owner sends before it opens the gate for a moment.
	ownerBatches = 16
	// ownerRounds bounds how often one caller does so before it hands the rest to a
	// service goroutine, so that a bulk flow cannot hold an API call captive.
	ownerRounds = 8
)

// gate makes one goroutine at a time the owner of an association. The receive goroutine never waits
// for it: when the gate is taken, it leaves its packets in the backlog, which the owner drains before
// and after it gives up ownership, so that no packet is stranded.
//
// Unlike a plan that forbids system calls under the lock, the owner also writes to the link: what it
// sends points into user memory and records that only the owner may recycle, and nobody waits for the
// gate but API calls on the same association. docs/architecture.md has the reasoning.
type gate struct {
	own sync.Mutex // ownership of the association and of everything marked "owner"

	mu      sync.Mutex     // guards the three below; a leaf lock
	backlog []rawio.Packet // packets that arrived while the gate was taken
	octets  int            // in them
	spare   []rawio.Packet // the drained slice, kept for reuse

	waiting atomic.Int32 // len(backlog), readable without mu
}

// post leaves a packet for the owner and takes over its buffer. It says whether there was room.
func (g *gate) post(p *rawio.Packet) bool {
	g.mu.Lock()
	if len(g.backlog) >= backlogMax || len(p.Data) > backlogOctets-g.octets {
		g.mu.Unlock()
		p.Release()
		return false
	}
	g.backlog = append(g.backlog, *p)
	g.octets += len(p.Data)
	g.waiting.Store(int32(len(g.backlog)))
	g.mu.Unlock()
	p.Buf, p.Data = nil, nil
	return true
}

// take returns the backlog. The caller gives the slice back with done.
func (g *gate) take() []rawio.Packet {
	if g.waiting.Load() == 0 {
		return nil
	}
	g.mu.Lock()
	b := g.backlog
	g.backlog, g.spare, g.octets = g.spare[:0], nil, 0
	g.waiting.Store(0)
	g.mu.Unlock()
	return b
}

func (g *gate) done(b []rawio.Packet) {
	clear(b)
	g.mu.Lock()
	if cap(b) > cap(g.spare) && cap(b) <= spareMax {
		g.spare = b[:0]
	}
	g.mu.Unlock()
}
