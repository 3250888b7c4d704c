package rawio

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rddp-go/rddp/internal/invariant"
)

// Buf is a reference-counted receive buffer. A link hands it out with one reference. A holder that
// keeps payload beyond the packet's handling calls Retain. Each holder calls Release once.
type Buf struct {
	// B is the whole buffer. Only its owner, the link, writes to it.
	B []byte
	// Filled is how many octets of B hold packets, where the link puts several into one buffer. 0:
	// not known.
	Filled int

	refs atomic.Int32
	pool *Pool
}

// NewBuf returns a Buf of its own, outside any pool, with one reference.
func NewBuf(b []byte) *Buf {
	f := &Buf{B: b}
	f.refs.Store(1)
	return f
}

// Retain adds a reference. The caller holds one already.
func (b *Buf) Retain() { b.RetainMany(1) }

// RetainMany adds n references, for the packets that lie in one buffer.
func (b *Buf) RetainMany(n int) {
	if refs := b.refs.Add(int32(n)); refs < int32(n)+1 {
		_ = invariant.Violation("rawio.Buf.Retain",
			"a buffer of %d octets retained after its last release: %d references", len(b.B), refs)
	}
}

// Release drops a reference. With the last one the buffer goes back to its pool and may be
// overwritten at once.
func (b *Buf) Release() { b.releaseMany(1) }

func (b *Buf) releaseMany(n int) {
	switch n := b.refs.Add(-int32(n)); {
	case n == 0:
		if b.pool != nil {
			b.pool.put(b)
		}
	case n < 0:
		_ = invariant.Violation("rawio.Buf.Release",
			"a buffer of %d octets released more often than retained: %d references", len(b.B), n)
	}
}

// Refs returns the current number of references, for tests.
func (b *Buf) Refs() int { return int(b.refs.Load()) }

// Pool is a free list of buffers of one size. It is safe for concurrent use. After a burst it gives
// up the buffers that are no longer needed, little by little.
type Pool struct {
	bufSize int // octets in a buffer
	maxIdle int // most idle buffers kept

	mu            sync.Mutex
	freeBufs      []*Buf // guarded by mu: a stack, those at the bottom idle for longest
	handedOut     int    // guarded by mu: buffers handed out and not yet back
	getsSinceTrim int    // guarded by mu: since the last trim
	leastFree     int    // guarded by mu: fewest free buffers since then
}

const (
	getsPerTrim = 1 << 16 // buffers handed out between two trims
	maxTrim     = 64      // buffers given up at once: few beside getsPerTrim, should they be needed again
)

// NewPool returns a pool of buffers of size octets that keeps at most max of them when idle.
func NewPool(size, max int) *Pool {
	p := &Pool{bufSize: size, maxIdle: max}
	if t := poolsTracked.Load(); t != nil {
		t.add(p)
	}
	return p
}

// poolsTracked are the pools that tests watch.
var poolsTracked atomic.Pointer[poolTracker]

type poolTracker struct {
	mu    sync.Mutex
	pools []*Pool // guarded by mu
}

func (t *poolTracker) add(p *Pool) {
	t.mu.Lock()
	t.pools = append(t.pools, p)
	t.mu.Unlock()
}

// TrackPools is for tests: it remembers all pools made from now on. The function that it returns
// counts their buffers that are handed out. There are none once all links are closed and nothing is
// held.
func TrackPools() (outstanding func() int) {
	t := new(poolTracker)
	poolsTracked.Store(t)
	return func() (n int) {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, p := range t.pools {
			n += p.Outstanding()
		}
		return n
	}
}

// Get returns a buffer with one reference. Its contents are arbitrary.
func (p *Pool) Get() *Buf {
	p.mu.Lock()
	p.handedOut++
	if p.getsSinceTrim++; p.getsSinceTrim >= getsPerTrim {
		p.trimIdle()
	}
	for n := len(p.freeBufs); n > 0; n-- {
		b := p.freeBufs[n-1]
		p.freeBufs = p.freeBufs[:n-1]
		p.leastFree = min(p.leastFree, n-1)
		if !b.refs.CompareAndSwap(0, 1) {
			continue // a holder still has a reference, by mistake: no other may write to it
		}
		p.mu.Unlock()
		b.Filled = 0
		return b
	}
	p.leastFree = 0
	p.mu.Unlock()
	b := &Buf{B: make([]byte, p.bufSize), pool: p}
	b.refs.Store(1)
	return b
}

// trimIdle gives up half of the buffers that were idle all the time since the last trim. Called
// with mu held.
func (p *Pool) trimIdle() {
	p.freeBufs = slices.Delete(p.freeBufs, 0, min((p.leastFree+1)/2, maxTrim))
	p.getsSinceTrim, p.leastFree = 0, len(p.freeBufs)
}

// Outstanding returns how many buffers are handed out, so that a test can find a leak.
func (p *Pool) Outstanding() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.handedOut
}

// Trim gives up the idle buffers.
func (p *Pool) Trim() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.freeBufs = nil
}

func (p *Pool) put(b *Buf) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handedOut--
	if len(p.freeBufs) < p.maxIdle {
		p.freeBufs = append(p.freeBufs, b)
	}
}
