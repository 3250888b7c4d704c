package sctp

import (
	"sync"
	"sync/atomic"

	"github.com/rddp-go/rddp/internal/pollpolicy"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/account"
)

const (
	// maxBacklogPackets and maxBacklogOctets bound the packets that wait for the owner of an
	// association, and the memory that they keep from other use: the default window of rdma in
	// packets of 1500 octets, which come while the kernel lets another thread run on the owner's
	// processor. Beyond it packets are dropped as a full NIC ring would.
	maxBacklogPackets = 12 << 10
	maxBacklogOctets  = 24 << 20
	// arenaOctets is the length of the buffers that short packets are copied to, so that one of 40
	// octets does not keep the 64 KiB that it came in; maxIdleArenas are kept for reuse.
	arenaOctets   = 64 << 10
	maxIdleArenas = 8
	// maxSparePackets is the longest slice, in packets, that an association keeps for its backlog.
	maxSparePackets = 4096
	// maxBatchesPerHold bounds the batches that the owner sends before it opens the gate for a
	// moment.
	maxBatchesPerHold = 16
	// maxRoundsPerCaller bounds how often one caller does so before it hands the rest to a
	// service goroutine, so that a bulk flow cannot hold an API call captive.
	maxRoundsPerCaller = 3
)

// assocLock makes one goroutine at a time the owner of an association. The receive goroutine never
// waits for it: when the gate is taken, it leaves its packets in the backlog, which the owner
// drains before and after it gives up ownership, so that no packet is stranded.
//
// Unlike a plan that forbids system calls under the lock, the owner also writes to the link: what
// it sends points into user memory and records that only the owner may recycle, and nobody waits
// for the gate but API calls on the same association. docs/architecture.md has the reasoning.
type assocLock struct {
	ownerMu    sync.Mutex   // ownership of the association and of everything marked "owner"
	backlogLen atomic.Int32 // len(backlog), readable without mu

	memoryShort bool // of memory: nothing more is to wait
	closed      bool // the association is no more

	backlogMu      sync.Mutex       // guards all but own and waiting; a leaf lock
	backlog        []rawio.Packet   // packets that arrived while the gate was taken
	backlogOctets  int              // of memory that they keep
	lastBuf        *rawio.Buf       // whose octets are the last of these
	arena          *rawio.Buf       // where the next short packet is copied to; nil: there is none
	arenaPool      *rawio.Pool      // of arenas
	takenOctets    int              // octets that what was taken keeps until done
	spareSlice     []rawio.Packet   // the drained slice, kept for reuse
	backlogAccount *account.Account // what all this keeps
	assocAccount   *account.Account
}

// lockYieldTries is how often who waits for the gate cedes the processor before it sleeps.
const lockYieldTries = 4

// tryLockYielding takes a gate that is free, or is soon. Where packets come in bulk the reader has
// it for batch after batch, and opens it in between. Who sleeps until then has the runtime wake a
// thread for the goroutine that goes on, which takes it, or the reader, to another processor, with
// all that this one's cache has of the association; and the peer on the same host wants that other
// one.
func (c *Conn) tryLockYielding() bool {
	if c.assocLock.ownerMu.TryLock() {
		return true
	}
	if t := c.t; !t.readsInKernel || t.readerRole.rx.pollPolicy.State() != pollpolicy.Bulk {
		return false
	}
	for range lockYieldTries {
		if c.t.yieldCPU(); c.assocLock.ownerMu.TryLock() {
			return true
		}
	}
	return false
}

// enqueueResult is what has become of a packet that was left for the owner.
type enqueueResult uint8

const (
	enqueueOK     enqueueResult = iota
	enqueueFull                 // there was no room, and it is released
	enqueueClosed               // nobody will look, and it is the caller's as before
)

// enqueuePacket leaves a packet for the owner and takes over its buffer.
func (g *assocLock) enqueuePacket(p *rawio.Packet) enqueueResult {
	g.backlogMu.Lock()
	if g.closed {
		g.backlogMu.Unlock()
		return enqueueClosed
	}
	keeps := g.addedOctets(p)
	if len(g.backlog) >= maxBacklogPackets || keeps > maxBacklogOctets-g.backlogOctets || g.memoryShort && g.updateMemoryShort() {
		g.backlogMu.Unlock()
		p.Release()
		return enqueueFull
	}
	if isSparse(p) {
		g.copyToArena(p)
	}
	g.backlog = append(g.backlog, *p)
	g.backlogOctets += keeps
	g.lastBuf = p.Buf
	g.chargeBacklog()
	g.backlogLen.Store(int32(len(g.backlog)))
	g.backlogMu.Unlock()
	p.Buf, p.Data = nil, nil
	return enqueueOK
}

