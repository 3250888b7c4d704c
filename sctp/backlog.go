package sctp

import (
	"sync"
	"sync/atomic"

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
)

// backlog is the packets that have come while the association lock was held. The holder of the lock
// handles them.
type backlog struct {
	count      atomic.Int32 // len(packets), readable without mu
	overflowed atomic.Bool  // a packet found no place; not logged yet

	memoryShort bool // nothing more is to wait
	closed      bool // the association is no more

	mu           sync.Mutex       // guards all but count, overflowed, taken and numHandled; a leaf lock
	packets      []rawio.Packet   // packets that wait
	octets       int              // of memory that they keep
	lastBuf      *rawio.Buf       // the buffer of the last of these octets
	arena        *rawio.Buf       // where the next short packet is copied to; nil: there is none
	arenaPool    *rawio.Pool      // of arenas
	takenOctets  int              // octets that taken packets keep until recycle
	spareSlice   []rawio.Packet   // the drained slice, kept for reuse
	account      *account.Account // what all this keeps
	assocAccount *account.Account // what the association keeps

	taken      []rawio.Packet // owner only: what take has returned, while some of it is left
	numHandled int            // owner only: how many of them are handled
}

// rest returns the taken packets that are not handled yet. Owner only.
func (g *backlog) rest() []rawio.Packet { return g.taken[g.numHandled:] }

// enqueueResult is what has become of a packet that was left to the holder of the lock.
type enqueueResult uint8

const (
	enqueueOK     enqueueResult = iota
	enqueueFull                 // there was no room, and it is released
	enqueueClosed               // the association is over: the packet stays the caller's
)

// enqueue leaves a packet to the holder of the lock and takes over its buffer.
func (g *backlog) enqueue(p *rawio.Packet) enqueueResult {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return enqueueClosed
	}
	keeps := g.addedOctets(p)
	if len(g.packets) >= maxBacklogPackets || keeps > maxBacklogOctets-g.octets || g.memoryShort &&
		g.updateMemoryShort() {
		g.mu.Unlock()
		p.Release()
		return enqueueFull
	}
	if isSparse(p) {
		g.copyToArena(p)
	}
	g.packets = append(g.packets, *p)
	g.octets += keeps
	g.lastBuf = p.Buf
	g.charge()
	g.count.Store(int32(len(g.packets)))
	g.mu.Unlock()
	p.Buf, p.Data = nil, nil
	return enqueueOK
}

// isSparse says whether a packet is only a small part of its buffer, which it would keep from other
// use.
func isSparse(p *rawio.Packet) bool {
	return p.Buf != nil && max(len(p.Data), p.Buf.Filled) < len(p.Buf.B)/2
}

// addedOctets returns how many more octets a waiting packet keeps from other use. These are the
// octets of its buffer, which may hold one packet or many. Called with mu held.
func (g *backlog) addedOctets(p *rawio.Packet) int {
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
func (g *backlog) copyToArena(p *rawio.Packet) {
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

// dropArena releases the lock's own reference to the arena. Called with mu held.
func (g *backlog) dropArena() {
	if g.arena != nil {
		g.arena.Release()
		g.arena = nil
	}
}

// charge counts what waits. Called with mu held.
func (g *backlog) charge() {
	if g.account.Charge(g.heldOctets()) {
		g.updateMemoryShort()
	}
}

// trimAccount counts no more than is kept.
func (g *backlog) trimAccount() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.account.Trim(g.heldOctets())
	}
}

// heldOctets returns the octets of memory that it keeps. Called with mu held.
func (g *backlog) heldOctets() int {
	return g.octets + g.takenOctets + (cap(g.packets)+cap(g.spareSlice))*packetOctets
}

// updateMemoryShort notes and says whether memory is short and the association has more than its
// share. Called with mu held.
func (g *backlog) updateMemoryShort() bool {
	g.memoryShort = g.assocAccount != nil &&
		g.account.ExceedsShare(g.account.Drawn()+g.assocAccount.Drawn())
	return g.memoryShort
}

// close gives up what there is, for good, as the association is no more. It returns the
// packets that wait.
func (g *backlog) close() (left []rawio.Packet) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	left = g.packets
	g.packets, g.spareSlice, g.lastBuf = nil, nil, nil
	g.dropArena()
	g.count.Store(0)
	g.account.Trim(0)
	return left
}

// take returns the backlog. The caller gives the slice back with recycle.
func (g *backlog) take() []rawio.Packet {
	g.mu.Lock()
	b := g.packets
	g.packets, g.spareSlice, g.octets, g.takenOctets, g.lastBuf = g.spareSlice[:0], nil, 0,
		g.takenOctets+g.octets, nil
	g.dropArena()
	g.count.Store(0)
	g.mu.Unlock()
	return b
}

func (g *backlog) recycle(b []rawio.Packet) {
	clear(b)
	g.mu.Lock()
	g.takenOctets = 0
	if cap(b) <= maxSparePackets {
		g.spareSlice = b[:0]
	}
	if !g.closed {
		g.charge()
	}
	g.mu.Unlock()
}

// enqueueBacklog leaves a packet to the holder of the lock, and returns the length of the backlog.
// It returns 0 if there will be no holder any more. The line about a packet without room is written
// after the unlock, as the caller may be the holder.
func (c *Conn) enqueueBacklog(p *rawio.Packet) int {
	switch c.backlog.enqueue(p) {
	case enqueueClosed:
		return 0
	case enqueueFull:
		c.t.stats.backlogDropped.Add(1)
		c.backlog.overflowed.Store(true)
	}
	return 1
}

// drainBacklogFirst handles the backlog, and says whether some of it is left. What comes now has to
// wait behind that.
func (c *Conn) drainBacklogFirst(now rawio.Time) bool {
	c.drainBacklog(now)
	return len(c.backlog.rest()) > 0
}

// drainBacklog handles the packets that have arrived while the lock was taken, as far as the slice
// goes. It says whether there were any.
func (c *Conn) drainBacklog(now rawio.Time) (any bool) {
	b := &c.backlog
	for len(b.rest()) > 0 || b.count.Load() > 0 {
		if len(b.rest()) == 0 {
			b.taken = b.take()
		}
		for len(b.rest()) > 0 {
			if any = true; c.sliceIsOver(sliceTime / 2) {
				return true
			}
			n := c.processPackets(now, b.rest())
			if n == 0 {
				c.orphanBacklog()
				break
			}
			rawio.ReleaseAll(b.rest()[:n])
			b.numHandled += n
		}
		b.recycle(b.taken)
		b.taken, b.numHandled = nil, 0
	}
	return any
}

// orphanBacklog sets the rest of the backlog apart. The association has ended, and these packets
// are for whatever has come after it. Owner only.
func (c *Conn) orphanBacklog() {
	if c.afterUnlock.orphanedPackets == nil {
		c.afterUnlock.orphanedPackets = new([]rawio.Packet)
	}
	*c.afterUnlock.orphanedPackets = append(*c.afterUnlock.orphanedPackets, c.backlog.rest()...)
	c.backlog.numHandled = len(c.backlog.taken)
	c.afterUnlock.tasks |= taskRerouteOrphans
}
