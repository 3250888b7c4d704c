// Package index has a hash table that many may read while one changes it, and none of them waits.
package index

import (
	"sync/atomic"
	"unsafe"

	"github.com/rddp-go/rddp/internal/ahead"
)

// Key is what a table is looked up by. Its hash must not be one that a peer who chooses keys can foresee.
type Key interface {
	comparable
	Hash() uint64
}

// least is how many chains a table has at first, a power of two.
const least = 8

// Map is the table. Get may be called at any time, by any number of goroutines; all else by one at a time. Who looks for a key while it is put in finds it or not, as
// if before or after. The zero value is empty.
type Map[K Key, V any] struct {
	chains atomic.Pointer[chains[K, V]]
	n      int
}

// chains is the nodes, by the lowest bits of their hash. There are at least twice as many as nodes, so that most have no more than the one that AheadMore asks for.
type chains[K Key, V any] []atomic.Pointer[node[K, V]]

// node is an entry. One that was taken out still leads those on who are there.
type node[K Key, V any] struct {
	key   K
	value V
	next  atomic.Pointer[node[K, V]]
}

func (c chains[K, V]) of(hash uint64) *atomic.Pointer[node[K, V]] { return &c[hash&uint64(len(c)-1)] }

// Get returns the value of a key.
func (m *Map[K, V]) Get(k K) (value V, ok bool) { return m.GetHashed(k, k.Hash()) }

// GetHashed is Get for who knows the hash.
func (m *Map[K, V]) GetHashed(k K, hash uint64) (value V, ok bool) {
	c := m.chains.Load()
	if c == nil {
		return value, false
	}
	for n := c.of(hash).Load(); n != nil; n = n.next.Load() {
		if n.key == k {
			return n.value, true
		}
	}
	return value, false
}

// Ahead asks for the memory that a Get of a key of this hash will look at first, and AheadMore, when that is there, for what it leads to. A table may change meanwhile.
func (m *Map[K, V]) Ahead(hash uint64) {
	if c := m.chains.Load(); c != nil {
		at := c.of(hash)
		ahead.Span(at, at)
	}
}

// AheadMore is the second step of Ahead.
func (m *Map[K, V]) AheadMore(hash uint64) {
	if c := m.chains.Load(); c != nil {
		ahead.Behind(c.of(hash), int(unsafe.Sizeof(node[K, V]{})))
	}
}

// Put sets the value of a key.
func (m *Map[K, V]) Put(k K, value V) {
	c := m.chains.Load()
	if c == nil || 2*m.n >= len(*c) {
		c = m.grow(c)
	}
	n := &node[K, V]{key: k, value: value}
	for at := c.of(k.Hash()); ; {
		old := at.Load()
		switch {
		case old == nil:
			at.Store(n)
			m.n++
			return
		case old.key == k:
			n.next.Store(old.next.Load())
			at.Store(n)
			return
		}
		at = &old.next
	}
}

// grow makes twice as many chains. Nodes are made anew, as readers may be on their way along the old ones.
func (m *Map[K, V]) grow(old *chains[K, V]) *chains[K, V] {
	if old == nil {
		old = new(chains[K, V])
	}
	c := make(chains[K, V], max(least, 2*len(*old)))
	for i := range *old {
		for n := (*old)[i].Load(); n != nil; n = n.next.Load() {
			moved, at := &node[K, V]{key: n.key, value: n.value}, c.of(n.key.Hash())
			moved.next.Store(at.Load())
			at.Store(moved)
		}
	}
	m.chains.Store(&c)
	return &c
}

// Delete takes a key out.
func (m *Map[K, V]) Delete(k K) {
	c := m.chains.Load()
	if c == nil {
		return
	}
	for at := c.of(k.Hash()); ; {
		n := at.Load()
		switch {
		case n == nil:
			return
		case n.key == k:
			at.Store(n.next.Load())
			m.n--
			return
		}
		at = &n.next
	}
}

// Len returns the number of keys.
func (m *Map[K, V]) Len() int { return m.n }
