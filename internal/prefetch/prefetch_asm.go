//go:build amd64 || arm64

package prefetch

import "unsafe"

// lines asks for octets from p on: for the lines of memory that have any of them.
//
//go:noescape
func lines(p unsafe.Pointer, octets int)

// part is lines for what is looked at after some other work.
//
//go:noescape
func part(p unsafe.Pointer, octets int)

// behind is part for what the pointer at pp leads to.
//
//go:noescape
func behind(pp unsafe.Pointer, octets int)

// beyond is behind for the pointer at an offset in what the pointer at pp leads to, if it leads
// anywhere.
//
//go:noescape
func beyond(pp unsafe.Pointer, off uintptr, octets int)

// ring is part for the element at an index, modulo the length, of the slice there. The length is a
// power of two.
//
//go:noescape
func ring(slice unsafe.Pointer, index *uint32, size uintptr, octets int)

// room is lines for memory that is about to be written to.
//
//go:noescape
func room(p unsafe.Pointer, octets int)

// address is part for an address without a pointer.
func address(p uintptr, octets int)

// self returns where the caller's stack is, and what the runtime keeps of its goroutine. That is in
// a register of its own, by the runtime's choice. Were it ever in another, a wrong line would come
// and nothing else.
func self() (stack, of uintptr)
