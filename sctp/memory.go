package sctp

import (
	"cmp"
	"math"
	"net/netip"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"
	"weak"

	"github.com/rddp-go/rddp/internal/limits"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/internal/account"
)

// What peers make this host hold is counted, in octets of memory and not of data: see package account. An association is charged
// by its owner after each turn, and amid a long one, its backlog by who leaves a packet there. An association that has more than its share while memory
// is short closes its window itself. What others must do for it (an association that does nothing, or has to go) the reclaimer does.

const (
	// memoryShare is the part of what the process may use that peers may take by default, and memoryUnknown that where nothing
	// is known.
	memoryShare   = 4
	memoryUnknown = 1 << 30

	// connHeld is the memory of an association besides what is counted as it comes and goes, and its core, which counts itself: the Conn, what it is found by,
	// and what the runtime keeps for its channels.
	connHeld  = int(unsafe.Sizeof(Conn{})-unsafe.Sizeof(assoc.Assoc{})) + 1<<10
	eventHeld = int(unsafe.Sizeof(Event{}))
	// chargeEvery is after how many packets of one batch an association is charged amid it.
	chargeEvery = 8

	packetHeld = int(unsafe.Sizeof(rawio.Packet{})) // of a backlog, besides its octets
)

// maxMemory is what peers may make the Transport hold.
func (c *TransportConfig) maxMemory() int64 {
	switch {
	case c.MaxMemory > 0:
		return c.MaxMemory
	case c.MaxMemory < 0:
		return math.MaxInt64 / 2
	}
	if n, ok := limits.Memory(); ok {
		return n / memoryShare
	}
	return memoryUnknown
}

// holder is an Upper that holds memory for its peer.
type holder interface {
	// Held returns how many octets, under the gate.
	Held() int
}

// held returns the octets that the association keeps now. Owner only.
func (c *Conn) held() int {
	if c.freed {
		return 0
	}
	n := connHeld + c.a.Held() + 8*cap(c.inbox.q) + c.sendbuf.held()
	if c.noted {
		n += c.notes.octets
	}
	if c.upper != nil {
		if h, ok := c.upper.(holder); ok {
			n += h.Held()
		}
	}
	return n
}

// charge counts what the association holds now. Owner only.
func (c *Conn) charge() {
	c.uncharged, c.chargedAt = 0, c.a.Buffered()+c.sendbuf.held()
	if c.draw(c.held()) || c.squeezed {
		c.weigh()
	}
}

// draw charges the account, which nearly always has drawn enough, and then is not looked at. Owner only.
func (c *Conn) draw(held int) (drew bool) {
	if account.Enough(c.drawnTo, held) {
		return false
	}
	drew = c.account.Charge(held)
	c.drawnTo = int(c.account.Drawn())
	return drew
}

// trim keeps no more drawn than is held, by the association and by its backlog. Owner only.
func (c *Conn) trim(held int) {
	c.gate.trim()
	c.account.Trim(held)
	c.drawnTo = int(c.account.Drawn())
}

// chargeStep is how many octets of messages calls of the program may add or take before the association is charged. Packets are always
// charged.
const chargeStep = 4 << 10

// moved says whether the program has taken or written so much since the last charge. Owner only.
func (c *Conn) moved() bool {
	d := c.a.Buffered() + c.sendbuf.held() - c.chargedAt
	return d >= chargeStep || d <= -chargeStep
}

// weigh is what follows from a charge that others share. Owner only.
func (c *Conn) weigh() {
	p := c.account.Pressure()
	switch over := c.overdrawn(); {
	case c.freed, over == c.squeezed:
	case over || c.account.Eased(c.drawn()):
		c.squeeze(over)
	}
	if p != account.Calm || c.t.squeezed.Load() > 0 {
		c.t.reclaimer.call()
	}
}

// drawn is what the association and its backlog have drawn.
func (c *Conn) drawn() int64 { return c.account.Drawn() + c.gate.account.Drawn() }

// overdrawn says whether memory is short and the association has more than its share.
func (c *Conn) overdrawn() bool { return c.account.Over(c.drawn()) }

// affords says whether the association may hold so many octets more: what its program sends waits else, until what it has sent is
// acknowledged. Owner only.
func (c *Conn) affords(octets int) bool { return !c.account.Over(c.drawn() + int64(octets)) }

// squeeze closes the association's window, or opens it again. Owner only.
func (c *Conn) squeeze(on bool) {
	if c.squeezed == on {
		return
	}
	c.squeezed = on
	c.squeezedNow.Store(on)
	c.a.Squeeze(on)
	if on {
		c.t.squeezed.Add(1)
		c.t.stats.squeezed.Add(1)
		c.draw(c.held())
	} else {
		c.t.squeezed.Add(-1)
	}
}

// starve ends the association because others need its memory. What it has received and nobody has read is lost, and readers
// hear why. Owner only.
func (c *Conn) starve(fair int64) {
	err := &assoc.MemoryError{Held: c.drawn(), Share: fair}
	c.lost, c.failed = err, true
	c.wakeAll()
	c.dropUnread()
	if c.socket != nil {
		c.socket.drop(c)
	}
	c.a.AbortForMemory(err.Held, err.Share)
}

