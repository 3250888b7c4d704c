package sctp

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

const (
	// atOnce is how many associations are served at once, if so many may be: what they send goes out in one batch, which finds room at the peer.
	atOnce = 128

	// lookAhead is how far ahead of its time a deadline that has moved is taken to where it is now: nobody needs to wake up for it then.
	lookAhead = 50 * time.Millisecond
)

// timers is one heap of association deadlines, with a wheel for those that are near where there are many, under one runtime timer.
//
// To wake a thread for a deadline takes longer than to serve it, so who is awake does what can be done: an association that may be served a little
// earlier is (assoc.Assoc.Slack), so that the HEARTBEATs of many go together, and a deadline that has moved is looked for before it would have come.
type timers struct {
	now    func() rawio.Time
	fire   func(*Conn)
	served func() // some have been, and what they have sent may go

	mu     sync.Mutex // a leaf lock
	conns  dueHeap    // guarded by mu
	soon   dueWheel   // guarded by mu
	timer  *time.Timer
	armed  rawio.Time // guarded by mu: when timer goes off
	closed bool       // guarded by mu
}

func newTimers(now func() rawio.Time, fire func(*Conn), served func()) *timers {
	t := &timers{now: now, fire: fire, served: served, armed: rawio.Never}
	t.timer = time.AfterFunc(time.Hour, t.run)
	t.timer.Stop()
	return t
}

// set moves the deadline of c, which may as well be served earlier by slack. A later deadline than the one in the heap is left to be found when
// the earlier one goes off: most deadlines move forward with every packet.
func (t *timers) set(c *Conn, due rawio.Time, slack time.Duration) {
	if c.slack.Load() != int64(slack) { // to store is what costs
		c.slack.Store(int64(slack))
	}
	if c.wants.Load() != due {
		c.wants.Store(due) // before it looks: see later
	}
	if due >= c.due.Load() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	c.due.Store(due)
	t.put(c, due)
}

// put has c wait for a deadline that is earlier than the one in the heap, if any. Called with mu held.
func (t *timers) put(c *Conn, due rawio.Time) {
	if t.conns.len() >= crowded {
		t.soon.come++
		if begins, ok := t.soon.put(t.now, c, due); ok {
			t.arm(begins)
			return
		}
	}
	t.conns.earlier(c, due, due.Add(-time.Duration(c.slack.Load())))
	t.arm(t.conns.first())
}

// remove forgets c.
func (t *timers) remove(c *Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conns.remove(c)
	c.due.Store(rawio.Never)
}

func (t *timers) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.soon = dueWheel{}
	t.timer.Stop()
}

// arm has the runtime timer go off at a time, if not earlier. Called with mu held.
func (t *timers) arm(at rawio.Time) {
	if t.closed || at >= t.armed {
		return
	}
	t.armed = at
	t.timer.Reset(max(0, at.Sub(t.now())))
}

// run is the runtime timer's function: it serves every association that is due, and of those that may be served as well so many as go together.
func (t *timers) run() {
	t.mu.Lock()
	t.armed = rawio.Never
	n, moved := 0, 0
	now := t.now()
	t.soon.looked(now)
	for list := t.soon.take(now); list != nil; list = t.soon.take(now) {
		t.sort(list)
		t.soon.done(list)
	}
	for !t.closed && t.conns.len() > 0 {
		first := t.conns.of[0]
		if first.due <= now.Add(lookAhead) && t.later() {
			if moved++; moved%atOnce == 0 { // others want the lock too
				t.mu.Unlock()
				t.mu.Lock()
			}
			continue
		}
		if now = t.now(); first.due > now && (first.early > now || n >= atOnce) {
			break
		}
		t.conns.remove(first.c)
		first.c.due.Store(rawio.Never)
		t.mu.Unlock()
		t.fire(first.c) // puts it back with its next deadline
		if n++; n%atOnce == 0 {
			t.served()
		}
		t.mu.Lock()
	}
	t.arm(min(t.conns.first(), t.soon.begins()))
	t.mu.Unlock()
	t.served()
}

// sort puts the deadlines of a slot that has begun where they are now: mostly they have moved, to where the heap has one already. Called with mu held.
func (t *timers) sort(list []dueSoon) {
	for i := range list {
		if i%atOnce == atOnce-1 { // others want the lock too
			t.mu.Unlock()
			t.mu.Lock()
		}
		if k := i + fetchTimers; k < len(list) {
			list[k].c.fetchTimes()
		}
		c, due := list[i].c, list[i].due
		if t.closed || c.due.Load() != due {
			continue
		}
		for {
			next := min(max(c.wants.Load(), due), c.inHeap)
			c.due.Store(next)
			if c.wants.Load() < next && next > due {
				continue // see later
			}
			if next < c.inHeap {
				t.put(c, next)
			}
			break
		}
	}
}

// later says whether the deadline of the first has moved, and has it wait for that. It need not own the association for it: whose deadline becomes
// earlier meanwhile says so before it looks what is waited for, and this the other way round. Called with mu held.
func (t *timers) later() (moved bool) {
	c, was := t.conns.of[0].c, t.conns.of[0].due
	for due := c.due.Load(); ; {
		want := c.wants.Load()
		if want <= was {
			c.due.Store(due)
			return false
		}
		c.due.Store(want)
		if c.wants.Load() >= want {
			t.conns.postpone(want, want.Add(-time.Duration(c.slack.Load())))
			return true
		}
	}
}

// atomicTime is a rawio.Time that may be read without a lock.
type atomicTime struct{ v atomic.Int64 }

func (a *atomicTime) Load() rawio.Time   { return rawio.Time(a.v.Load()) }
func (a *atomicTime) Store(t rawio.Time) { a.v.Store(int64(t)) }
