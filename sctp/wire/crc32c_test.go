package wire

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/crc32"
)

// Every length, alignment and start value gives what another implementation gives.
func TestCRC32cAgainstAnother(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	buf := make([]byte, 70000)
	for i := range buf {
		buf[i] = byte(r.Uint32())
	}
	check := func(off, n int) {
		t.Helper()
		sum := r.Uint32()
		if got, want := crc32c(sum, buf[off:off+n]), crc32.Update(sum, castagnoli, buf[off:off+n]); got != want {
			t.Fatalf("%d octets at %d from %08x: %08x, want %08x", n, off, sum, got, want)
		}
	}
	for n := range 1600 {
		check(n%67, n)
	}
	for range 300 {
		n := r.IntN(len(buf) - 64)
		check(r.IntN(64), n)
	}
	// req 9260-A-1
	if got := crc32c(0, []byte("123456789")); got != 0xE3069283 {
		t.Errorf("CRC of 123456789 is %08x", got)
	}
}

// The constants of the folding code are powers of x modulo the polynomial.
func TestFoldingConstants(t *testing.T) {
	k := func(n int) uint64 {
		r := uint32(1)
		for range n {
			top := r >> 31
			r <<= 1
			if top == 1 {
				r ^= 0x1EDC6F41
			}
		}
		return uint64(bits.Reverse32(r)) << 1
	}
	for _, c := range []struct {
		distance int
		lo, hi   uint64
	}{
		{2048, 0x0dcb17aa4, 0x0b9e02b86},
		{512, 0x0740eef02, 0x09e4addf8},
		{384, 0x01c291d04, 0x1d82c63da},
		{256, 0x1384aa63a, 0x0ba4fc28e},
		{128, 0x0f20c0dfe, 0x14cd00bd6},
	} {
		if lo, hi := k(c.distance+32), k(c.distance-32); lo != c.lo || hi != c.hi {
			t.Errorf("%d bits: %#x %#x, not %#x %#x", c.distance, lo, hi, c.lo, c.hi)
		}
	}
}
