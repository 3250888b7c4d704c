package mmsg

import "unsafe"

func ptr[T any](p *T) unsafe.Pointer { return unsafe.Pointer(p) }

// bytesOf views a control buffer as octets.
func bytesOf(c *controlBuf) []byte { return (*[unsafe.Sizeof(*c)]byte)(unsafe.Pointer(c))[:] }

func (c *errControl) bytes() []byte { return (*[unsafe.Sizeof(*c)]byte)(unsafe.Pointer(c))[:] }
