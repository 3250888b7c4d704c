package rawio

import (
	"sync"
	"testing"

	"github.com/rddp-go/rddp/internal/invariant"
)

func TestPoolReusesABufferAfterItsLastRelease(t *testing.T) {
	p := NewPool(100, 1)
	a := p.Get()
	if len(a.B) != 100 || a.Refs() != 1 {
		t.Fatalf("new buffer: %d octets, %d references", len(a.B), a.Refs())
	}
	a.Retain()
	a.Release()
	if b := p.Get(); b == a {
		t.Fatal("a buffer with a reference left was handed out again")
	}
	a.Release()
	if b := p.Get(); b != a || b.Refs() != 1 {
		t.Fatalf("got buffer %p with %d references, want the released %p with 1", b, b.Refs(), a)
	}
}

// Packets that lie in common buffers give back one reference each, whatever lies between them.
func TestReleaseAll(t *testing.T) {
	p := NewPool(100, 4)
	a, b := p.Get(), p.Get()
	a.RetainMany(3)
	b.RetainMany(1)
	pkts := []Packet{{Buf: a, Data: a.B[:1]}, {Buf: a, Data: a.B[1:2]}, {}, {Buf: b, Data: b.B}, {Buf: b}, {Buf: a}}
	ReleaseAll(pkts)
	if a.Refs() != 1 || b.Refs() != 0 || p.Outstanding() != 1 {
		t.Errorf("references left: %d and %d, %d buffers out", a.Refs(), b.Refs(), p.Outstanding())
	}
	for i, q := range pkts {
		if q.Buf != nil || q.Data != nil {
			t.Errorf("packet %d still refers to a buffer", i)
		}
	}
	ReleaseAll(pkts)
	ReleaseAll(nil)
	if a.Refs() != 1 {
		t.Errorf("%d references after a release of nothing", a.Refs())
	}
	a.Release()
}

func TestPoolCountsAndBoundsItsBuffers(t *testing.T) {
	p := NewPool(10, 2)
	var bufs [5]*Buf
	for i := range bufs {
		bufs[i] = p.Get()
	}
	if n := p.Outstanding(); n != 5 {
		t.Fatalf("Outstanding = %d with 5 buffers out", n)
	}
	for _, b := range bufs {
		b.Release()
	}
	if n := p.Outstanding(); n != 0 {
		t.Fatalf("Outstanding = %d with all buffers back", n)
	}
	if n := len(p.free); n != 2 {
		t.Fatalf("pool keeps %d idle buffers, want its maximum of 2", n)
	}
	p.Trim()
	if n := len(p.free); n != 0 {
		t.Fatalf("pool keeps %d idle buffers after Trim", n)
	}
}

func TestBufMisuseIsFound(t *testing.T) {
	for _, row := range []struct {
		name string
		use  func(*Buf)
	}{
		{"released more often than retained", (*Buf).Release},
		{"retained after the last release", (*Buf).Retain},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := NewPool(4, 1)
			b := p.Get()
			b.Release()
			t.Run("outside of tests the buffer is not used again", func(t *testing.T) {
				defer invariant.Tolerate()()
				before := invariant.Total()
				if row.use(b); invariant.Total() != before+1 {
					t.Error("not counted")
				}
				if p.Get() == b {
					t.Error("it is used again")
				}
			})
			defer func() {
				if recover() == nil {
					t.Fatal("no panic")
				}
			}()
			b = NewBuf(nil)
			b.Release()
			row.use(b)
		})
	}
}

func TestPacketRelease(t *testing.T) {
	b := NewBuf(make([]byte, 4))
	p := Packet{Data: b.B, Buf: b}
	b.Retain()
	p.Release()
	if b.Refs() != 1 || p.Data != nil || p.Buf != nil {
		t.Fatalf("after Release: %d references, Data %v, Buf %v", b.Refs(), p.Data, p.Buf)
	}
	p.Release() // without a Buf: nothing happens
	if b.Refs() != 1 {
		t.Fatal("a second Release of a packet dropped another reference")
	}
}

func TestPoolAllocatesNothingInSteadyState(t *testing.T) {
	p := NewPool(1500, 4)
	if n := testing.AllocsPerRun(100, func() {
		a, b := p.Get(), p.Get()
		a.Release()
		b.Release()
	}); n != 0 {
		t.Fatalf("%v allocations for two buffers", n)
	}
}

func TestPoolConcurrentUse(t *testing.T) {
	p := NewPool(8, 4)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for range 500 {
				b := p.Get()
				b.Retain()
				b.B[0] = byte(g)
				b.Release()
				if b.B[0] != byte(g) {
					t.Error("a held buffer was handed out to somebody else")
				}
				b.Release()
			}
		})
	}
	wg.Wait()
	if n := p.Outstanding(); n != 0 {
		t.Fatalf("Outstanding = %d", n)
	}
}
