package sctp

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// timers is one heap of association deadlines under one runtime timer.
type timers struct {
	now  func() rawio.Time
	fire func(*Conn)

	mu     sync.Mutex // a leaf lock
	conns  dueHeap    // guarded by mu
	timer  *time.Timer
	armed  rawio.Time // guarded by mu: when timer goes off
	closed bool       // guarded by mu
}

func newTimers(now func() rawio.Time, fire func(*Conn)) *timers {
	t := &timers{now: now, fire: fire, armed: rawio.Never}
	t.timer = time.AfterFunc(time.Hour, t.run)
	t.timer.Stop()
	return t
}

// set moves the deadline of c. A later deadline than the one in the heap is left to be found when
// the earlier one goes off: most deadlines move forward with every packet.
func (t *timers) set(c *Conn, due rawio.Time) {
	if due >= c.due.Load() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	c.due.Store(due)
	t.conns.earlier(c, due)
	t.arm()
}

// remove forgets c.
func (t *timers) remove(c *Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.heapIndex >= 0 {
		t.conns.take(c.heapIndex)
	}
	c.due.Store(rawio.Never)
}

func (t *timers) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.timer.Stop()
}

// arm sets the runtime timer to the earliest deadline. Called with mu held.
func (t *timers) arm() {
	if len(t.conns) == 0 || t.closed {
		return
	}
	first := t.conns[0].due
	if first >= t.armed {
		return
	}
	t.armed = first
	t.timer.Reset(max(0, first.Sub(t.now())))
}

// run is the runtime timer's function: it serves every association that is due.
func (t *timers) run() {
	t.mu.Lock()
	t.armed = rawio.Never
	for !t.closed && len(t.conns) > 0 && t.conns[0].due <= t.now() {
		c := t.conns.take(0)
		c.due.Store(rawio.Never)
		t.mu.Unlock()
		t.fire(c) // puts c back with its next deadline
		t.mu.Lock()
	}
	t.arm()
	t.mu.Unlock()
}

// dueHeap has associations by deadline, the earliest first: of the children of i, from heapChildren*i+1 on, none is due before i is. The deadlines lie in
// the heap itself, and four children side by side, as what takes time where there are many associations is to look at memory of each of them.
type dueHeap []dueConn

type dueConn struct {
	due rawio.Time
	c   *Conn
}

const heapChildren = 4

// earlier gives c an earlier deadline than the one that it has in the heap, if any.
func (h *dueHeap) earlier(c *Conn, due rawio.Time) {
	i := c.heapIndex
	if i < 0 {
		i = len(*h)
		*h = append(*h, dueConn{})
	}
	h.up(i, dueConn{due, c})
}

// take takes the i-th out.
func (h *dueHeap) take(i int) *Conn {
	c, end := (*h)[i].c, len(*h)-1
	last := (*h)[end]
	(*h)[end] = dueConn{}
	*h = (*h)[:end]
	c.heapIndex = -1
	if i < end && !h.up(i, last) {
		h.down(i, last)
	}
	return c
}

// up puts e at the place i, which is free, or above, and says whether above.
func (h dueHeap) up(i int, e dueConn) (above bool) {
	for i > 0 && e.due < h[(i-1)/heapChildren].due {
		parent := (i - 1) / heapChildren
		h.put(i, h[parent])
		i, above = parent, true
	}
	h.put(i, e)
	return above
}

// down puts e at the place i, which is free, or below.
func (h dueHeap) down(i int, e dueConn) {
	for {
		first := heapChildren*i + 1
		if first >= len(h) {
			break
		}
		least := first
		for k := first + 1; k < min(first+heapChildren, len(h)); k++ {
			if h[k].due < h[least].due {
				least = k
			}
		}
		if h[least].due >= e.due {
			break
		}
		h.put(i, h[least])
		i = least
	}
	h.put(i, e)
}

func (h dueHeap) put(i int, e dueConn) {
	h[i] = e
	e.c.heapIndex = i
}

// atomicTime is a rawio.Time that may be read without a lock.
type atomicTime struct{ v atomic.Int64 }

func (a *atomicTime) Load() rawio.Time   { return rawio.Time(a.v.Load()) }
func (a *atomicTime) Store(t rawio.Time) { a.v.Store(int64(t)) }
