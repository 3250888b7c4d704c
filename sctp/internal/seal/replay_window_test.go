package seal

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/fuzzinput"
	"github.com/rddp-go/rddp/internal/test/must"
)

func TestReplayWindowHasThePowerOfTwoAbove(t *testing.T) {
	// req dtlschunk-7.13-1
	for _, c := range []struct{ asked, most int }{
		{-1, 128}, {0, 128}, {128, 128}, {129, 256}, {1 << 14, 1 << 14}, {1<<14 + 1, 1 << 15}, {1 << 20, 1 << 15},
	} {
		w := newReplayWindow(c.asked)
		check.Equal(t, "numbers", w.most, c.most)
		w.add(0)
		w.add(1 << 17)
		w.add(1<<17 + 2)
		check.That(t, w.isNew(1<<17+1) && !w.isNew(1<<17+2) && !w.isNew(1<<17+3-uint64(c.most)-1), "%+v", c)
	}
}

// Where a window begins and ends in the same word, and grows, the numbers in it stay apart: of
// those after the one that is missing every third is received, then the others.
func TestNumbersStayApartWhenTheWindowGrows(t *testing.T) {
	for missing := range uint64(130) {
		w := newReplayWindow(1024)
		for n := range uint64(700) {
			if n < missing || n > missing && n <= missing+127 || n%3 == 0 && n > missing {
				must.That(t, w.isNew(n), "missing is %d: %d is taken for old", missing, n)
				w.add(n)
			}
		}
		for n := range uint64(700) {
			want := n == missing || n > missing+127 && n%3 != 0
			must.That(t, w.isNew(n) == want, "missing is %d: %d is new: %v", missing, n, !want)
		}
	}
}

// FuzzReplayWindow compares a window with a map: no number is new twice, and none within the window
// is taken for old.
func FuzzReplayWindow(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7})
	for seed := range 300 {
		f.Add(fuzzinput.Random(seed, 400))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		z := fuzzinput.Script(in)
		w := newReplayWindow(128 << (z.Next() % 4))
		seen := make(map[uint64]bool)
		var next, forgotten uint64
		scale := 1 + z.Next()%40
		for len(z) > 0 {
			op, by := z.Next(), uint64(z.Next()*scale)
			n := next + by%3 // ahead, mostly by nothing
			switch {
			case op < 40:
				n = next + by
			case op < 140:
				n = next - min(next, by)
			case op == 255:
				w.compact()
				forgotten = next
			}
			isNew := w.isNew(n)
			must.That(t, !isNew || !seen[n] && n >= forgotten, "%d is new again", n)
			must.That(t, isNew || seen[n] || n < forgotten || n+uint64(w.most) < next+1, "%d of %d is taken for old", n,
				next)
			if isNew {
				w.add(n)
				seen[n] = true
				next = max(next, n+1)
			}
			must.That(t, w.next == next && len(w.ring)*64 <= w.most && w.floor <= next, "%+v, next is %d", w, next)
		}
	})
}
