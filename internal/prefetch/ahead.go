// Package prefetch brings memory into the processor's caches ahead of its use. Where there are many
// associations none of their memory is there, and what takes time is not how much has to come, but
// that each part is asked for only when the one that leads to it has come. Asked for at once they
// come together, in little more time than one. So it is with a large region of memory: what the
// next packet is read from, or written to, can come while this one is looked at.
//
// To ask is no access: it does no harm whoever changes the memory meanwhile, and takes a nanosecond
// for what is there already.
package prefetch

import "unsafe"

// Span asks for the memory from one part of an object to another, both included.
func Span[A, B any](from *A, to *B) {
	lines(unsafe.Pointer(from), int(uintptr(unsafe.Pointer(to))+unsafe.Sizeof(*to)-uintptr(unsafe.Pointer(from))))
}

// FieldAt is the part of an object that lies at an offset, without a look at whether there is one:
// the compiler's would wait for it.
func FieldAt[P, T any](object *T, offset uintptr) *P {
	return (*P)(unsafe.Add(unsafe.Pointer(object), offset))
}

// Range asks for the octets of an object from one offset up to another, which there must be. A
// processor has so many lines on their way to the nearest of its caches at a time, a dozen or two,
// and who asks for more waits: so they are to come to the second, as what Behind and the others
// lead to, and large objects are asked for in parts, with work between.
func Range[T any](object *T, from, to uintptr) {
	part(unsafe.Add(unsafe.Pointer(object), from), int(to-from))
}

// Pointee asks for the first octets of what a pointer, or the pointer in a slice or a channel,
// leads to. It may lead nowhere.
func Pointee[P any](pointer *P, octets int) {
	behind(unsafe.Pointer(pointer), octets)
}

// NestedPointee is Behind for the pointer that lies at an offset in what a pointer leads to, if it
// leads anywhere: for when that is there.
func NestedPointee[P any](pointer **P, offset uintptr, octets int) {
	beyond(unsafe.Pointer(pointer), offset, octets)
}

// RingElements asks for some elements of a slice whose length is a power of two, from the one at an
// index on, which counts on and on.
func RingElements[T any, N ~uint32](slice *[]T, index *N, elements int) {
	size := unsafe.Sizeof(*new(T))
	ring(unsafe.Pointer(slice), (*uint32)(unsafe.Pointer(index)), size, elements*int(size))
}

// ForRead asks for octets that are about to be read, and Room for some that are about to be written
// to.
func ForRead(b []byte) {
	if len(b) > 0 {
		lines(unsafe.Pointer(unsafe.SliceData(b)), len(b))
	}
}

// ForWrite is Octets for who writes.
func ForWrite(b []byte) {
	if len(b) > 0 {
		room(unsafe.Pointer(unsafe.SliceData(b)), len(b))
	}
}
