package sctp

import (
	"net/netip"
	"runtime"
	"sync/atomic"
	"unsafe"
	"weak"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/internal/account"
)

// What peers make this host hold is counted, in octets of memory and not of data: see package
// account. The holder of its lock charges an association after each hold, and during a long one. A
// goroutine that adds a packet to the backlog charges that. An association that has more than its
// share while memory is short closes its window itself. The reclaimer does what others must do for
// it: an association may do nothing, or have to go.

const (
	// connOctets is the memory of an association without its core, which counts itself, and without
	// what comes and goes. It is the Conn, what it is found by, and what the runtime keeps for its
	// channels.
	connOctets        = int(unsafe.Sizeof(Conn{})-unsafe.Sizeof(assoc.Assoc{})) + 1<<10
	eventStructOctets = int(unsafe.Sizeof(Event{}))
	// chargeEveryPackets is after how many packets of one batch an association is charged again.
	chargeEveryPackets = 8

	packetOctets = int(unsafe.Sizeof(rawio.Packet{})) // of a backlog, besides its octets
)

// transportMemory is what the associations of a Transport hold together.
type transportMemory struct {
	budget *MemoryBudget   // its own, or one that it shares
	link   uint64          // of account.Peer
	own    account.Account // guarded by Transport.mu: what it holds for no peer in particular
	// guarded by Transport.mu: of ended associations with something unread
	orphans map[*account.Account]weak.Pointer[Conn]
}

func (m *transportMemory) init(t *Transport, hasOnePeer bool) {
	if m.budget = t.cfg.MemoryBudget; m.budget == nil {
		m.budget = NewMemoryBudget(t.cfg.MaxMemory)
	}
	m.budget.total.OpenOwn(&m.own)
	m.orphans = make(map[*account.Account]weak.Pointer[Conn])
	if n := m.budget.join(t); hasOnePeer {
		m.link = n
	}
}

// connMemory is what an association is charged for. Owner only, but for underPressure.
type connMemory struct {
	underPressure    atomic.Bool      // memory is short, and the association has more than its share
	unchargedPackets int32            // packets since the last charge
	chargedOctets    int              // octets of messages when it was last charged
	drawnOctets      int              // octets that the account has drawn
	account          *account.Account // what the peer makes the association hold
	trimAt           rawio.Time       // when to give back memory if the program writes no more; Never: nothing
}

// memoryHolder is an Upper that holds memory for its peer.
type memoryHolder interface {
	// Held returns how many octets, under the association lock.
	Held() int
}

// heldOctets returns the octets that the association keeps now. Owner only.
func (c *Conn) heldOctets() int {
	if c.end.memoryFreed {
		return 0
	}
	n := connOctets + c.core.Held() + 8*cap(c.recv.inbox.queue) + c.send.heldOctets() +
		c.recv.streams.count()*streamOctets
	if c.observers.events != nil {
		n += c.observers.events.queuedOctets
	}
	if c.upper.protocol != nil {
		if h, ok := c.upper.protocol.(memoryHolder); ok {
			n += h.Held()
		}
	}
	return n
}

// chargeMemory counts what the association holds now. Owner only.
func (c *Conn) chargeMemory() {
	c.memory.unchargedPackets, c.memory.chargedOctets = 0, c.core.Buffered()+c.send.heldOctets()
	if c.memory.draw(c.heldOctets()) || c.memory.underPressure.Load() {
		c.checkPressure()
	}
}

// chargePackets counts n packets, and charges the account of the association now and then.
func (c *Conn) chargePackets(n int) {
	if c.memory.unchargedPackets += int32(n); c.memory.unchargedPackets > chargeEveryPackets {
		c.chargeMemory()
		c.memory.unchargedPackets = 1
	}
}

// draw charges the account, which nearly always has drawn enough, and then is not looked at.
// Owner only.
func (m *connMemory) draw(held int) (drew bool) {
	if account.Enough(m.drawnOctets, held) {
		return false
	}
	drew = m.account.Charge(held)
	m.drawnOctets = int(m.account.Drawn())
	return drew
}

// trimAccounts keeps no more drawn than is held, by the association and by its backlog. Owner only.
func (c *Conn) trimAccounts(held int) {
	c.backlog.trimAccount()
	c.memory.account.Trim(held)
	c.memory.drawnOctets = int(c.memory.account.Drawn())
}

// chargeStepOctets is how many octets of messages calls of the program may add or take before the
// association is charged. Packets are always charged.
const chargeStepOctets = 4 << 10

// needsCharge says whether the program has taken or written so much since the last charge. Owner
// only.
func (c *Conn) needsCharge() bool {
	d := c.core.Buffered() + c.send.heldOctets() - c.memory.chargedOctets
	return d >= chargeStepOctets || d <= -chargeStepOctets
}

// checkPressure is what follows from a charge that others share. Owner only.
func (c *Conn) checkPressure() {
	p := c.memory.account.Pressure()
	switch over := c.isOverShare(); {
	case c.end.memoryFreed, over == c.memory.underPressure.Load():
	case over || c.memory.account.IsEased(c.drawnOctets()):
		c.setMemoryPressure(over)
	}
	if p != account.Calm || c.t.memory.budget.numUnderPressure.Load() > 0 {
		c.t.memory.budget.reclaimer.scheduleRun()
	}
}

