package ddp

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"io"
)

// tagger issues STags that a peer cannot predict and that come back as late as possible (RFC 5042
// section 6.1.1): a counter sent through a secret permutation of the 32-bit numbers, so each value is
// issued once before any is issued again.
type tagger struct {
	block cipher.Block
	n     uint32 // numbers used up
}

// tagRounds is the number of Feistel rounds; NIST's FF1 uses ten for such small domains.
const tagRounds = 10

func newTagger(rand io.Reader) (*tagger, error) {
	var key [aes.BlockSize]byte
	if _, err := io.ReadFull(rand, key[:]); err != nil {
		return nil, fmt.Errorf("ddp: no randomness for STags: %w", err)
	}
	block, _ := aes.NewCipher(key[:]) // which takes any key of this length
	return &tagger{block: block}, nil
}

// next returns the next STag, never 0. It repeats itself after 2^32-1 calls.
func (t *tagger) next() STag {
	for {
		t.n++
		if s := t.permute(t.n); s != 0 {
			return s
		}
	}
}

// permute is a balanced Feistel network on two 16-bit halves with AES as the round function.
func (t *tagger) permute(n uint32) STag {
	l, r := uint16(n>>16), uint16(n)
	var in, out [aes.BlockSize]byte
	for i := range tagRounds {
		in[0] = byte(i)
		binary.BigEndian.PutUint16(in[1:], r)
		t.block.Encrypt(out[:], in[:])
		l, r = r, l^binary.BigEndian.Uint16(out[:])
	}
	return STag(l)<<16 | STag(r)
}
