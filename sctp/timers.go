package sctp

import (
	"container/heap"
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
	if c.heapIndex < 0 {
		heap.Push(&t.conns, c)
	} else {
		heap.Fix(&t.conns, c.heapIndex)
	}
	t.arm()
}

// remove forgets c.
func (t *timers) remove(c *Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.heapIndex >= 0 {
		heap.Remove(&t.conns, c.heapIndex)
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
	first := t.conns[0].due.Load()
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
	for !t.closed && len(t.conns) > 0 && t.conns[0].due.Load() <= t.now() {
		c := heap.Pop(&t.conns).(*Conn)
		c.due.Store(rawio.Never)
		t.mu.Unlock()
		t.fire(c) // puts c back with its next deadline
		t.mu.Lock()
	}
	t.arm()
	t.mu.Unlock()
}

// dueHeap orders associations by deadline for container/heap.
type dueHeap []*Conn

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due.Load() < h[j].due.Load() }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIndex, h[j].heapIndex = i, j
}
func (h *dueHeap) Push(x any) {
	c := x.(*Conn)
	c.heapIndex = len(*h)
	*h = append(*h, c)
}
func (h *dueHeap) Pop() any {
	old := *h
	c := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	c.heapIndex = -1
	return c
}

// atomicTime is a rawio.Time that may be read without a lock.
type atomicTime struct{ v atomic.Int64 }

func (a *atomicTime) Load() rawio.Time   { return rawio.Time(a.v.Load()) }
func (a *atomicTime) Store(t rawio.Time) { a.v.Store(int64(t)) }
