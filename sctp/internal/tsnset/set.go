package tsnset

import (
	"math/bits"

	"github.com/rddp-go/rddp/sctp/wire"
)

// MaxWindow is the widest window in TSNs: the 16-bit offsets of Gap Ack Blocks reach 65535 TSNs
// beyond the cumulative one (RFC 9260 section 3.3.4).
const MaxWindow = 1 << 16

// Set is a set of TSNs of which no two are Cap or more apart. The zero value is empty and holds
// none: Grow comes first.
type Set struct {
	words []uint64 // a power of two of them; TSN t is bit t mod Cap
}

// Cap returns the width of the window in TSNs.
func (s *Set) Cap() int { return len(s.words) * 64 }

// Grow widens the window to at least n TSNs, 1 <= n <= MaxWindow, keeping the members among the
// live TSNs from base on.
func (s *Set) Grow(n int, base wire.TSN, live int) {
	if n <= s.Cap() {
		return
	}
	w := Set{words: make([]uint64, (1<<bits.Len(uint(n-1))+63)/64)}
	if s.Cap() > 0 {
		for t, ok := s.Next(base, live); ok; t, ok = s.Next(t+1, live-int(t+1-base)) {
			w.Add(t)
		}
	}
	*s = w
}

func (s *Set) at(t wire.TSN) (word *uint64, bit uint64) {
	return &s.words[int(t>>6)&(len(s.words)-1)], 1 << (t & 63)
}

// Has reports whether t is a member.
func (s *Set) Has(t wire.TSN) bool {
	w, b := s.at(t)
	return *w&b != 0
}

// Add makes t a member.
func (s *Set) Add(t wire.TSN) {
	w, b := s.at(t)
	*w |= b
}

// Remove makes t no member.
func (s *Set) Remove(t wire.TSN) {
	w, b := s.at(t)
	*w &^= b
}

// Next returns the first member among the n TSNs from t on, n <= Cap.
func (s *Set) Next(t wire.TSN, n int) (wire.TSN, bool) { return s.scan(t, n, 0) }

// NextGap returns the first TSN that is no member among the n TSNs from t on, n <= Cap.
func (s *Set) NextGap(t wire.TSN, n int) (wire.TSN, bool) { return s.scan(t, n, ^uint64(0)) }

// scan finds the first TSN whose bit differs from flip's.
func (s *Set) scan(t wire.TSN, n int, flip uint64) (wire.TSN, bool) {
	for n > 0 {
		w, _ := s.at(t)
		off := int(t & 63)
		if m := (*w ^ flip) >> off; m != 0 {
			k := bits.TrailingZeros64(m)
			return t + wire.TSN(k), k < n
		}
		t += wire.TSN(64 - off)
		n -= 64 - off
	}
	return 0, false
}

// Last returns the last member among the n TSNs up to and including t, n <= Cap.
func (s *Set) Last(t wire.TSN, n int) (wire.TSN, bool) {
	for n > 0 {
		w, _ := s.at(t)
		off := int(t & 63)
		if m := *w << (63 - off); m != 0 {
			k := bits.LeadingZeros64(m)
			return t - wire.TSN(k), k < n
		}
		t -= wire.TSN(off + 1)
		n -= off + 1
	}
	return 0, false
}

// AddRange makes the n TSNs from t on members, 0 <= n <= Cap.
func (s *Set) AddRange(t wire.TSN, n int) {
	for n > 0 {
		w, m, k := s.part(t, n)
		*w |= m
		t, n = t+wire.TSN(k), n-k
	}
}

// RemoveRange removes the n TSNs from t on, 0 <= n <= Cap.
func (s *Set) RemoveRange(t wire.TSN, n int) {
	for n > 0 {
		w, m, k := s.part(t, n)
		*w &^= m
		t, n = t+wire.TSN(k), n-k
	}
}

// part returns the word of t, and the bits in it of the first k of n TSNs from t on, which are all that it has.
func (s *Set) part(t wire.TSN, n int) (word *uint64, mask uint64, k int) {
	word, _ = s.at(t)
	off := int(t & 63)
	k = min(64-off, n)
	return word, ^uint64(0) >> (64 - k) << off, k
}
