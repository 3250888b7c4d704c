package crc32c

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/crc32"
)

// All lengths that packets have, from all places in a word and in a line, and after all sorts of
// beginnings, make what the library makes of them.
func TestUpdateIsTheLibrarys(t *testing.T) {
	if !wide {
		t.Log("this processor has no VPCLMULQDQ of 512 bits: all is the library's")
	}
	chance := rand.NewChaCha8([32]byte{1})
	octets := make([]byte, 70000)
	chance.Read(octets)
	at := 0
	for n := range 2500 {
		sum := uint32(chance.Uint64())
		checkSum(t, sum, octets[at:at+n])
		checkSum(t, 0, octets[at:at+n])
		checkSum(t, sum, make([]byte, n))
		at = (at + 1) % block
	}
	for n := 65000; n <= 65535; n += 17 {
		checkSum(t, uint32(n), octets[n%61:n])
	}
}

func checkSum(t *testing.T, sum uint32, p []byte) {
	t.Helper()
	if got, want := Update(sum, p), crc32.Update(sum, castagnoli, p); got != want {
		t.Fatalf("%d octets after %08x make %08x, not %08x", len(p), sum, got, want)
	}
}

// A block of 128 bits leaves the same as its two products with the powers of a distance, so much
// further on. All processors can check that.
func TestPowersMoveABlock(t *testing.T) {
	chance := rand.NewChaCha8([32]byte{2})
	for i, octets := range [...]int{256, 192, 128, 64, 48, 32, 16} {
		lo, hi := chance.Uint64(), chance.Uint64()
		before := make([]byte, 16+octets)
		binary.LittleEndian.PutUint64(before, lo)
		binary.LittleEndian.PutUint64(before[8:], hi)
		a, b := multiply(lo, powers[2*i])
		c, d := multiply(hi, powers[2*i+1])
		after := make([]byte, 16)
		binary.LittleEndian.PutUint64(after, a^c)
		binary.LittleEndian.PutUint64(after[8:], b^d)
		if got, want := crc32.Update(^uint32(0), castagnoli, after),
			crc32.Update(^uint32(0), castagnoli, before); got != want {
			t.Errorf("%d octets further on %08x is left, not %08x", octets, got, want)
		}
	}
	if powers[14] != 0 || powers[15] != 0 {
		t.Error("the last part moves")
	}
}

// multiply is the product of two polynomials over GF(2).
func multiply(a, b uint64) (lo, hi uint64) {
	for i := range 64 {
		if b>>i&1 != 0 {
			lo ^= a << i
			hi ^= a >> (64 - i)
		}
	}
	return lo, hi
}

// The checksums that RFC 3720 appendix B.4 gives for CRC32c.
func TestUpdateOfKnownOctets(t *testing.T) {
	ones, up, down := make([]byte, 32), make([]byte, 32), make([]byte, 32)
	for i := range ones {
		ones[i], up[i], down[i] = 0xff, byte(i), byte(31-i)
	}
	for _, c := range []struct {
		p    []byte
		want uint32
	}{{make([]byte, 32), 0x8a9136aa}, {ones, 0x62a8ab43}, {up, 0x46dd794e}, {down, 0x113fdb5c}} {
		if got := Update(0, c.p); got != c.want {
			t.Errorf("% x makes %08x, not %08x", c.p, got, c.want)
		}
	}
}

var sink uint32

func BenchmarkUpdate(b *testing.B) {
	octets := make([]byte, 65536)
	for _, n := range []int{12, 44, 64, 100, 128, 256, 512, 1024, 1452, 4096, 8972, 65507} {
		for _, by := range []struct {
			name   string
			update func(uint32, []byte) uint32
		}{{"here", Update},
			{"library", func(sum uint32, p []byte) uint32 { return crc32.Update(sum, castagnoli, p) }}} {
			b.Run(fmt.Sprint(n, " ", by.name), func(b *testing.B) {
				b.SetBytes(int64(n))
				for b.Loop() {
					sink = by.update(sink, octets[1:][:n])
				}
			})
		}
	}
}
