//go:build unix

package baseline

import (
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// MapGate returns the gate that lives in the first octets of f, for every process that has f open.
// It makes the file long enough.
func MapGate(f *os.File) (Gate, error) {
	size := os.Getpagesize()
	if err := f.Truncate(int64(size)); err != nil {
		return Gate{}, err
	}
	b, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return Gate{}, os.NewSyscallError("mmap", err)
	}
	return Gate{(*atomic.Uint64)(unsafe.Pointer(&b[0]))}, nil
}
