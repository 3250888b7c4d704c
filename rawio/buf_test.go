package rawio

import (
	"strings"
	"sync"
	"testing"

	"github.com/rddp-go/rddp/internal/invariant"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

func TestPoolReusesABufferAfterItsLastRelease(t *testing.T) {
	p := NewPool(100, 1)
	a := p.Get()
	must.That(t, len(a.B) == 100 && a.Refs() == 1, "new buffer: %d octets, %d references", len(a.B), a.Refs())
	a.Retain()
	a.Release()
	must.That(t, p.Get() != a, "a buffer with a reference left was handed out again")
	a.Release()
	b := p.Get()
	must.That(t, b == a && b.Refs() == 1, "got buffer %p with %d references, want the released %p with 1", b,
		b.Refs(), a)
}

// Packets that lie in common buffers give back one reference each, whatever lies between them.
func TestReleaseAll(t *testing.T) {
	p := NewPool(100, 4)
	a, b := p.Get(), p.Get()
	a.RetainMany(3)
	b.RetainMany(1)
	pkts := []Packet{{Buf: a, Data: a.B[:1]}, {Buf: a, Data: a.B[1:2]}, {}, {Buf: b, Data: b.B}, {Buf: b}, {Buf: a}}
	ReleaseAll(pkts)
	check.That(t, a.Refs() == 1 && b.Refs() == 0 && p.Outstanding() == 1,
		"references left: %d and %d, %d buffers out", a.Refs(), b.Refs(), p.Outstanding())
	for i, q := range pkts {
		check.That(t, q.Buf == nil && q.Data == nil, "packet %d still refers to a buffer", i)
	}
	ReleaseAll(pkts)
	ReleaseAll(nil)
	check.Equal(t, "references after a release of nothing", a.Refs(), 1)
	a.Release()
}

func TestPoolCountsAndBoundsItsBuffers(t *testing.T) {
	p := NewPool(10, 2)
	var bufs [5]*Buf
	for i := range bufs {
		bufs[i] = p.Get()
	}
	must.Equal(t, "Outstanding with 5 buffers out", p.Outstanding(), 5)
	for _, b := range bufs {
		b.Release()
	}
	must.Equal(t, "Outstanding with all buffers back", p.Outstanding(), 0)
	must.Equal(t, "idle buffers in the pool, its maximum", len(p.freeBufs), 2)
	p.Trim()
	must.Equal(t, "idle buffers in the pool after Trim", len(p.freeBufs), 0)
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
				defer invariant.TolerateInTest()()
				before := invariant.Total()
				row.use(b)
				check.Equal(t, "not counted", invariant.Total(), before+1)
				check.That(t, p.Get() != b, "it is used again")
			})
			defer func() {
				e, ok := recover().(*invariant.Error)
				check.That(t, ok && strings.HasPrefix(e.Where, "rawio.Buf."), "it panics with %v", e)
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
	must.That(t, b.Refs() == 1 && p.Data == nil && p.Buf == nil, "after Release: %d references, Data %v, Buf %v",
		b.Refs(), p.Data, p.Buf)
	p.Release() // without a Buf: nothing happens
	must.Equal(t, "references after a second Release of a packet", b.Refs(), 1)
}

func TestPoolAllocatesNothingInSteadyState(t *testing.T) {
	p := NewPool(1500, 4)
	n := testing.AllocsPerRun(100, func() {
		a, b := p.Get(), p.Get()
		a.Release()
		b.Release()
	})
	must.That(t, n == 0, "%v allocations for two buffers", n)
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
				check.Equal(t, "octet of a held buffer", b.B[0], byte(g))
				b.Release()
			}
		})
	}
	wg.Wait()
	must.Equal(t, "Outstanding", p.Outstanding(), 0)
}
