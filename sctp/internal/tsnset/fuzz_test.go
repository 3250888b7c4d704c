package tsnset

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/fuzzinput"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

// FuzzSet compares a set of TSNs with a map, over a window that slides, and wraps.
func FuzzSet(f *testing.F) {
	f.Add([]byte{0, 1, 5, 0, 7, 3, 4, 2, 4, 9, 1, 1, 6, 200})
	f.Add([]byte{8, 3, 200, 4, 0, 255, 8, 60, 5, 5, 60, 9})
	f.Add([]byte{6, 255, 0, 255, 0, 254, 5, 250, 9, 2, 100, 4, 3, 100, 7, 60})
	f.Add([]byte{255, 7, 255, 7, 255, 7, 255, 0, 200, 0, 4, 1, 0, 8, 9, 255, 5, 9, 255, 6, 255, 255, 3, 40, 90, 5, 9,
		255, 4, 12, 255})
	for seed := range 250 {
		in := fuzzinput.Random(seed, 200)
		in[0] |= byte(seed % 32) // wide windows, mostly
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) == 0 || len(in) > 200 {
			return
		}
		z, scale := fuzzinput.Script(in[1:]), int(in[0]%32)+1
		base := wire.TSN(1<<32 - 100)
		live := 64 // TSNs from base on that may be members
		var s Set
		s.Grow(live, base, 0)
		ref := map[wire.TSN]bool{}
		for len(z) > 0 {
			op, at := z.Next()%9, z.Next()*scale
			i := base.Add(uint32(at % live))
			n := min(z.Next()*scale, live-at%live)
			switch op {
			case 0, 1:
				s.Add(i)
				ref[i] = true
			case 2:
				s.Remove(i)
				delete(ref, i)
			case 3:
				s.RemoveRange(i, n)
				for k := range n {
					delete(ref, i.Add(uint32(k)))
				}
			case 4:
				got, ok := s.Next(i, n)
				agree(t, "Next", ref, i, 1, n, true, got, ok)
			case 5:
				got, ok := s.NextGap(i, n)
				agree(t, "NextGap", ref, i, 1, n, false, got, ok)
			case 6:
				n = min(at%live+1, n)
				got, ok := s.Last(i, n)
				agree(t, "Last", ref, i, ^uint32(0), n, true, got, ok)
			case 8:
				s.AddRange(i, n)
				for k := range n {
					ref[i.Add(uint32(k))] = true
				}
			case 7: // the window slides, or grows
				if n%2 == 0 {
					n = min(at, live)
					s.RemoveRange(base, n)
					for k := range n {
						delete(ref, base.Add(uint32(k)))
					}
					base = base.Add(uint32(n))
				} else if live < 8192 {
					s.Grow(live+at, base, live)
					live += at
				}
			}
			must.That(t, s.Has(i) == ref[i] || i-base >= wire.TSN(live), "Has(%d) is %v", i, s.Has(i))
			near := false
			for u := i &^ 63; u != i|63; u++ {
				near = near || ref[u] || ref[u+1] || ref[u-wire.TSN(s.Cap())] || ref[u+1-wire.TSN(s.Cap())] ||
					ref[u+wire.TSN(s.Cap())]
			}
			must.That(t, s.HasNear(i) == near, "Near(%d) is %v", i, s.HasNear(i))
			for w := 0; s.bitTable != nil && w < len(s.words); w++ {
				word := s.words[w]
				some, full := s.nonEmpty[w>>6]>>(w&63)&1 != 0, s.allSet[w>>6]>>(w&63)&1 != 0
				must.That(t, some == (word != 0) && full == (word+1 == 0), "word %d is %x, its sums are %v and %v", w,
					word, some, full)
			}
		}
	})
}

// agree searches n TSNs from t on for the first whose membership is as wanted.
func agree(t *testing.T, what string, ref map[wire.TSN]bool, from wire.TSN, step uint32, n int, member bool,
	got wire.TSN, ok bool) {
	t.Helper()
	for k := range n {
		if u := from.Add(step * uint32(k)); ref[u] == member {
			must.That(t, ok && got == u, "%s from %d, %d TSNs: %d, %v, want %d", what, from, n, got, ok, u)
			return
		}
	}
	must.That(t, !ok, "%s from %d, %d TSNs: %d, want none", what, from, n, got)
}
