package crc32c

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Not an octet beside a piece is looked at: it lies between two pages that nobody may read.
func TestUpdateStaysInside(t *testing.T) {
	page := unix.Getpagesize()
	m, err := unix.Mmap(-1, 0, 3*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(m)
	for _, off := range []int{0, 2 * page} {
		if err := unix.Mprotect(m[off:off+page], unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	between := m[page : 2*page]
	for n := range page {
		checkSum(t, 1, between[:n])
		checkSum(t, 1, between[page-n:])
	}
}