// isSparse says whether a packet is only a small part of the buffer that it lies in, and so of what
// that is good for.
func isSparse(p *rawio.Packet) bool {
	return p.Buf != nil && max(len(p.Data), p.Buf.Filled) < len(p.Buf.B)/2
}

// addedOctets returns how many more octets are kept from other use when a packet waits: those of
// its buffer, of a packet or of many. Called with mu held.
func (g *assocLock) addedOctets(p *rawio.Packet) int {
	switch {
	case p.Buf == nil:
		return len(p.Data)
	case p.Buf == g.lastBuf:
		return 0
	case !isSparse(p):
		return len(p.Buf.B)
	case g.arena == nil || len(p.Data) > len(g.arena.B)-g.arena.Filled:
		return arenaOctets
	}
	return 0
}

// copyToArena moves a packet to the arena. Called with mu held.
func (g *assocLock) copyToArena(p *rawio.Packet) {
	if g.arena != nil && len(p.Data) > len(g.arena.B)-g.arena.Filled {
		g.dropArena()
	}
	if g.arena == nil {
		g.arena = g.arenaPool.Get()
	}
	b := g.arena
	at := b.Filled
	b.Filled += copy(b.B[at:], p.Data)
	b.Retain()
	p.Release()
	p.Buf, p.Data = b, b.B[at:b.Filled:b.Filled]
}

// dropArena gives up the gate's own part in it. Called with mu held.
func (g *assocLock) dropArena() {
	if g.arena != nil {
		g.arena.Release()
		g.arena = nil
	}
}

// chargeBacklog counts what waits. Called with mu held.
func (g *assocLock) chargeBacklog() {
	if g.backlogAccount.Charge(g.heldOctets()) {
		g.updateMemoryShort()
	}
}

// trimAccount counts no more than is kept.
func (g *assocLock) trimAccount() {
	g.backlogMu.Lock()
	defer g.backlogMu.Unlock()
	if !g.closed {
		g.backlogAccount.Trim(g.heldOctets())
	}
}

// heldOctets returns the octets of memory that it keeps. Called with mu held.
func (g *assocLock) heldOctets() int {
	return g.backlogOctets + g.takenOctets + (cap(g.backlog)+cap(g.spareSlice))*packetOctets
}

// updateMemoryShort notes and says whether memory is short and the association has more than its
// share. Called with mu held.
func (g *assocLock) updateMemoryShort() bool {
	g.memoryShort = g.assocAccount != nil && g.backlogAccount.ExceedsShare(g.backlogAccount.Drawn()+g.assocAccount.Drawn())
	return g.memoryShort
}

// closeBacklog gives up what there is, for good, as the association is no more. It returns the
// packets that wait.
func (g *assocLock) closeBacklog() (left []rawio.Packet) {
	g.backlogMu.Lock()
	defer g.backlogMu.Unlock()
	g.closed = true
	left = g.backlog
	g.backlog, g.spareSlice, g.lastBuf = nil, nil, nil
	g.dropArena()
	g.backlogLen.Store(0)
	g.backlogAccount.Trim(0)
	return left
}

// takeBacklog returns the backlog. The caller gives the slice back with done.
func (g *assocLock) takeBacklog() []rawio.Packet {
	g.backlogMu.Lock()
	b := g.backlog
	g.backlog, g.spareSlice, g.backlogOctets, g.takenOctets, g.lastBuf = g.spareSlice[:0], nil, 0, g.takenOctets+g.backlogOctets, nil
	g.dropArena()
	g.backlogLen.Store(0)
	g.backlogMu.Unlock()
	return b
}

func (g *assocLock) recycleBacklog(b []rawio.Packet) {
	clear(b)
	g.backlogMu.Lock()
	g.takenOctets = 0
	if cap(b) <= maxSparePackets {
		g.spareSlice = b[:0]
	}
	if !g.closed {
		g.chargeBacklog()
	}
	g.backlogMu.Unlock()
}
