package tsnset

import "testing"

// Last looks no further back than it is asked to, also within one word.
func TestLastStaysWithinItsRange(t *testing.T) {
	var s Set
	s.Grow(64, 0, 0)
	s.Add(10)
	for n := 1; n <= 20; n++ {
		got, ok := s.Last(15, n)
		if want := n >= 6; ok != want || ok && got != 10 {
			t.Errorf("Last(15, %d) = %d, %v", n, got, ok)
		}
	}
}
