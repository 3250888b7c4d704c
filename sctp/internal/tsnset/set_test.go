package tsnset

import (
	"fmt"
	"testing"

	"github.com/rddp-go/rddp/sctp/wire"
)

func ExampleSet() {
	var s Set
	s.Grow(100, 0, 0)
	s.Add(4294967295)
	s.Add(2)
	first, _ := s.Next(4294967290, 100)
	second, _ := s.Next(first+1, 100)
	fmt.Println(first, second)
	// Output: 4294967295 2
}

// The set must agree with a map, at every start and length, in a window that wraps in TSN space.
func TestScansAgreeWithAMap(t *testing.T) {
	const base = wire.TSN(0xffffffb0)
	var s Set
	s.Grow(200, base, 0)
	if s.Cap() != 256 {
		t.Fatalf("Cap %d", s.Cap())
	}
	ref := map[wire.TSN]bool{}
	for i, x := 0, uint32(1); i < 120; i++ {
		x = x*1664525 + 1013904223
		ts := base + wire.TSN(x>>8%256)
		if x>>31 == 0 {
			s.Add(ts)
			ref[ts] = true
		} else {
			s.RemoveRange(ts, 3)
			for k := range wire.TSN(3) {
				delete(ref, base+(ts-base+k)%256)
			}
		}
	}
	for from := range wire.TSN(256) {
		if s.Has(base+from) != ref[base+from] {
			t.Fatalf("Has(%d)", from)
		}
		for n := 0; n <= int(256-from); n += 7 {
			check := func(name string, got wire.TSN, ok bool, member bool, start, step wire.TSN) {
				want, found := wire.TSN(0), false
				for k := 0; k < n && !found; k++ {
					if want = start + wire.TSN(k)*step; ref[want] == member {
						found = true
					}
				}
				if ok != found || ok && got != want {
					t.Fatalf("%s(%d, %d) = %d, %v, want %d, %v", name, start-base, n, got-base, ok, want-base, found)
				}
			}
			got, ok := s.Next(base+from, n)
			check("Next", got, ok, true, base+from, 1)
			got, ok = s.NextGap(base+from, n)
			check("NextGap", got, ok, false, base+from, 1)
			back := base + wire.TSN(n) - 1
			if n > 0 {
				got, ok = s.Last(back, n)
				check("Last", got, ok, true, back, ^wire.TSN(0))
			}
		}
	}
}

func TestGrowKeepsMembers(t *testing.T) {
	const base = wire.TSN(0xfffffff0)
	var s Set
	s.Grow(64, base, 0)
	for _, k := range []wire.TSN{0, 5, 40, 63} {
		s.Add(base + k)
	}
	s.Grow(MaxWindow, base, 64)
	for k := range wire.TSN(70) {
		if want := k == 0 || k == 5 || k == 40 || k == 63; s.Has(base+k) != want {
			t.Errorf("TSN base+%d: %v", k, !want)
		}
	}
}
