package sctp

import (
	"sync"
	"sync/atomic"

	"github.com/rddp-go/rddp/internal/pollpolicy"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/account"
)

const (
	// maxBacklogPackets and maxBacklogOctets bound the backlog of an association, and the memory
	// that it keeps from other use. They hold the default window of rdma in packets of 1500 octets.
	// These come while the kernel lets another thread run on the holder's processor. Beyond it
	// packets are dropped, as a full NIC ring would drop them.
	maxBacklogPackets = 12 << 10
	maxBacklogOctets  = 24 << 20
	// arenaOctets is the length of the buffers that short packets are copied to. So a packet of 40
	// octets does not keep the 64 KiB that it came in. maxIdleArenas are kept for reuse.
	arenaOctets   = 64 << 10
	maxIdleArenas = 8
	// maxSparePackets is the longest slice, in packets, that an association keeps for its backlog.
	maxSparePackets = 4096
	// maxBatchesPerHold bounds the batches that the holder sends before it releases the lock for a
	// moment.
	maxBatchesPerHold = 16
	// maxRoundsPerCaller bounds how often one caller does so before a service goroutine takes over.
	// So a bulk flow cannot hold an API call captive.
	maxRoundsPerCaller = 3
)

// assocLock is the association lock: one goroutine at a time holds it and owns the association. The
// receive goroutine never waits for it. When the lock is taken, it leaves its packets in the
// backlog. The holder drains the backlog before and after it releases the lock, so no packet is
// stranded.
//
// The holder also writes to the link, although other designs forbid system calls under the lock.
// What it sends points into user memory and records that only the holder may recycle. Only API
// calls on the same association wait for the lock. docs/dev/locks.md has the reasoning.
type assocLock struct {
	ownerMu    sync.Mutex   // ownership of the association and of everything marked "owner"
	backlogLen atomic.Int32 // len(backlog), readable without backlogMu

	memoryShort bool // of memory: nothing more is to wait
	closed      bool // the association is no more

	backlogMu      sync.Mutex       // guards all but ownerMu and backlogLen; a leaf lock
	backlog        []rawio.Packet   // packets that arrived while the lock was taken
	backlogOctets  int              // of memory that they keep
	lastBuf        *rawio.Buf       // the buffer of the last of these octets
	arena          *rawio.Buf       // where the next short packet is copied to; nil: there is none
	arenaPool      *rawio.Pool      // of arenas
	takenOctets    int              // octets that taken packets keep until recycleBacklog
	spareSlice     []rawio.Packet   // the drained slice, kept for reuse
	backlogAccount *account.Account // what all this keeps
	assocAccount   *account.Account
}

// lockYieldTries is how often a caller that waits for the lock yields the processor before it
// sleeps.
const lockYieldTries = 4

// tryLockYielding takes a lock that is free, or is soon. When packets come in bulk the reader holds
// it for batch after batch, and releases it in between. If a caller slept until then, the runtime
// would wake a thread for it on another processor. The caller, or the reader, would move there,
// away from the cache that has the association. The peer on the same host wants that processor too.
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

// enqueueResult is what has become of a packet that was left to the holder of the lock.
type enqueueResult uint8

const (
	enqueueOK     enqueueResult = iota
	enqueueFull                 // there was no room, and it is released
	enqueueClosed               // the association is over: the packet stays the caller's
)

// enqueuePacket leaves a packet to the holder of the lock and takes over its buffer.
func (g *assocLock) enqueuePacket(p *rawio.Packet) enqueueResult {
	g.backlogMu.Lock()
	if g.closed {
		g.backlogMu.Unlock()
		return enqueueClosed
	}
	keeps := g.addedOctets(p)
	if len(g.backlog) >= maxBacklogPackets || keeps > maxBacklogOctets-g.backlogOctets || g.memoryShort &&
		g.updateMemoryShort() {
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

// isSparse says whether a packet is only a small part of its buffer, which it would keep from other
// use.
func isSparse(p *rawio.Packet) bool {
	return p.Buf != nil && max(len(p.Data), p.Buf.Filled) < len(p.Buf.B)/2
}

// addedOctets returns how many more octets a waiting packet keeps from other use. These are the
// octets of its buffer, which may hold one packet or many. Called with backlogMu held.
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

// copyToArena moves a packet to the arena. Called with backlogMu held.
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

// dropArena releases the lock's own reference to the arena. Called with backlogMu held.
func (g *assocLock) dropArena() {
	if g.arena != nil {
		g.arena.Release()
		g.arena = nil
	}
}

// chargeBacklog counts what waits. Called with backlogMu held.
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

// heldOctets returns the octets of memory that it keeps. Called with backlogMu held.
func (g *assocLock) heldOctets() int {
	return g.backlogOctets + g.takenOctets + (cap(g.backlog)+cap(g.spareSlice))*packetOctets
}

// updateMemoryShort notes and says whether memory is short and the association has more than its
// share. Called with backlogMu held.
func (g *assocLock) updateMemoryShort() bool {
	g.memoryShort = g.assocAccount != nil &&
		g.backlogAccount.ExceedsShare(g.backlogAccount.Drawn()+g.assocAccount.Drawn())
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

// takeBacklog returns the backlog. The caller gives the slice back with recycleBacklog.
func (g *assocLock) takeBacklog() []rawio.Packet {
	g.backlogMu.Lock()
	b := g.backlog
	g.backlog, g.spareSlice, g.backlogOctets, g.takenOctets, g.lastBuf = g.spareSlice[:0], nil, 0,
		g.takenOctets+g.backlogOctets, nil
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
