package ddp

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"io"
)

// stagGenerator issues STags that a peer cannot predict and that recur as late as possible (RFC
// 5042 section 6.1.1). It sends a counter through a secret permutation of the 32-bit numbers. So
// each value is issued once before any is issued again.
type stagGenerator struct {
	block   cipher.Block
	counter uint32 // numbers used up
}

// feistelRounds is the number of Feistel rounds; NIST's FF1 uses ten for such small domains.
const feistelRounds = 10

func newSTagGenerator(rand io.Reader) (*stagGenerator, error) {
	var key [aes.BlockSize]byte
	if _, err := io.ReadFull(rand, key[:]); err != nil {
		return nil, fmt.Errorf("ddp: no randomness for STags: %w", err)
	}
	block, _ := aes.NewCipher(key[:]) // which takes any key of this length
	return &stagGenerator{block: block}, nil
}

// nextSTag returns the next STag, never 0. It repeats itself after 2^32-1 calls.
func (t *stagGenerator) nextSTag() STag {
	for {
		t.counter++
		if s := t.permute(t.counter); s != 0 {
			return s
		}
	}
}

// permute is a balanced Feistel network on two 16-bit halves with AES as the round function.
func (t *stagGenerator) permute(n uint32) STag {
	l, r := uint16(n>>16), uint16(n)
	var in, out [aes.BlockSize]byte
	for i := range feistelRounds {
		in[0] = byte(i)
		binary.BigEndian.PutUint16(in[1:], r)
		t.block.Encrypt(out[:], in[:])
		l, r = r, l^binary.BigEndian.Uint16(out[:])
	}
	return STag(l)<<16 | STag(r)
}
