//go:build !amd64 && !arm64

package prefetch

import "unsafe"

func lines(unsafe.Pointer, int) {}

func part(unsafe.Pointer, int) {}

func behind(unsafe.Pointer, int) {}

func beyond(unsafe.Pointer, uintptr, int) {}

func ring(unsafe.Pointer, *uint32, uintptr, int) {}

func room(unsafe.Pointer, int) {}

func address(uintptr, int) {}

func self() (stack, of uintptr) { return 0, 0 }
