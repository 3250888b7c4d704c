package prefetch

import (
	"bytes"
	"runtime"
	"testing"
	"unsafe"

	"github.com/rddp-go/rddp/internal/test/check"
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
	ring, at := make([]object, 8), uint32(1<<32-1)
	var empty object
	full := object{next: &empty, list: []byte("list"), come: make(chan int, 1)}
	full.come <- 1
	for _, o := range []*object{&empty, &full} {
		was := *o
		Span(&o.first, &o.last)
		Near(&o.list)
		Object(o)
		FieldAt[[]byte](o, unsafe.Offsetof(o.list))
		Pointee(&o.next, 1)
		Pointee(&o.next, int(unsafe.Sizeof(*o)))
		Pointee(&o.list, 1<<20) // far beyond it
		Pointee(&o.come, 96)
		Range(o, unsafe.Offsetof(o.next), unsafe.Offsetof(o.last))
		Range(o, 0, unsafe.Sizeof(*o))
		RingElements(&ring, &at, 2)
		NestedPointee(&o.next, unsafe.Offsetof(o.list), 100)
		check.That(t, o.first == was.first && o.next == was.next && len(o.list) == len(was.list) &&
			len(o.come) == len(was.come) && o.last == was.last, "it has changed")
	}
	RingElements(new([]object), &at, 2)
	nowhere := uintptr(8)
	Pointee(&nowhere, 200)
	check.Equal(t, "allocations", testing.AllocsPerRun(10,
		func() {
			Span(&full.first, &full.last)
			Near(&full.list)
			Object(&full)
			Pointee(&full.list, 4)
			RingElements(&ring, &at, 2)
		}), 0)
}

// Octets are what they were, wherever they lie, and none may be asked for.
func TestAskingForOctetsDoesNothingElse(t *testing.T) {
	b := bytes.Repeat([]byte("octets"), 1000)
	was := bytes.Clone(b)
	for _, part := range [][]byte{nil, {}, b, b[1:], b[63:65], b[len(b)-1:], b[len(b):]} {
		ForRead(part)
		ForWrite(part)
	}
	check.That(t, bytes.Equal(b, was), "it has changed")
	check.Equal(t, "allocations", testing.AllocsPerRun(10, func() { ForRead(b); ForWrite(b) }), 0)
}

// A goroutine that waits is asked for as any other memory, also when it has gone on or none ever
// was; what it waits for comes to it.
func TestAskingForWhoWaitsDoesNothingElse(t *testing.T) {
	var s BlockedGoroutine
	s.FetchStack()
	ch, before := make(chan int), make(chan struct{})
	ChanReceiver(&ch)
	got := make(chan int)
	go func() {
		s.SetCaller()
		close(before)
		got <- <-ch
	}()
	<-before
	for range 100 {
		s.FetchStack()
		ChanReceiver(&ch)
		runtime.Gosched()
	}
	ch <- 5
	check.Equal(t, "what came", <-got, 5)
	s.FetchStack()
	ChanReceiver(new(chan int))
	check.Equal(t, "allocations",
		testing.AllocsPerRun(10, func() { s.SetCaller(); s.FetchStack(); ChanReceiver(&ch) }), 0)
}
