package tsnset

import (
	"math/bits"

	"github.com/rddp-go/rddp/sctp/wire"
)

// MaxWindow is the widest window in TSNs: the 16-bit offsets of Gap Ack Blocks reach 65535 TSNs
// beyond the cumulative one (RFC 9260 section 3.3.4).
const MaxWindow = 1 << 16

// Set is a set of TSNs of which no two are Cap or more apart. The zero value is empty, with a
// window of 64.
type Set struct {
	// The members while there is no table: TSN t is bit t mod 64. So a set that is little used lies
	// in its owner.
	smallSet  uint64
	*bitTable // nil before Grow
}

type bitTable struct {
	words []uint64 // a power of two of them; TSN t is bit t mod Cap
	// A bit for each word: whether it has any member, and whether it has all. So a search looks at
	// 16 of these, and two of words, at most.
	nonEmpty, allSet []uint64
}

// Cap returns the width of the window in TSNs.
func (s *Set) Cap() int {
	if s.bitTable == nil {
		return 64
	}
	return len(s.words) * 64
}

// Held returns the octets of memory behind the set.
func (s *Set) Held() int {
	if s.bitTable == nil {
		return 0
	}
	return 8 * (cap(s.words) + cap(s.nonEmpty) + cap(s.allSet))
}

// Grow widens the window to at least n TSNs, 1 <= n <= MaxWindow, keeping the members among the
// live TSNs from base on, live <= Cap.
func (s *Set) Grow(n int, base wire.TSN, live int) {
	if n <= s.Cap() {
		return
	}
	words := (1<<bits.Len(uint(n-1)) + 63) / 64
	sums := (words + 63) / 64
	w := Set{bitTable: &bitTable{words: make([]uint64, words), nonEmpty: make([]uint64, sums),
		allSet: make([]uint64, sums)}}
	for t, ok := s.Next(base, live); ok; t, ok = s.Next(t+1, live-int(t+1-base)) {
		w.Add(t)
	}
	*s = w
}

// wordOf returns the index of t's word, and its bit there.
func (s *bitTable) wordOf(t wire.TSN) (w int, bit uint64) {
	return int(t>>6) & (len(s.words) - 1), 1 << (t & 63)
}

// Has reports whether t is a member.
func (s *Set) Has(t wire.TSN) bool {
	if s.bitTable == nil {
		return s.smallSet>>(t&63)&1 != 0
	}
	w, b := s.wordOf(t)
	return s.words[w]&b != 0
}

// Add makes t a member.
func (s *Set) Add(t wire.TSN) {
	if s.bitTable == nil {
		s.smallSet |= 1 << (t & 63)
		return
	}
	s.addTSN(t)
}

// Remove makes t no member.
func (s *Set) Remove(t wire.TSN) {
	if s.bitTable == nil {
		s.smallSet &^= 1 << (t & 63)
		return
	}
	s.removeTSN(t)
}

func (s *bitTable) addTSN(t wire.TSN)    { s.setBits(s.wordOf(t)) }
func (s *bitTable) removeTSN(t wire.TSN) { s.clearBits(s.wordOf(t)) }

func (s *bitTable) setBits(w int, mask uint64) {
	old := s.words[w]
	now := old | mask
	s.words[w] = now
	if old == 0 {
		s.nonEmpty[w>>6] |= 1 << (w & 63)
	}
	if now == ^uint64(0) {
		s.allSet[w>>6] |= 1 << (w & 63)
	}
}

func (s *bitTable) clearBits(w int, mask uint64) {
	old := s.words[w]
	now := old &^ mask
	s.words[w] = now
	if now == 0 {
		s.nonEmpty[w>>6] &^= 1 << (w & 63)
	}
	if old == ^uint64(0) {
		s.allSet[w>>6] &^= 1 << (w & 63)
	}
}

// Next returns the first member among the n TSNs from t on, n <= Cap. Where n is negative there is
// none.
func (s *Set) Next(t wire.TSN, n int) (wire.TSN, bool) { return s.findBit(t, n, 0) }

// NextGap returns the first TSN that is no member among the n TSNs from t on, n <= Cap.
func (s *Set) NextGap(t wire.TSN, n int) (wire.TSN, bool) { return s.findBit(t, n, ^uint64(0)) }

