package main

import "encoding/binary"

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
	i := uint64(0)
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, contentWord(seed, i)^flip)
		i++
	}
	for w := contentWord(seed, i) ^ flip; len(b) > 0; b = b[1:] {
		b[0] = byte(w)
		w >>= 8
	}
}

// hasContent reports whether b has the content that belongs to seed.
func hasContent(b []byte, seed uint64) bool {
	i := uint64(0)
	for ; len(b) >= 8; b = b[8:] {
		if binary.LittleEndian.Uint64(b) != contentWord(seed, i) {
			return false
		}
		i++
	}
	for w := contentWord(seed, i); len(b) > 0; b = b[1:] {
		if b[0] != byte(w) {
			return false
		}
		w >>= 8
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
