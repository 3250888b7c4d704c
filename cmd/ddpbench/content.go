package main

import (
	"bytes"
	"encoding/binary"
)

// contentWord is word i of the content that belongs to seed (splitmix64). No part of the content
// repeats, and no two seeds have the same.
func contentWord(seed, i uint64) uint64 {
	x := seed + (i+1)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// fillContent writes the content that belongs to seed.
func fillContent(b []byte, seed uint64) { writeContent(b, seed, 0) }

// spoilContent overwrites the content so that every octet is wrong. The system has then also backed
// the memory.
func spoilContent(b []byte, seed uint64) { writeContent(b, seed, ^uint64(0)) }

func writeContent(b []byte, seed, flip uint64) {
	var w [8]byte
	for i := uint64(0); len(b) > 0; i++ {
		binary.LittleEndian.PutUint64(w[:], contentWord(seed, i)^flip)
		b = b[copy(b, w[:]):]
	}
}

// hasContent reports whether b has the content that belongs to seed.
func hasContent(b []byte, seed uint64) bool {
	var w [8]byte
	for i := uint64(0); len(b) > 0; i++ {
		binary.LittleEndian.PutUint64(w[:], contentWord(seed, i))
		n := min(len(b), len(w))
		if !bytes.Equal(b[:n], w[:n]) {
			return false
		}
		b = b[n:]
	}
	return true
}

// slotSeed is the seed of what the client or the server sends from a slot of a QP.
func (p *params) slotSeed(lane int, client bool, slot int) uint64 {
	side := uint64(0)
	if client {
		side = 1
	}
	return contentWord(p.seed, side<<48|uint64(lane)<<32|uint64(slot))
}
