package main

// What every message looks like: a function of the seed, the run and the message's index, so that
// the receiver knows it without being told. ../usrsctp/pattern.c is the same in C.

import "encoding/binary"

const (
	maxSize  = 60_000  // octets of the longest message
	maxIndex = 1 << 20 // messages of one run
	maxRun   = 16
	mark     = 0x52 // top octet of our payload protocol identifiers; no protocol is registered there
)

// pattern is what one side sends.
type pattern struct {
	seed    uint64
	sizes   string // small, mixed, big
	order   string // ordered, unordered, both
	streams uint16
}

// shape is all of a message but its octets.
type shape struct {
	size      int
	stream    uint16
	unordered bool
	ppid      uint32
	key       uint64 // of the content
}

// mixBits is the finalizer of splitmix64.
func mixBits(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func sizeOf(sizes string, r uint64) int {
	of, x := r%1000, r>>16
	limit := uint64(maxSize)
	switch {
	case sizes == "big":
	case of < 700:
		limit = 100
	case of < 980 || sizes == "small":
		limit = 1400
	case of < 998:
		limit = 9000
	}
	return int(1 + x%limit)
}

func (p *pattern) shapeOf(run, index int) shape {
	key := mixBits(p.seed + (uint64(run)<<32|uint64(index))*0x9e3779b97f4a7c15)
	return shape{
		size:      sizeOf(p.sizes, mixBits(key+1)),
		stream:    uint16(mixBits(key+2) % uint64(p.streams)),
		unordered: p.order == "unordered" || p.order == "both" && mixBits(key+3)&1 != 0,
		ppid:      uint32(mark<<24 | run<<20 | index),
		key:       key,
	}
}

// runAndIndex finds run and index in a payload protocol identifier; ok is false when it is not
// ours.
func runAndIndex(ppid uint32) (run, index int, ok bool) {
	return int(ppid >> 20 % maxRun), int(ppid % maxIndex), ppid>>24 == mark
}

// fillOctets writes the message's octets to b, which has room for maxSize, and returns them.
func (s *shape) fillOctets(b []byte) []byte {
	words := b[:(s.size+7)&^7]
	for i := 0; i < len(words); i += 8 {
		binary.LittleEndian.PutUint64(words[i:], mixBits(s.key+16+uint64(i/8)))
	}
	return b[:s.size]
}
