package compat

import (
	"syscall"
	"unsafe"
)

// The options of both packages take addresses of the caller's memory, as the system call does.

// maxOptionLen is the length of the longest option in octets. That is a list of addresses, in the
// memory that programs have for it.
const maxOptionLen = 8 + 4096

// callerMemory returns n octets of the caller's memory at an address that came as a uintptr. The
// outermost caller keeps that memory alive: see //go:uintptrescapes.
func callerMemory(addr uintptr, n int) ([]byte, error) {
	const lowest = 4096 // no program has memory below this address
	switch {
	case n == 0:
		return nil, nil
	case addr < lowest:
		return nil, syscall.EFAULT
	}
	p := *(*unsafe.Pointer)(unsafe.Pointer(&addr))
	return unsafe.Slice((*byte)(p), n), nil
}

// GetsockoptAt is Getsockopt for the octets at val. The int32 at length has their number.
//
//go:uintptrescapes
func (s *Socket) GetsockoptAt(name, val, length uintptr) error {
	l, err := callerMemory(length, 4)
	if err != nil {
		return err
	}
	n := int(int32(nativeOrder.Uint32(l)))
	if n < 0 {
		return syscall.EINVAL
	}
	b, err := callerMemory(val, min(n, maxOptionLen))
	if err != nil {
		return err
	}
	if n, err = s.Getsockopt(int(name), b); err != nil {
		return err
	}
	nativeOrder.PutUint32(l, uint32(n))
	return nil
}

// SetsockoptAt is Setsockopt for length octets at val.
//
//go:uintptrescapes
func (s *Socket) SetsockoptAt(name, val, length uintptr) error {
	n := int(int32(length))
	if n < 0 || n > maxOptionLen {
		return syscall.EINVAL
	}
	b, err := callerMemory(val, n)
	if err != nil {
		return err
	}
	return s.Setsockopt(int(name), b)
}
