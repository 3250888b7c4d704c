package simnet

import (
	"encoding/binary"
	"math/bits"
)

// Rand is a small seeded generator (SplitMix64). Its sequence depends only on the seed and on what
// Play has given, so that a run is repeatable. It is not fit for secrets.
type Rand struct {
	state uint64
	tape  []byte
}

// NewRand returns a generator. Different seeds, however close, give unrelated sequences.
func NewRand(seed uint64) *Rand { return &Rand{state: seed} }

// Play lets octets decide the next numbers, for a fuzzer: each octet is the top of one number. Read
// takes none of them. After the last one, and below the top, numbers are as random as before.
func (r *Rand) Play(tape []byte) { r.tape = tape }

// Uint64 returns 64 random bits.
func (r *Rand) Uint64() uint64 {
	z := r.nextBits()
	if len(r.tape) > 0 {
		z = z>>8 | uint64(r.tape[0])<<56
		r.tape = r.tape[1:]
	}
	return z
}

func (r *Rand) nextBits() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// IntN returns a number in [0, n). It panics unless n > 0.
func (r *Rand) IntN(n int) int {
	if n <= 0 {
		panic("simnet: IntN needs n > 0")
	}
	return int(r.uintBelow(uint64(n)))
}

// uintBelow returns a number in [0, n). Its bias, at most n in 2^64, does not matter here.
func (r *Rand) uintBelow(n uint64) uint64 {
	hi, _ := bits.Mul64(r.Uint64(), n)
	return hi
}

// Float64 returns a number in [0, 1).
func (r *Rand) Float64() float64 { return float64(r.Uint64()>>11) / (1 << 53) }

// Read fills b. It implements io.Reader and never fails.
func (r *Rand) Read(b []byte) (int, error) {
	n := len(b)
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, r.nextBits())
		b = b[8:]
	}
	if len(b) > 0 {
		var last [8]byte
		binary.LittleEndian.PutUint64(last[:], r.nextBits())
		copy(b, last[:])
	}
	return n, nil
}
