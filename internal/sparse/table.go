// Package sparse holds tables indexed by 16-bit numbers that a peer may choose, such as those of streams: what
// they take follows what is in use, not the highest number.
package sparse

import "unsafe"

// PageLen is how many neighbouring numbers share a page.
const PageLen = 64

// Table has a T for each number, zero at first. The zero Table is empty. That of number 0 lies in the table: who uses one
// stream only uses that.
type Table[T any] struct {
	dir  []*[PageLen]T
	held int32
	zero T
}

// At returns the T of a number, nil where neither it nor a near one was used, which is never so for 0.
func (t *Table[T]) At(n uint16) *T {
	if n == 0 {
		return &t.zero
	}
	if p := int(n / PageLen); p < len(t.dir) && t.dir[p] != nil {
		return &t.dir[p][n%PageLen]
	}
	return nil
}

// Use returns the T of a number, and makes room for it if there is none.
func (t *Table[T]) Use(n uint16) *T {
	if x := t.At(n); x != nil { // without a call
		return x
	}
	return t.add(n)
}

// add makes room for a number that has none.
func (t *Table[T]) add(n uint16) *T {
	p := int(n / PageLen)
	if p >= len(t.dir) {
		dir := make([]*[PageLen]T, min(max(2*len(t.dir), p+1), 1<<16/PageLen))
		copy(dir, t.dir)
		t.held += int32(unsafe.Sizeof(dir[0])) * int32(len(dir)-len(t.dir))
		t.dir = dir
	}
	t.dir[p] = new([PageLen]T)
	t.held += int32(unsafe.Sizeof(*t.dir[p]))
	return &t.dir[p][n%PageLen]
}

// Page returns the first number of the page of n.
func Page(n uint16) uint16 { return n / PageLen * PageLen }

// All goes through what is there, in the order of numbers.
func (t *Table[T]) All(yield func(uint16, *T) bool) {
	if !yield(0, &t.zero) {
		return
	}
	for p, page := range t.dir {
		for i := 0; page != nil && i < PageLen; i++ {
			if p+i > 0 && !yield(uint16(p*PageLen+i), &page[i]) {
				return
			}
		}
	}
}

// Held returns the octets of memory behind the table.
func (t *Table[T]) Held() int { return int(t.held) }
