package rdmap_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/rdmaptest"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// TestEverythingEndsAsTheModelSaysInAnyOrder runs random operations from both ends over a lower
// layer that places segments in any order, delivers them in order, delays acknowledgements and
// changes the MULPDU. A model of the memory says what each completion must find in place (sections
// 5.5 and Appendix B).
func TestEverythingEndsAsTheModelSaysInAnyOrder(t *testing.T) {
	// req 5040-B-1, 5040-B-2, 5040-B-4, 5040-5.5-2, 5040-5.5-6, 5040-5.5-7, 5040-5.1-6, 5040-5.3-7,
	// 5040-5.2.1-6, 5040-5.5-10, 7306-6.3-4
	for s := range uint64(60) {
		t.Run(fmt.Sprintf("seed %d", s), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(s, 5040))
			ird, ord := 1+rnd.IntN(4), 1+rnd.IntN(4)
			a, b := rdmaptest.NewParty(t, 1, rnd, ird, ord), rdmaptest.NewParty(t, 2, rnd, ord, ird)
			w := &rdmaptest.Pair{A: a.E, B: b.E, Lazy: true}
			if s%2 == 1 {
				w.Rnd = rnd
			}
			for range 3 { // until the areas are used up, then all must come to rest
				a.Used, b.Used = 0, 0
				for i := 0; a.Used < rdmaptest.Areas && b.Used < rdmaptest.Areas; i++ {
					x, y := a, b
					if rnd.IntN(2) == 0 {
						x, y = b, a
					}
					switch rnd.IntN(5) {
					case 0:
						x.Refill()
					case 1:
						if x.Used < rdmaptest.Areas && rdmap.FreeSends(x.E.QP) > 1 {
							x.Act(rnd, y)
						}
					case 2:
						for range rnd.IntN(8) {
							x.E.CutOne()
						}
					case 3:
						w.Arrive(x.E, y.E, rnd.IntN(12))
					case 4:
						for n := rnd.IntN(x.E.Unacked + 1); n > 0; n-- {
							x.E.QP.Stream().Acked()
							x.E.Unacked--
						}
						x.E.Size = 40 + rnd.IntN(200)
					}
				}
				w.Lazy = false
				w.Run()
				w.Lazy = true
				for _, p := range []*rdmaptest.Party{a, b} {
					if len(p.E.Failures) > 0 {
						t.Fatal(p.E.Failures[0])
					}
					must.That(t, len(p.SCQ.Next) == 0 && len(p.RCQ.Next) == p.Recvs && rdmap.NoSends(p.E.QP) &&
						p.E.QP.QueuedReads() == 0,
						"at rest: %d completions missing, %d receives of which %d are free", len(p.SCQ.Next),
						len(p.RCQ.Next), p.Recvs)
					rdmaptest.Same(t, "written memory", p.Mem(p.Target), p.Model)
					for i, w := range p.Words {
						got := rdmaptest.Word(p.Mem(p.Count), i)
						must.That(t, got == w, "counter %d is %d, want %d", i, got, w)
					}
				}
			}
			must.That(t, a.Done >= 20 && b.Done >= 20, "only %d and %d requests", a.Done, b.Done)
			a.E.QP.Close()
			b.E.QP.Close()
			w.Lazy = false
			b.Recvs = 0
			for _, p := range []*rdmaptest.Party{a, b} { // what is left is flushed
				for i := range p.RCQ.Next {
					p.RCQ.Next[i].WC.Status = rdmap.StatusWRFlushErr
				}
			}
			w.Run()
			check.That(t, a.E.Finished && b.E.Finished, "not closed")
		})
	}
}
