package tsnset

import (
	"fmt"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
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

// A set holds no TSN at first, and says so; its window only ever grows, to a power of two, and
// takes no memory of its own up to 64.
func TestWindowOfASetOnlyGrows(t *testing.T) {
	var s Set
	_, next := s.Next(7, 0)
	_, gap := s.NextGap(7, 0)
	_, last := s.Last(7, 0)
	check.That(t, !next && !gap && !last && s.Cap() == 64 && s.Held() == 0, "the zero value holds something")
	for _, row := range []struct{ n, width, held int }{
		{1, 64, 0}, {64, 64, 0}, {65, 128, 32}, {9, 128, 32}, {4096, 4096, 528}, {4097, 8192, 1056}, {MaxWindow, MaxWindow, 8448}, {1, MaxWindow, 8448},
	} {
		s.Grow(row.n, 0, s.Cap())
		check.That(t, s.Cap() == row.width && s.Held() == row.held,
			"grown to %d: %d TSNs in %d octets, want %d in %d", row.n, s.Cap(), s.Held(), row.width, row.held)
	}
}

// The last TSN that a search is about is found, wherever the search begins, and the next is not.
func TestSearchesEndWhereTheyAreTold(t *testing.T) {
	var s Set
	const width = 3 * 4096
	s.Grow(width, 0, 0)
	s.AddRange(0, s.Cap())
	s.Grow(s.Cap(), 0, 0) // to what it is
	for _, from := range []wire.TSN{0, 1, 63, 64, 4000, 4096, 9000} {
		for n := 1; n < width; n += 1 + n/300 {
			last := from + wire.TSN(n-1)
			s.Remove(last)
			gap, ok := s.NextGap(from, n)
			_, beyond := s.NextGap(from, n-1)
			s.Add(last)
			must.That(t, ok && gap == last && !beyond, "NextGap from %d: %d, %v, want %d; %v one before", from, gap,
				ok, last, beyond)
		}
	}
	s.RemoveRange(0, s.Cap())
	for _, from := range []wire.TSN{0, 1, 63, 64, 4000, 4096, 9000} {
		for n := 1; n < width; n += 1 + n/300 {
			last := from + wire.TSN(n-1)
			s.Add(last)
			next, ok := s.Next(from, n)
			_, beyond := s.Next(from, n-1)
			prev, back := s.Last(last+from, n+int(from))
			_, before := s.Last(last+from, int(from))
			must.That(t, ok && next == last && !beyond && back && prev == last && !before,
				"Next from %d: %d, %v, want %d; %v one before; Last %d, %v", from, next, ok, last, beyond, prev, back)
			s.Remove(last)
		}
	}
}
