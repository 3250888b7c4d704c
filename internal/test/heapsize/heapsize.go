// Package heapsize measures the memory that a structure keeps, by a walk over all that can be
// reached from it: for tests that hold what the structure says of itself against it.
package heapsize

import (
	"cmp"
	"reflect"
	"slices"
	"unsafe"
)

// Of returns the octets that can be reached from the roots, which are pointers: capacities and not
// lengths, each octet once. It does not go to what has a type that stop says, nor to what begins
// where theirs says; either may be nil. What is behind functions and channels it does not see.
func Of(stop func(reflect.Type) bool, theirs func(unsafe.Pointer) bool, roots ...any) int {
	w := &walk{stop: stop, theirs: theirs, seen: make(map[visit]bool), plain: make(map[reflect.Type]bool)}
	for _, r := range roots {
		w.followValue(reflect.ValueOf(r))
	}
	slices.SortFunc(w.parts, func(a, b part) int { return cmp.Compare(a.from, b.from) })
	n, end := uintptr(w.maps), uintptr(0)
	for _, p := range w.parts {
		if p.to > end {
			n += p.to - max(p.from, end)
			end = p.to
		}
	}
	return int(n)
}

type walk struct {
	stop   func(reflect.Type) bool
	theirs func(unsafe.Pointer) bool
	seen   map[visit]bool
	plain  map[reflect.Type]bool // types without pointers
	parts  []part
	maps   int // octets of maps, as far as one can tell
}

// part is a piece of memory, visit one as a value of a type.
type part struct{ from, to uintptr }

type visit struct {
	at unsafe.Pointer
	t  reflect.Type
	n  int
}

// followValue goes where a value leads.
func (w *walk) followValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		w.enterValues(v.UnsafePointer(), v.Type().Elem(), 1)
	case reflect.Slice:
		w.enterValues(v.UnsafePointer(), v.Type().Elem(), v.Cap())
	case reflect.String:
		w.enterValues(unsafe.Pointer(unsafe.StringData(v.String())), reflect.TypeFor[byte](), v.Len())
	case reflect.Interface:
		w.followValue(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			w.followValue(v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			w.followValue(v.Index(i))
		}
	case reflect.Map:
		if t := v.Type(); w.isFirstVisit(visit{v.UnsafePointer(), t, 0}) && !v.IsNil() {
			w.maps += 64 + v.Len()*(int(t.Key().Size()+t.Elem().Size())+2)*8/7
			for it := v.MapRange(); it.Next(); {
				w.followValue(it.Key())
				w.followValue(it.Value())
			}
		}
	}
}

func (w *walk) isFirstVisit(v visit) bool {
	if v.at == nil || w.seen[v] {
		return false
	}
	w.seen[v] = true
	return true
}

// enterValues counts n values of a type, and follows each.
func (w *walk) enterValues(at unsafe.Pointer, t reflect.Type, n int) {
	if w.stop != nil && w.stop(t) || n == 0 || !w.isFirstVisit(visit{at, t, n}) || w.theirs != nil && w.theirs(at) {
		return
	}
	w.parts = append(w.parts, part{uintptr(at), uintptr(at) + uintptr(n)*t.Size()})
	if w.isPlain(t) {
		return
	}
	for i := range n {
		w.followValue(reflect.NewAt(t, unsafe.Add(at, uintptr(i)*t.Size())).Elem())
	}
}

// isPlain says whether values of a type lead nowhere.
func (w *walk) isPlain(t reflect.Type) bool {
	if p, ok := w.plain[t]; ok {
		return p
	}
	p := true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.String, reflect.Interface, reflect.Map:
		p = false
	case reflect.Array:
		p = w.isPlain(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			p = p && w.isPlain(t.Field(i).Type)
		}
	}
	w.plain[t] = p
	return p
}
