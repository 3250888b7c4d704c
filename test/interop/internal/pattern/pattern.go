// Package pattern says what every message of the interoperability rows looks like: a function of the
// seed, the run and the message's index, so that the receiver knows it without being told.
// ../../theirs/pattern.c is the same in C.
package pattern

import "encoding/binary"

// Limits of what a payload protocol identifier tells apart, and of messages.
const (
	MaxSize  = 60_000  // octets of the longest message
	MaxIndex = 1 << 20 // messages of one run
	MaxRun   = 16
	mark     = 0x52 // top octet of our payload protocol identifiers; no protocol is registered there
)

// Pattern is what one side sends.
type Pattern struct {
	Seed    uint64
	Sizes   string // short, small, mixed, big
	Order   string // ordered, unordered, both
	Streams uint16
}

// Shape is all of a message but its octets.
type Shape struct {
	Size      int
	Stream    uint16
	Unordered bool
	PPID      uint32
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
	limit := uint64(MaxSize)
	switch {
	case sizes == "big":
	case of < 700:
		limit = 100
	case sizes == "short":
		limit = 1000
	case of < 980 || sizes == "small":
		limit = 1400
	case of < 998:
		limit = 9000
	}
	return int(1 + x%limit)
}

// ShapeOf returns all of a message of a run but its octets.
func (p *Pattern) ShapeOf(run, index int) Shape {
	key := mixBits(p.Seed + (uint64(run)<<32|uint64(index))*0x9e3779b97f4a7c15)
	return Shape{
		Size:      sizeOf(p.Sizes, mixBits(key+1)),
		Stream:    uint16(mixBits(key+2) % uint64(p.Streams)),
		Unordered: p.Order == "unordered" || p.Order == "both" && mixBits(key+3)&1 != 0,
		PPID:      uint32(mark<<24 | run<<20 | index),
		key:       key,
	}
}

// IsImportant says that a message is not given up where there are priorities.
func IsImportant(index int) bool { return index%3 == 0 }

// RunAndIndex finds run and index in a payload protocol identifier; ok is false when it is not
// ours.
func RunAndIndex(ppid uint32) (run, index int, ok bool) {
	return int(ppid >> 20 % MaxRun), int(ppid % MaxIndex), ppid>>24 == mark
}

// FillOctets writes the message's octets to b, which has room for MaxSize, and returns them.
func (s *Shape) FillOctets(b []byte) []byte {
	words := b[:(s.Size+7)&^7]
	for i := 0; i < len(words); i += 8 {
		binary.LittleEndian.PutUint64(words[i:], mixBits(s.key+16+uint64(i/8)))
	}
	return b[:s.Size]
}
