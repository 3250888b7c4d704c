// Package prefetch brings memory into the processor's caches ahead of its use. With many
// associations none of their memory is there. Then the amount of memory matters less than the
// chain. Each part can be asked for only when the part that leads to it has come. Parts that are
// asked for at once come together, in little more time than one. The same is true of a large region
// of memory. The next packet's memory, to read from or to write to, can come while this one is
// handled.
//
// To prefetch is no access. It does no harm if another goroutine changes the memory meanwhile, and
// takes a nanosecond for what is there already.
package prefetch

import "unsafe"

// Near asks for an object that is looked at next. The others ask for it in the second cache: only a
// dozen or two lines can be on their way to a processor's nearest cache, and asking for more waits.
func Near[T any](object *T) { lines(unsafe.Pointer(object), int(unsafe.Sizeof(*object))) }

// Object asks for an object. Large objects are asked for in parts, with work between.
func Object[T any](object *T) { part(unsafe.Pointer(object), int(unsafe.Sizeof(*object))) }

// Span asks for the memory from one part of an object to another, both included.
func Span[A, B any](from *A, to *B) {
	part(unsafe.Pointer(from), int(uintptr(unsafe.Pointer(to))+unsafe.Sizeof(*to)-uintptr(unsafe.Pointer(from))))
}

// FieldAt is the part of an object that lies at an offset. It omits the compiler's nil check, which
// would wait for the memory.
func FieldAt[P, T any](object *T, offset uintptr) *P {
	return (*P)(unsafe.Add(unsafe.Pointer(object), offset))
}

// Range asks for the octets of an object, which must exist, from one offset up to another.
func Range[T any](object *T, from, to uintptr) {
	part(unsafe.Add(unsafe.Pointer(object), from), int(to-from))
}

// Pointee asks for the first octets of what a pointer, or the pointer in a slice or a channel,
// leads to. It may lead nowhere.
func Pointee[P any](pointer *P, octets int) {
	behind(unsafe.Pointer(pointer), octets)
}

// NestedPointee is Pointee for the pointer at an offset in what a pointer leads to, if it leads
// anywhere. It is for when that memory is there.
func NestedPointee[P any](pointer **P, offset uintptr, octets int) {
	beyond(unsafe.Pointer(pointer), offset, octets)
}

// RingElements asks for some elements of a slice whose length is a power of two, from an index on.
// The index counts on without wrapping.
func RingElements[T any, N ~uint32](slice *[]T, index *N, elements int) {
	size := unsafe.Sizeof(*new(T))
	ring(unsafe.Pointer(slice), (*uint32)(unsafe.Pointer(index)), size, elements*int(size))
}

// ForRead asks for octets that are about to be read.
func ForRead(b []byte) {
	if len(b) > 0 {
		lines(unsafe.Pointer(unsafe.SliceData(b)), len(b))
	}
}

// ForWrite asks for octets that are about to be written to.
func ForWrite(b []byte) {
	if len(b) > 0 {
		room(unsafe.Pointer(unsafe.SliceData(b)), len(b))
	}
}
