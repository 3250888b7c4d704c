package mmsg

import "unsafe"

func pointerTo[T any](p *T) unsafe.Pointer { return unsafe.Pointer(p) }

// controlBytes views a control buffer as octets.
func controlBytes(c *controlBuf) []byte { return (*[unsafe.Sizeof(*c)]byte)(unsafe.Pointer(c))[:] }

func (c *errControl) asBytes() []byte { return (*[unsafe.Sizeof(*c)]byte)(unsafe.Pointer(c))[:] }
