package sctp

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
)

const (
	// maxServedAtOnce is how many associations are served at once, if so many may be. What they
	// send goes out in one batch, which the peer has space for.
	maxServedAtOnce = 128

	// lookAhead is how early a deadline that has moved is put where it is now. Then no thread is
	// woken for it.
	lookAhead = 50 * time.Millisecond
)

// timers is one heap of association deadlines under one runtime timer. With many associations a
// wheel has the near deadlines.
//
// To wake a thread for a deadline takes longer than to serve it. So a goroutine that is awake does
// what can be done. It serves associations that may be served a little earlier (assoc.Assoc.Slack),
// so that the HEARTBEATs of many go together. It looks for a deadline that has moved before the old
// one would have come.
type timers struct {
	now         func() rawio.Time
	fireConn    func(*Conn)
	flushServed func() // some have been, and what they have sent may go

	mu      sync.Mutex // a leaf lock
	heap    timerHeap  // guarded by mu
	wheel   timerWheel // guarded by mu
	timer   *time.Timer
	armedAt rawio.Time // guarded by mu: when timer goes off
	closed  bool       // guarded by mu
}

func newTimers(now func() rawio.Time, fire func(*Conn), served func()) *timers {
	t := &timers{now: now, fireConn: fire, flushServed: served, armedAt: rawio.Never}
	t.timer = time.AfterFunc(time.Hour, t.runExpired)
	t.timer.Stop()
	return t
}

// setDeadline moves the deadline of c, which may as well be served earlier by slack. A later
// deadline than the one in the heap is found when the earlier one goes off. Most deadlines move
// forward with every packet.
func (t *timers) setDeadline(c *Conn, due rawio.Time, slack time.Duration) {
	if c.timer.slack.Load() != int64(slack) { // to store is what costs
		c.timer.slack.Store(int64(slack))
	}
	if c.timer.wantedAt.Load() != due {
		c.timer.wantedAt.Store(due) // before it looks: see postponeMoved
	}
	if due >= c.timer.dueAt.Load() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	c.timer.dueAt.Store(due)
	t.insertDeadline(c, due)
}

// insertDeadline puts a deadline of c into the heap or the wheel, earlier than the one in the heap,
// if any. Called with mu held.
func (t *timers) insertDeadline(c *Conn, due rawio.Time) {
	if t.heap.len() >= manyAssocsMin {
		t.wheel.arrivals++
		if begins, ok := t.wheel.tryPut(t.now, c, due); ok {
			t.armTimer(begins)
			return
		}
	}
	t.heap.moveEarlier(c, due, due.Add(-time.Duration(c.timer.slack.Load())))
	t.armTimer(t.heap.firstDeadline())
}

// remove forgets c.
func (t *timers) remove(c *Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heap.remove(c)
	c.timer.dueAt.Store(rawio.Never)
}

func (t *timers) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.wheel = timerWheel{}
	t.timer.Stop()
}

// armTimer sets the runtime timer to go off at a time, if not earlier. Called with mu held.
func (t *timers) armTimer(at rawio.Time) {
	if t.closed || at >= t.armedAt {
		return
	}
	t.armedAt = at
	t.timer.Reset(max(0, at.Sub(t.now())))
}

// runExpired is the runtime timer's function. It serves every association that is due. Of those
// that may be served as well, it serves so many as go together.
func (t *timers) runExpired() {
	t.mu.Lock()
	t.armedAt = rawio.Never
	n, moved := 0, 0
	now := t.now()
	t.wheel.updateBusy(now)
	for list := t.wheel.takeSlot(now); list != nil; list = t.wheel.takeSlot(now) {
		t.redistributeSlot(list)
		t.wheel.recycleList(list)
	}
	for !t.closed && t.heap.len() > 0 {
		first := t.heap.entries[0]
		if first.dueAt <= now.Add(lookAhead) && t.postponeMoved() {
			if moved++; moved%maxServedAtOnce == 0 { // others want the lock too
				t.mu.Unlock()
				t.mu.Lock()
			}
			continue
		}
		if now = t.now(); first.dueAt > now && (first.earliestAt > now || n >= maxServedAtOnce) {
			break
		}
		t.heap.remove(first.c)
		first.c.timer.dueAt.Store(rawio.Never)
		t.mu.Unlock()
		t.fireConn(first.c) // puts it back with its next deadline
		if n++; n%maxServedAtOnce == 0 {
			t.flushServed()
		}
		t.mu.Lock()
	}
	t.armTimer(min(t.heap.firstDeadline(), t.wheel.nextSlotAt()))
	t.mu.Unlock()
	t.flushServed()
}

