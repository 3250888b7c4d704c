package sctp

import (
	"sync"
	"sync/atomic"

	"github.com/rddp-go/rddp/internal/pace"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/account"
)

const (
	// backlogMax and backlogOctets bound the packets that wait for the owner of an association, and the memory that they keep from
	// other use: the default window of rdma in packets of 1500 octets, which come while the kernel lets another thread run on the owner's
	// processor. Beyond it packets are dropped as a full NIC ring would.
	backlogMax    = 12 << 10
	backlogOctets = 24 << 20
	// arenaOctets is the length of the buffers that short packets are copied to, so that one of 40 octets does not keep
	// the 64 KiB that it came in; arenasIdle are kept for reuse.
	arenaOctets = 64 << 10
	arenasIdle  = 8
	// spareMax is the longest slice, in packets, that an association keeps for its backlog.
	spareMax = 4096
	// ownerBatches bounds the batches that the owner sends before it opens the gate for a moment.
	ownerBatches = 16
	// ownerRounds bounds how often one caller does so before it hands the rest to a
	// service goroutine, so that a bulk flow cannot hold an API call captive.
	ownerRounds = 3
)

// gate makes one goroutine at a time the owner of an association. The receive goroutine never waits
// for it: when the gate is taken, it leaves its packets in the backlog, which the owner drains before
// and after it gives up ownership, so that no packet is stranded.
//
// Unlike a plan that forbids system calls under the lock, the owner also writes to the link: what it
// sends points into user memory and records that only the owner may recycle, and nobody waits for the
// gate but API calls on the same association. docs/architecture.md has the reasoning.
type gate struct {
	own     sync.Mutex   // ownership of the association and of everything marked "owner"
	waiting atomic.Int32 // len(backlog), readable without mu

	short  bool // of memory: nothing more is to wait
	closed bool // the association is no more

	mu      sync.Mutex       // guards all but own and waiting; a leaf lock
	backlog []rawio.Packet   // packets that arrived while the gate was taken
	octets  int              // of memory that they keep
	last    *rawio.Buf       // whose octets are the last of these
	arena   *rawio.Buf       // where the next short packet is copied to; nil: there is none
	pool    *rawio.Pool      // of arenas
	taken   int              // octets that what was taken keeps until done
	spare   []rawio.Packet   // the drained slice, kept for reuse
	account *account.Account // what all this keeps
	owner   *account.Account
}

// gateCedes is how often who waits for the gate cedes the processor before it sleeps.
const gateCedes = 4

// soon takes a gate that is free, or is soon. Where packets come in bulk the reader has it for batch after batch, and opens it in between. Who sleeps until then has the runtime
// wake a thread for the goroutine that goes on, which takes it, or the reader, to another processor, with all that this one's cache has of the association; and the peer on
// the same host wants that other one.
func (c *Conn) soon() bool {
	if c.gate.own.TryLock() {
		return true
	}
	if t := c.t; !t.blocks || t.turn.rx.pace.State() != pace.Bulk {
		return false
	}
	for range gateCedes {
		if c.t.cede(); c.gate.own.TryLock() {
			return true
		}
	}
	return false
}

// posted is what has become of a packet that was left for the owner.
type posted uint8

const (
	postWaits  posted = iota
	postFull          // there was no room, and it is released
	postClosed        // nobody will look, and it is the caller's as before
)

// post leaves a packet for the owner and takes over its buffer.
func (g *gate) post(p *rawio.Packet) posted {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return postClosed
	}
	keeps := g.keeps(p)
	if len(g.backlog) >= backlogMax || keeps > backlogOctets-g.octets || g.short && g.stillShort() {
		g.mu.Unlock()
		p.Release()
		return postFull
	}
	if sparse(p) {
		g.copy(p)
	}
	g.backlog = append(g.backlog, *p)
	g.octets += keeps
	g.last = p.Buf
	g.charge()
	g.waiting.Store(int32(len(g.backlog)))
	g.mu.Unlock()
	p.Buf, p.Data = nil, nil
	return postWaits
}

// sparse says whether a packet is only a small part of the buffer that it lies in, and so of what that is good for.
func sparse(p *rawio.Packet) bool {
	return p.Buf != nil && max(len(p.Data), p.Buf.Filled) < len(p.Buf.B)/2
}

// keeps returns how many more octets are kept from other use when a packet waits: those of its buffer, of a packet or of many.
// Called with mu held.
func (g *gate) keeps(p *rawio.Packet) int {
	switch {
	case p.Buf == nil:
		return len(p.Data)
	case p.Buf == g.last:
		return 0
	case !sparse(p):
		return len(p.Buf.B)
	case g.arena == nil || len(p.Data) > len(g.arena.B)-g.arena.Filled:
		return arenaOctets
	}
	return 0
}

// copy moves a packet to the arena. Called with mu held.
func (g *gate) copy(p *rawio.Packet) {
	if g.arena != nil && len(p.Data) > len(g.arena.B)-g.arena.Filled {
		g.dropArena()
	}
	if g.arena == nil {
		g.arena = g.pool.Get()
	}
	b := g.arena
	at := b.Filled
	b.Filled += copy(b.B[at:], p.Data)
	b.Retain()
	p.Release()
	p.Buf, p.Data = b, b.B[at:b.Filled:b.Filled]
}

// dropArena gives up the gate's own part in it. Called with mu held.
func (g *gate) dropArena() {
	if g.arena != nil {
		g.arena.Release()
		g.arena = nil
	}
}

// charge counts what waits. Called with mu held.
func (g *gate) charge() {
	if g.account.Charge(g.held()) {
		g.stillShort()
	}
}

// trim counts no more than is kept.
func (g *gate) trim() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.account.Trim(g.held())
	}
}

// held returns the octets of memory that it keeps. Called with mu held.
func (g *gate) held() int {
	return g.octets + g.taken + (cap(g.backlog)+cap(g.spare))*packetHeld
}

// stillShort notes and says whether memory is short and the association has more than its share. Called with mu held.
func (g *gate) stillShort() bool {
	g.short = g.owner != nil && g.account.Over(g.account.Drawn()+g.owner.Drawn())
	return g.short
}

// close gives up what there is, for good, as the association is no more. It returns the packets that wait.
func (g *gate) close() (left []rawio.Packet) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	left = g.backlog
	g.backlog, g.spare, g.last = nil, nil, nil
	g.dropArena()
	g.waiting.Store(0)
	g.account.Trim(0)
	return left
}

// take returns the backlog. The caller gives the slice back with done.
func (g *gate) take() []rawio.Packet {
	g.mu.Lock()
	b := g.backlog
	g.backlog, g.spare, g.octets, g.taken, g.last = g.spare[:0], nil, 0, g.taken+g.octets, nil
	g.dropArena()
	g.waiting.Store(0)
	g.mu.Unlock()
	return b
}

func (g *gate) done(b []rawio.Packet) {
	clear(b)
	g.mu.Lock()
	g.taken = 0
	if cap(b) <= spareMax {
		g.spare = b[:0]
	}
	if !g.closed {
		g.charge()
	}
	g.mu.Unlock()
}
