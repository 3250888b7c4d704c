// Package index has a hash table that many goroutines may read, without waiting, while one changes
// it. A reader sees each entry from before a change or from after it.
package index

import "sync/atomic"

// Key is what a table is looked up by. A peer that chooses keys must not be able to predict the
// hash.
type Key interface {
	comparable
	Hash() uint64
}

// minChains is how many chains a table has at first, a power of two.
const minChains = 8

// Map is the table. Any number of goroutines may call Get at any time; all else is for one at a
// time. A Get during the Put of its key finds it or not, as if before or after. The zero value is
// empty.
type Map[K Key, V any] struct {
	chains atomic.Pointer[chains[K, V]]
	count  int
}

// chains is the nodes, by the lowest bits of their hash. There are at least twice as many as nodes,
// so that most have no more than the one that PrefetchNode asks for.
type chains[K Key, V any] []atomic.Pointer[node[K, V]]

// node is an entry. A deleted one still leads on the readers that are at it.
type node[K Key, V any] struct {
	key   K
	value V
	next  atomic.Pointer[node[K, V]]
}

func (c chains[K, V]) chainFor(hash uint64) *atomic.Pointer[node[K, V]] {
	return &c[hash&uint64(len(c)-1)]
}

// Get returns the value of a key.
func (m *Map[K, V]) Get(k K) (value V, ok bool) { return m.GetHashed(k, k.Hash()) }

// GetHashed is Get for callers that know the hash.
func (m *Map[K, V]) GetHashed(k K, hash uint64) (value V, ok bool) {
	c := m.chains.Load()
	if c == nil {
		return value, false
	}
	for n := c.chainFor(hash).Load(); n != nil; n = n.next.Load() {
		if n.key == k {
			return n.value, true
		}
	}
	return value, false
}

// Put sets the value of a key.
func (m *Map[K, V]) Put(k K, value V) {
	c := m.chains.Load()
	if c == nil || 2*m.count >= len(*c) {
		c = m.grow(c)
	}
	n := &node[K, V]{key: k, value: value}
	for at := c.chainFor(k.Hash()); ; {
		old := at.Load()
		switch {
		case old == nil:
			at.Store(n)
			m.count++
			return
		case old.key == k:
			n.next.Store(old.next.Load())
			at.Store(n)
			return
		}
		at = &old.next
	}
}

// grow makes twice as many chains. Nodes are copied, as readers may still follow the old ones.
func (m *Map[K, V]) grow(old *chains[K, V]) *chains[K, V] {
	if old == nil {
		old = new(chains[K, V])
	}
	c := make(chains[K, V], max(minChains, 2*len(*old)))
	for i := range *old {
		for n := (*old)[i].Load(); n != nil; n = n.next.Load() {
			moved, at := &node[K, V]{key: n.key, value: n.value}, c.chainFor(n.key.Hash())
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
	for at := c.chainFor(k.Hash()); ; {
		n := at.Load()
		switch {
		case n == nil:
			return
		case n.key == k:
			at.Store(n.next.Load())
			m.count--
			return
		}
		at = &n.next
	}
}

// Len returns the number of keys.
func (m *Map[K, V]) Len() int { return m.count }
