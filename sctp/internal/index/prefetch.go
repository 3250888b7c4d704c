package index

import (
	"unsafe"

	"github.com/rddp-go/rddp/internal/prefetch"
)

// Prefetch asks for the memory that a Get of a key of this hash will look at first. PrefetchNode
// then asks for what it leads to, PrefetchValue for the value. A table may change meanwhile.
func (m *Map[K, V]) Prefetch(hash uint64) {
	if c := m.chains.Load(); c != nil {
		prefetch.Near(c.chainFor(hash))
	}
}

// PrefetchNode is the second step of Prefetch.
func (m *Map[K, V]) PrefetchNode(hash uint64) {
	if c := m.chains.Load(); c != nil {
		prefetch.Pointee(c.chainFor(hash), int(unsafe.Sizeof(node[K, V]{})))
	}
}

// PrefetchValue is the third step, if values are pointers. It asks for the line of memory that a
// value leads to.
func (m *Map[K, V]) PrefetchValue(hash uint64) {
	if c := m.chains.Load(); c != nil {
		n := (**node[K, V])(unsafe.Pointer(c.chainFor(hash)))
		prefetch.NestedPointee(n, unsafe.Offsetof((*n).value), 1)
	}
}
