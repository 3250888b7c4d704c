//go:build amd64 || arm64

package ahead

import "unsafe"

// lines asks for n lines of memory from p on.
//
//go:noescape
func lines(p unsafe.Pointer, n int)

// behind is lines for what the pointer at pp leads to.
//
//go:noescape
func behind(pp unsafe.Pointer, n int)

// beyond is behind for the pointer at an offset in what the pointer at pp leads to, if it leads anywhere.
//
//go:noescape
func beyond(pp unsafe.Pointer, off uintptr, n int)

// room is lines for who is to write to them.
//
//go:noescape
func room(p unsafe.Pointer, n int)