// redistributeSlot puts the deadlines of a slot that has begun where they are now. Most have moved
// to where the heap has one already. Called with mu held.
func (t *timers) redistributeSlot(list []wheelEntry) {
	for i := range list {
		if i%maxServedAtOnce == maxServedAtOnce-1 { // others want the lock too
			t.mu.Unlock()
			t.mu.Lock()
		}
		prefetchTimer(list, i)
		c, due := list[i].c, list[i].dueAt
		if t.closed || c.timer.dueAt.Load() != due {
			continue
		}
		for {
			next := min(max(c.timer.wantedAt.Load(), due), c.timer.heapAt)
			c.timer.dueAt.Store(next)
			if c.timer.wantedAt.Load() < next && next > due {
				continue // see postponeMoved
			}
			if next < c.timer.heapAt {
				t.insertDeadline(c, next)
			}
			break
		}
	}
}

// postponeMoved says whether the deadline of the first has moved, and postpones it then. It need
// not own the association. An owner that makes its deadline earlier stores that before it looks
// what the timer waits for. This function does it the other way round. Called with mu held.
func (t *timers) postponeMoved() (moved bool) {
	c, was := t.heap.entries[0].c, t.heap.entries[0].dueAt
	for due := c.timer.dueAt.Load(); ; {
		want := c.timer.wantedAt.Load()
		if want <= was {
			c.timer.dueAt.Store(due)
			return false
		}
		c.timer.dueAt.Store(want)
		if c.timer.wantedAt.Load() >= want {
			t.heap.postponeFirst(want, want.Add(-time.Duration(c.timer.slack.Load())))
			return true
		}
	}
}

// atomicTime is a rawio.Time that may be read without a lock.
type atomicTime struct{ v atomic.Int64 }

func (a *atomicTime) Load() rawio.Time   { return rawio.Time(a.v.Load()) }
func (a *atomicTime) Store(t rawio.Time) { a.v.Store(int64(t)) }

// connTimer is the next deadline of an association. Only the owner changes wantedAt and slack.
type connTimer struct {
	dueAt    atomicTime   // the deadline that the timers have for it, in the heap or in the wheel
	wantedAt atomicTime   // the one that it is to have
	slack    atomic.Int64 // and how much earlier that may be
	heapAt   rawio.Time   // the deadline in the heap, guarded by its lock: due, or later; Never: none
	heapID   int32        // in the heap, guarded by its lock; 0: it is not there
}

// init is for an association without a deadline.
func (d *connTimer) init() {
	d.dueAt.Store(rawio.Never)
	d.wantedAt.Store(rawio.Never)
	d.heapAt = rawio.Never
}

// handleTimeout is called by the timer heap when the deadline of c has come, or is near. The heap
// may send its packets with those of others.
func (c *Conn) handleTimeout() {
	a, now := c.lock()
	c.coalescing.withOthers = true
	a.HandleTimeout(now)
	if now >= c.memory.trimAt.Add(-assoc.IdleAfter/2) { // half of it is enough if a goroutine is awake for others then
		c.send.trimIdle()
		c.memory.trimAt = rawio.Never
	}
	c.trimAccounts(c.heldOctets()) // any timer is an occasion
	c.flushAndUnlock(now)
}
