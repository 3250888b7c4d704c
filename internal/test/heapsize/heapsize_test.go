package heapsize

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/rddp-go/rddp/internal/test/check"
)

// Each octet counts once, whatever points to it, and capacity counts, also where nothing is in it
// any more.
func TestWhatIsReached(t *testing.T) {
	type node struct {
		next *node
		b    []byte
		m    map[int]*node
		any  any
	}
	const size = int(unsafe.Sizeof(node{}))
	buf, foreign := make([]byte, 100, 1000), make([]byte, 500)
	loop := &node{b: buf[:10]}
	loop.next = loop
	nodes := make([]node, 0, 4)
	nodes[:4][3].b = make([]byte, 300)
	theirs := func(p unsafe.Pointer) bool { return p == unsafe.Pointer(&foreign[0]) }
	for _, tt := range []struct {
		name string
		root any
		want int
	}{
		{"a loop, and the capacity of a slice", loop, size + 1000},
		{"parts of one buffer", &[3][]byte{buf[2:4:4], buf[3:9:9], buf[:0]}, 72 + 1000},
		{"what stands behind the length of a slice", &nodes, 24 + 4*size + 300},
		{"an interface", &node{any: &node{b: foreign}}, 2 * size},
		{"a type that is not gone to", &node{any: &[]int32{1}}, size},
		{"a map", &node{m: map[int]*node{1: loop}}, size + 64 + 18*8/7 + size + 1000},
	} {
		got := Of(func(r reflect.Type) bool { return r == reflect.TypeFor[[]int32]() }, theirs, tt.root)
		check.That(t, got == tt.want, "%s: %d octets, want %d", tt.name, got, tt.want)
	}
}