// drawnOctets is what the association and its backlog have drawn.
func (c *Conn) drawnOctets() int64 { return c.memory.account.Drawn() + c.backlog.account.Drawn() }

// isOverShare says whether memory is short and the association has more than its share.
func (c *Conn) isOverShare() bool { return c.memory.account.ExceedsShare(c.drawnOctets()) }

// canAfford says whether the association may hold so many octets more. If not, what its program
// sends waits until what it has sent is acknowledged. Owner only.
func (c *Conn) canAfford(octets int) bool {
	return !c.memory.account.ExceedsShare(c.drawnOctets() + int64(octets))
}

// setMemoryPressure closes the association's window, or opens it again. Owner only.
func (c *Conn) setMemoryPressure(on bool) {
	if c.memory.underPressure.Load() == on {
		return
	}
	c.memory.underPressure.Store(on)
	c.core.SetMemoryPressure(on)
	if on {
		c.t.memory.budget.numUnderPressure.Add(1)
		c.t.stats.squeezed.Add(1)
		c.memory.draw(c.heldOctets())
	} else {
		c.t.memory.budget.numUnderPressure.Add(-1)
	}
}

// abortForMemory ends the association because others need its memory. What it has received and is
// still unread is lost, and readers get the reason. Owner only.
func (c *Conn) abortForMemory(fair int64) {
	err := &assoc.MemoryError{Held: c.drawnOctets(), Share: fair}
	c.end.unreadLostErr, c.end.failed = err, true
	c.wakeAll()
	c.dropUnread()
	if c.recv.socket != nil {
		c.recv.socket.dropUnread(c)
	}
	c.core.AbortForMemory(err.Held, err.Share)
}

// hasUnread says whether there is something for the program to read. Owner only.
func (r *recvSide) hasUnread() bool {
	for s := range r.streams.all() {
		if s.inbox.first() != nil {
			return true
		}
	}
	return r.unreadInSocket > 0 || r.inbox.first() != nil
}

// freeMemory gives all memory back, at the end of an association. Owner only.
func (c *Conn) freeMemory() {
	c.core.Close()
	if c.end.memoryFreed {
		return
	}
	c.setMemoryPressure(false)
	c.end.memoryFreed = true
	c.trimAccounts(0)
	c.afterUnlock.tasks |= taskCloseAccount
}

// openAccount begins to count what an association with the host at addr holds. Called with mu held.
func (t *Transport) openAccount(c *Conn, addr netip.Addr) {
	t.memory.budget.openAccount(c.memory.account, t.accountPeer(addr))
	c.memory.account.Share(c.backlog.account)
	c.backlog.assocAccount = c.memory.account
	if c.memory.draw(c.heldOctets()); c.memory.account.Pressure() != account.Calm {
		t.memory.budget.reclaimer.scheduleRun()
	}
}

// accountPeer is whose the account of an association with the host at addr is.
func (t *Transport) accountPeer(addr netip.Addr) account.Peer {
	return account.Peer{Addr: addr, Link: t.memory.link}
}

// closeAccount ends it, and returns the packets that wait in the backlog. What the association
// still has for its program to read stays charged.
func (t *Transport) closeAccount(c *Conn) (left []rawio.Packet) {
	left = c.backlog.close()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closeAccountLocked(c.memory.account)
	return left
}

func (t *Transport) closeAccountLocked(a *account.Account) {
	t.memory.budget.closeAccount(a)
	delete(t.memory.orphans, a)
	t.leaveBudgetAtEnd()
}

// leaveBudgetAtEnd leaves the budget once the Transport is closed and nothing of it is left that
// could be reclaimed. Called with mu held.
func (t *Transport) leaveBudgetAtEnd() {
	if t.closed && len(t.conns) == 0 && len(t.memory.orphans) == 0 {
		t.memory.budget.leave(t)
	}
}

// keepAccount is for an association that has ended and has something left to read. It counts on
// until that is read, the Conn is closed, or nothing refers to it any more. Called with mu held.
func (t *Transport) keepAccount(c *Conn) {
	if c.memory.account.Closed() {
		return
	}
	t.memory.orphans[c.memory.account] = weak.Make(c)
	runtime.AddCleanup(c, func(a [2]*account.Account) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if _, ok := t.memory.orphans[a[0]]; ok {
			a[0].Trim(0)
			a[1].Trim(0)
			t.closeAccountLocked(a[0])
		}
	}, [2]*account.Account{c.memory.account, c.backlog.account})
}

// chargeTransport counts what the Transport holds for no association in particular, which is
// nothing when it is closed. Called with mu held.
func (t *Transport) chargeTransport() {
	if t.closed {
		t.memory.own.Trim(0)
		return
	}
	t.memory.own.Charge(t.ep.Held())
}

// admitsAddr says whether another association with the host at addr has memory. Called with mu
// held, or for reading.
func (t *Transport) admitsAddr(addr netip.Addr) bool {
	if t.memory.budget.admits(t.accountPeer(addr), connOctets+4<<10) {
		return true
	}
	t.stats.memoryRefused.Add(1)
	return false
}

// Memory returns what peers make this host hold now, or all Transports that share a MemoryBudget.
// It is counted in steps of 64 KiB for an association that has as much.
func (t *Transport) Memory() Memory { return t.memory.budget.Memory() }
