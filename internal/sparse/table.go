// Package sparse holds tables indexed by 16-bit numbers that a peer may choose, such as stream
// numbers. Their memory follows what is in use, and not the highest number.
package sparse

import "unsafe"

// PageLen is how many neighbouring numbers share a page.
const PageLen = 64

// Table has a T for each number, zero at first. The zero Table is empty. The T of number 0 lies in
// the table itself, which is all that one stream needs.
type Table[T any] struct {
	pages      []*[PageLen]T
	heldOctets int32
	zero       T
}

// At returns the T of a number, nil if neither it nor a near one was used. For 0 it is never nil.
func (t *Table[T]) At(n uint16) *T {
	if n == 0 {
		return &t.zero
	}
	if p := int(n / PageLen); p < len(t.pages) && t.pages[p] != nil {
		return &t.pages[p][n%PageLen]
	}
	return nil
}

// Use returns the T of a number, and makes room for it if there is none.
func (t *Table[T]) Use(n uint16) *T {
	if x := t.At(n); x != nil { // without a call
		return x
	}
	return t.addPage(n)
}

// addPage makes room for a number that has none.
func (t *Table[T]) addPage(n uint16) *T {
	p := int(n / PageLen)
	if p >= len(t.pages) {
		dir := make([]*[PageLen]T, min(max(2*len(t.pages), p+1), 1<<16/PageLen))
		copy(dir, t.pages)
		t.heldOctets += int32(unsafe.Sizeof(dir[0])) * int32(len(dir)-len(t.pages))
		t.pages = dir
	}
	t.pages[p] = new([PageLen]T)
	t.heldOctets += int32(unsafe.Sizeof(*t.pages[p]))
	return &t.pages[p][n%PageLen]
}

// PageStart returns the first number of the page of n.
func PageStart(n uint16) uint16 { return n / PageLen * PageLen }

// All goes through what is there, in the order of numbers.
func (t *Table[T]) All(yield func(uint16, *T) bool) {
	if !yield(0, &t.zero) {
		return
	}
	for p, page := range t.pages {
		for i := 0; page != nil && i < PageLen; i++ {
			if p+i > 0 && !yield(uint16(p*PageLen+i), &page[i]) {
				return
			}
		}
	}
}

// Held returns the octets of memory behind the table.
func (t *Table[T]) Held() int { return int(t.heldOctets) }
