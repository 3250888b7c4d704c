package rawio

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/concurrent"
	"github.com/rddp-go/rddp/internal/test/must"
)

// A pool, and one buffer of it, may be used by many goroutines at once.
func TestPoolMayBeUsedAtOnce(t *testing.T) {
	outstanding := TrackPools()
	defer poolsTracked.Store(nil)
	p, shared := NewPool(10, 2), NewBuf(nil)
	use := func(int) {
		b := p.Get()
		b.RetainMany(2)
		b.B[0]++
		b.Release()
		b.releaseMany(2)
	}
	share := func(int) { shared.Retain(); shared.Refs(); shared.Release() }
	concurrent.RunTogether(300, use, use, use, share, share, func(int) { NewPool(10, 2) }, func(int) { NewPool(10, 2) },
		func(int) { outstanding(); p.Outstanding() }, func(int) { p.Trim() })
	one := p.Get()
	check.Equal(t, "buffers are said to be handed out", outstanding(), 1)
	one.Release()
	n := outstanding()
	check.That(t, n == 0 && shared.Refs() == 1, "%d buffers are handed out, one has %d references", n, shared.Refs())
}

// takeBurst has n buffers out at the same time.
func takeBurst(p *Pool, n int) {
	var out []*Buf
	for range n {
		out = append(out, p.Get())
	}
	for _, b := range out {
		b.Release()
	}
}

// What a burst has left idle is given up while the pool goes on being used, and what is used is
// kept.
func TestPoolShrinksAfterABurst(t *testing.T) {
	p := NewPool(10, 1000)
	takeBurst(p, 500)
	must.Equal(t, "idle buffers after the burst", len(p.freeBufs), 500)
	before := 500
	for range 40 {
		for range getsPerTrim / 8 {
			takeBurst(p, 8)
		}
		n := len(p.freeBufs)
		must.That(t, n <= before && before-n <= maxTrim, "%d buffers are idle after %d", n, before)
		before = n
	}
	check.Equal(t, "idle buffers, those in use", before, 8)
	check.Equal(t, "buffers since it was looked at the 40th time", p.getsSinceTrim, 500)
}

// Steady use of many buffers allocates none.
func TestPoolKeepsWhatIsUsed(t *testing.T) {
	p := NewPool(10, 1000)
	takeBurst(p, 100)
	first := p.freeBufs[0]
	for range 5 * getsPerTrim / 100 {
		takeBurst(p, 100)
	}
	check.Equal(t, "idle buffers", len(p.freeBufs), 100)
	kept := false
	for _, b := range p.freeBufs {
		kept = kept || b == first
	}
	check.That(t, kept, "a buffer in use was replaced")
}
