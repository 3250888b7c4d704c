package crc32c

import "math/bits"

// A packet is a polynomial over GF(2), its first bit the highest power of x. The checksum is the
// remainder of its division by the polynomial of CRC32c. Octets that lie n bits before others count
// as x^n times theirs, or as any polynomial with the same remainder. A block of 128 bits is hi x^64
// + lo, and x^(n+64) and x^n have remainders of 32 bits each. Two products of 64 by 32 bits, added
// to what lies n bits further on, make the packet shorter by a block. So packets are folded until
// 128 bits are left, sixteen blocks at a time.

// block is how many octets are folded at once: four times 128 bits.
const block = 64

// powers are the factors, two for each distance in octets. The distances are those of the four
// registers that are folded over each other, and of the four parts of one register. The last part
// stays where it is: its two factors are 0.
var powers = func() (k [16]uint64) {
	for i, octets := range [...]int{4 * block, 3 * block, 2 * block, block, 48, 32, 16} {
		k[2*i], k[2*i+1] = power(8*octets+32), power(8*octets-32)
	}
	return
}()

// power is x^n mod the polynomial, its bits in the order of octets. The product of two such lies
// one place to the right, so power is one place to the left. The 32 in the argument is for the
// place of 32 bits among 64.
func power(n int) uint64 {
	const polynomial = 0x1EDC6F41 // and x^32
	p := uint32(1)
	for range n {
		over := p >> 31
		p = p<<1 ^ over*polynomial
	}
	return uint64(bits.Reverse32(p)) << 1
}
