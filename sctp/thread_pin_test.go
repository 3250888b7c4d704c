package sctp

import (
	"runtime"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/rawio"
)

// A processor is left to those goroutines that do not keep their threads, and each place is given
// back.
func TestThreadsAreBounded(t *testing.T) {
	const procs = 4
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	before := pinnedThreads.Load()
	done := make(chan struct{})
	go func() { // a goroutine of its own: its thread ends with it, should one be left locked
		defer close(done)
		all := make([]threadPin, 2*procs)
		for range 2 {
			n := int32(0)
			for i := range all {
				all[i].setPinned(true)
				all[i].setPinned(true)
				if all[i].isPinned {
					n++
				}
			}
			check.That(t, n != 0 && pinnedThreads.Load() == procs-1 && n == procs-1-before,
				"%d hold their threads, %d in all, with %d processors", n, pinnedThreads.Load(), procs)
			for i := range all {
				all[i].setPinned(false)
				all[i].setPinned(false)
			}
			check.Equal(t, "threads held", pinnedThreads.Load(), before)
		}
	}()
	<-done
}

// buffered is a link with a buffer in the kernel, as far as one can see.
type buffered struct{ *batches }

func (buffered) Features() rawio.Features { return 0 }
func (buffered) ReceiveBuffer() int       { return 1 << 20 }

// A receive goroutine keeps its thread in bulk, as long as few goroutines are woken, and gives it
// back in the end.
func TestThreadIsKeptInBulk(t *testing.T) {
	needsAdaptive(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2)) // one goroutine may keep its thread
	t.Run("link of the kernel", func(t *testing.T) {
		testKept(t, true, func(l *batches) rawio.Link { return buffered{l} })
	})
	t.Run("other link", func(t *testing.T) { testKept(t, false, func(l *batches) rawio.Link { return l }) })
}

func testKept(t *testing.T, kept bool, linkOf func(*batches) rawio.Link) {
	synctest.Test(t, func(t *testing.T) {
		before := pinnedThreads.Load()
		link, c := newFed(t, linkOf)
		tr := c.t
		come := func(times, packets int) {
			for range times {
				link.in <- slices.Repeat([]rawio.Packet{heartbeatTo(c, "x")}, packets)
			}
			synctest.Wait()
		}
		const enough = 100 // batches to tell by
		for _, step := range []struct {
			name string
			do   func()
			held bool
		}{
			{"too early to tell", func() { come(3, 3) }, false},
			{"bulk", func() { come(enough, 3) }, true},
			{"a trickle", func() { come(enough, 1) }, false},
			{"bulk again", func() { come(enough, 3) }, true},
			{"a goroutine is woken now and then", func() { tr.signals.wakes.Add(1); come(enough, 3); tr.signals.wakes.Add(1); come(1, 3) }, true},
			{"again and again", func() { tr.signals.wakes.Add(1); come(1, 3); tr.signals.wakes.Add(1); come(1, 3) }, false},
			{"not for a while", func() { come(enough, 3) }, true},
		} {
			step.do()
			check.Equal(t, step.name+": the thread is kept", tr.readerRole.rx.threadPin.isPinned, step.held && kept)
		}
		tr.Close()
		check.Equal(t, "threads kept at the end", pinnedThreads.Load(), before)
	})
}

// A signal that is set counts as a wake-up, once until it is taken.
func TestWakesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		s := p.a.newSignal()
		before := p.a.signals.wakes.Load()
		s.Set()
		s.Set()
		check.Equal(t, "wakes", p.a.signals.wakes.Load()-before, 1)
	})
}
