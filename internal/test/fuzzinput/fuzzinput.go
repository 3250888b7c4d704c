// Package fuzzinput reads a fuzz input as a list of choices.
package fuzzinput

import "math/rand/v2"

// Random returns n choices that follow from a seed.
func Random(seed, n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(b)
	return b
}

// Script is what is left of the input; past its end every choice is 0.
type Script []byte

// Next takes a choice from 0 to 255.
func (s *Script) Next() int {
	if len(*s) == 0 {
		return 0
	}
	b := (*s)[0]
	*s = (*s)[1:]
	return int(b)
}

// Byte is Next as an octet.
func (s *Script) Byte() byte { return byte(s.Next()) }

// Next16 takes a choice from 0 to 65535.
func (s *Script) Next16() uint16 { return uint16(s.Next())<<8 | uint16(s.Next()) }

// Take takes up to n octets as they are.
func (s *Script) Take(n int) []byte {
	n = min(n, len(*s))
	b := (*s)[:n]
	*s = (*s)[n:]
	return b
}
