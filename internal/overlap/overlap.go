// Package overlap tells whether slices share memory, for what keeps references to memory of others.
package overlap

import "unsafe"

// Slices reports whether two slices share an octet. Their addresses are compared only, and the
// caller keeps both alive.
func Slices(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	x, y := uintptr(unsafe.Pointer(unsafe.SliceData(a))), uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return x-y < uintptr(len(b)) || y-x < uintptr(len(a))
}
