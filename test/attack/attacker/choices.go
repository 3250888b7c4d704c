package attacker

import "math/rand/v2"

// Choices is where decisions come from: a seed, or a fuzzer's octets.
type Choices struct {
	rng    *rand.Rand
	octets []byte // instead of rng
}

// Seeded returns choices without end, the same for the same seed.
func Seeded(seed uint64) *Choices {
	return &Choices{rng: rand.New(rand.NewPCG(seed, 0x6472_6470))}
}

// FromOctets returns the choices that a fuzzer has made. When there are no more octets, each choice
// is 0.
func FromOctets(b []byte) *Choices { return &Choices{octets: b} }

// Done says that a fuzzer's octets are used up.
func (c *Choices) Done() bool { return c.rng == nil && len(c.octets) == 0 }

// Below returns a number from 0 to n-1. n is at least 1.
func (c *Choices) Below(n int) int {
	if c.rng != nil {
		return c.rng.IntN(n)
	}
	v := 0
	for span := 1; span < n && len(c.octets) > 0; span <<= 8 {
		v = v<<8 | int(c.octets[0])
		c.octets = c.octets[1:]
	}
	return v % n
}

// One says yes once in n times. A fuzzer's octets that have run out say no.
func (c *Choices) One(n int) bool { return c.Below(n) == n-1 }

// Uint32 returns any number, often one near an edge.
func (c *Choices) Uint32() uint32 {
	v := uint32(c.Below(1<<16))<<16 | uint32(c.Below(1<<16))
	switch c.Below(8) {
	case 1:
		return v & 7
	case 2:
		return -(v & 7)
	case 3:
		return 1<<31 - 4 + v&7
	case 4:
		return v & 0xFFFF
	case 5:
		return 1 << (v & 31)
	}
	return v
}

// Octets returns n octets of any content.
func (c *Choices) Octets(n int) []byte {
	b := make([]byte, n)
	switch c.Below(4) {
	case 0: // zeros
	case 1:
		for i := range b {
			b[i] = 0xFF
		}
	default:
		for i := range b {
			b[i] = byte(c.Below(256))
		}
	}
	return b
}

// Length returns a length up to most, often a short one or one at the end.
func (c *Choices) Length(most int) int {
	if most <= 0 {
		return 0
	}
	switch c.Below(4) {
	case 0:
		return c.Below(min(most, 8) + 1)
	case 1:
		return c.Below(min(most, 64) + 1)
	case 2:
		return most - c.Below(min(most, 4)+1)
	}
	return c.Below(most + 1)
}

// pickOne returns one of a list.
func pickOne[T any](c *Choices, list []T) T { return list[c.Below(len(list))] }