// findBit finds the first TSN whose bit differs from flip's. A bit of sums that differs marks a
// word with such a TSN.
func (s *Set) findBit(t wire.TSN, n int, flip uint64) (wire.TSN, bool) {
	if s.bitTable == nil {
		k := bits.TrailingZeros64(bits.RotateLeft64(s.smallSet^flip, -int(t&63)))
		return t + wire.TSN(k), k < min(n, 64)
	}
	w, _ := s.wordOf(t)
	off := int(t & 63)
	if m := (s.words[w] ^ flip) >> off; m != 0 {
		k := bits.TrailingZeros64(m)
		return t + wire.TSN(k), k < n
	}
	sums := s.nonEmpty
	if flip != 0 {
		sums = s.allSet
	}
	most := min(64, len(s.words)) // words for which a sum has bits
	for d := 1; 64*d-off < n; {   // words on from the first
		p := (w + d) & (len(s.words) - 1)
		if m := (sums[p>>6] ^ flip) >> (p & 63); m != 0 {
			if k := bits.TrailingZeros64(m); k < most-p&63 {
				d, p = d+k, p+k
				k = 64*d - off + bits.TrailingZeros64(s.words[p]^flip)
				return t + wire.TSN(k), k < n
			}
		}
		d += most - p&63
	}
	return 0, false
}

// Last returns the last member among the n TSNs up to and including t, n <= Cap.
func (s *Set) Last(t wire.TSN, n int) (wire.TSN, bool) {
	if s.bitTable == nil {
		k := bits.LeadingZeros64(bits.RotateLeft64(s.smallSet, 63-int(t&63)))
		return t - wire.TSN(k), k < min(n, 64)
	}
	w, _ := s.wordOf(t)
	off := 63 - int(t&63)
	if m := s.words[w] << off; m != 0 {
		k := bits.LeadingZeros64(m)
		return t - wire.TSN(k), k < n
	}
	most := min(64, len(s.words))
	for d := 1; 64*d-off < n; { // words back from the first
		p := (w - d) & (len(s.words) - 1)
		if m := s.nonEmpty[p>>6] << (63 - p&63); m != 0 {
			k := bits.LeadingZeros64(m)
			d, p = d+k, p-k
			k = 64*d - off + bits.LeadingZeros64(s.words[p])
			return t - wire.TSN(k), k < n
		}
		d += p&(most-1) + 1
	}
	return 0, false
}

// AddRange makes the n TSNs from t on members, 0 <= n <= Cap.
func (s *Set) AddRange(t wire.TSN, n int) {
	if s.bitTable == nil {
		s.smallSet |= smallMask(t, n)
		return
	}
	for n > 0 {
		w, m, k := s.wordRange(t, n)
		s.setBits(w, m)
		t, n = t+wire.TSN(k), n-k
	}
}

// RemoveRange removes the n TSNs from t on, 0 <= n; of more than Cap, all.
func (s *Set) RemoveRange(t wire.TSN, n int) {
	if s.bitTable == nil {
		s.smallSet &^= smallMask(t, n)
		return
	}
	for n > 0 {
		w, m, k := s.wordRange(t, n)
		s.clearBits(w, m)
		t, n = t+wire.TSN(k), n-k
	}
}

// smallMask returns the bits of the n TSNs from t on in a set without a table.
func smallMask(t wire.TSN, n int) uint64 {
	return bits.RotateLeft64(^uint64(0)>>max(64-n, 0), int(t&63))
}

// wordRange returns the word of t, and the bits of the first k of n TSNs from t on: all that the
// word has.
func (s *bitTable) wordRange(t wire.TSN, n int) (w int, mask uint64, k int) {
	w, _ = s.wordOf(t)
	off := t & 63
	k = min(64-int(off), n)
	return w, ^uint64(0) >> (-k & 63) << off, k
}

// HasNear reports whether any member shares all but the last six bits with t.
func (s *Set) HasNear(t wire.TSN) bool {
	if s.bitTable == nil {
		return s.smallSet != 0
	}
	w, _ := s.wordOf(t)
	return s.words[w] != 0
}
