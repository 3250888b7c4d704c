package ahead

import (
	"testing"
	"unsafe"

	"github.com/rddp-go/rddp/internal/check"
)

// What is asked for may be anywhere, and nothing of it changes.
func TestAskingForMemoryDoesNothingElse(t *testing.T) {
	type object struct {
		first [100]byte
		next  *object
		list  []byte
		come  chan int
		last  [1000]byte
	}
	var empty object
	full := object{next: &empty, list: []byte("list"), come: make(chan int, 1)}
	full.come <- 1
	for _, o := range []*object{&empty, &full} {
		was := *o
		Span(&o.first, &o.last)
		Span(&o.list, &o.list)
		Behind(&o.next, 1)
		Behind(&o.next, int(unsafe.Sizeof(*o)))
		Behind(&o.list, 1<<20) // far beyond it
		Behind(&o.come, 96)
		Beyond(&o.next, unsafe.Offsetof(o.list), 100)
		check.That(t, o.first == was.first && o.next == was.next && len(o.list) == len(was.list) && len(o.come) == len(was.come) && o.last == was.last, "it has changed")
	}
	nowhere := uintptr(8)
	Behind(&nowhere, 200)
	check.Equal(t, "allocations", testing.AllocsPerRun(10, func() { Span(&full.first, &full.last); Behind(&full.list, 4) }), 0)
}