// unreadLeft says whether there is something for the program to read. Owner only.
func (c *Conn) unreadLeft() bool {
	for _, s := range c.streams {
		if s.inbox.first() != nil {
			return true
		}
	}
	return c.unread > 0 || c.inbox.first() != nil
}

// giveUp gives all memory back, at the end of an association. Owner only.
func (c *Conn) giveUp() {
	c.a.Close()
	if c.freed {
		return
	}
	c.squeeze(false)
	c.freed = true
	c.trim(0)
	c.wake |= wakeFreed
}

// openAccount begins to count what an association with the host at addr holds. Called with mu held.
func (t *Transport) openAccount(c *Conn, addr netip.Addr) {
	t.account.Open(c.account, addr)
	c.account.Share(c.gate.account)
	c.gate.owner = c.account
	if c.draw(c.held()); c.account.Pressure() != account.Calm {
		t.reclaimer.call()
	}
}

// closeAccount ends it, and returns the packets that wait in the backlog. What the association still has for its program to read stays charged.
func (t *Transport) closeAccount(c *Conn) (left []rawio.Packet) {
	left = c.gate.close()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closeAccountLocked(c.account)
	return left
}

func (t *Transport) closeAccountLocked(a *account.Account) {
	t.account.Close(a)
	delete(t.remains, a)
}

// keepAccount is for an association that has ended and has something left to read: it counts on until that is read, or the Conn
// is closed, or nobody has it any more. Called with mu held.
func (t *Transport) keepAccount(c *Conn) {
	if c.account.Closed() {
		return
	}
	t.remains[c.account] = weak.Make(c)
	runtime.AddCleanup(c, func(a [2]*account.Account) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if _, ok := t.remains[a[0]]; ok {
			a[0].Trim(0)
			a[1].Trim(0)
			t.closeAccountLocked(a[0])
		}
	}, [2]*account.Account{c.account, c.gate.account})
}

// chargeOwn counts what the Transport holds for no association in particular, which is nothing when
// it is closed. Called with mu held.
func (t *Transport) chargeOwn() {
	if t.closed {
		t.own.Trim(0)
		return
	}
	t.own.Charge(t.ep.Held())
}

// reclaimer takes memory back from associations that have too much, one call at a time.
type reclaimer struct {
	t       *Transport
	running atomic.Bool
	timer   *time.Timer
	pause   time.Duration // until the next run, so that runs take a tenth of the time at most
}

const reclaimPause = 2 * time.Millisecond

func (r *reclaimer) init(t *Transport) {
	r.t = t
	r.timer = time.AfterFunc(time.Hour, r.run)
	r.timer.Stop()
}

// call has it run soon. No lock but gates may be held.
func (r *reclaimer) call() {
	if !r.running.Load() && !r.running.Swap(true) {
		r.timer.Reset(r.pause)
	}
}

// run is the timer's function.
func (r *reclaimer) run() {
	began := time.Now()
	r.t.reclaim()
	r.pause = max(reclaimPause, 9*time.Since(began))
	r.running.Store(false) // who calls from now on has seen what was done, or calls again
}

// debtor is an association that has more than its share.
type debtor struct {
	c     *Conn
	drawn int64
}

// reclaim squeezes every association that has more than its share, ends the greediest while that is not enough, and lets those go on
// that have no more than their share any longer. Of two that have the same the younger goes first.
func (t *Transport) reclaim() {
	var list []debtor
	t.mu.RLock()
	for c := range t.conns {
		if d := c.drawn(); c.account.Over(d) || c.squeezedNow.Load() {
			list = append(list, debtor{c, d})
		}
	}
	for a, w := range t.remains {
		if c := w.Value(); c != nil && a.Over(a.Drawn()) {
			list = append(list, debtor{c, a.Drawn()})
		}
	}
	t.mu.RUnlock()
	slices.SortFunc(list, func(a, b debtor) int {
		return cmp.Or(cmp.Compare(b.drawn, a.drawn), cmp.Compare(b.c.born, a.c.born))
	})
	aborted := false
	for _, end := range [...]bool{false, true} {
		for _, d := range list {
			c := d.c
			if end && c.account.Pressure() != account.Full {
				continue
			}
			c.lock()
			c.trim(c.held())
			switch over := c.overdrawn(); {
			case c.freed:
			case end && over && c.account.Pressure() == account.Full:
				t.stats.memoryAborted.Add(1)
				aborted = true
				c.starve(c.account.Fair())
			case over, c.squeezed && c.account.Eased(c.drawn()):
				c.squeeze(over)
			}
			c.unlock()
		}
	}
	if aborted {
		t.journal.reached(limitMemory, t.stats.memoryAborted.Load())
	}
}

// admits says whether another association with the host at addr has memory. Called with mu held, or for reading.
func (t *Transport) admits(addr netip.Addr) bool {
	if t.account.Admits(addr, connHeld+4<<10) {
		return true
	}
	t.stats.memoryRefused.Add(1)
	return false
}

// Memory is how much of TransportConfig.MaxMemory is used.
type Memory struct {
	Used, Max int64 // octets
}

// Memory returns what peers make this host hold now. It is counted in steps of 64 KiB for an association that has as much.
func (t *Transport) Memory() Memory { return Memory{Used: t.account.Used(), Max: t.account.Max()} }
