package rx

import (
	"math/bits"

	"github.com/rddp-go/rddp/rawio"
)

// piece is the user data of one DATA chunk.
type piece struct {
	prev, next *piece
	data       []byte
	buf        *rawio.Buf // holds data by a reference, or nil: data is the store's
	cost       int        // octets of memory that it keeps from other use
}

// pieceCost stands for the memory of a piece and of what leads to it.
const pieceCost = 128

// Copies live in blocks of a power of two octets.
const (
	minBlock = 6  // 64 octets
	maxBlock = 16 // 65536 octets
)

// store hands out pieces and the blocks that short user data is copied to, and takes them back.
type store struct {
	pieces *piece
	blocks [maxBlock + 1][][]byte
	cached int // octets in blocks
	limit  int // of cached
	mem    int // what the pieces in use keep
}

// keep returns a piece with the octets of data, which lies in buf. It takes a reference to buf when
// data is a good part of it and copies data otherwise, so that a little data does not hold much
// memory.
func (s *store) keep(data []byte, buf *rawio.Buf) *piece {
	p := s.pieces
	if p != nil {
		s.pieces = p.next
	} else {
		p = new(piece)
	}
	if buf != nil && len(data) >= len(buf.B)/4 {
		buf.Retain()
		*p = piece{data: data, buf: buf, cost: len(buf.B) + pieceCost}
	} else {
		b := s.block(len(data))
		copy(b, data)
		*p = piece{data: b, cost: cap(b) + pieceCost}
	}
	s.mem += p.cost
	return p
}

// block returns n octets, n <= 65536.
func (s *store) block(n int) []byte {
	c := max(bits.Len(uint(max(n, 1)-1)), minBlock)
	if l := s.blocks[c]; len(l) > 0 {
		b := l[len(l)-1]
		s.blocks[c] = l[:len(l)-1]
		s.cached -= cap(b)
		return b[:n]
	}
	return make([]byte, n, 1<<c)
}

// drop takes a piece back.
func (s *store) drop(p *piece) {
	s.mem -= p.cost
	if p.buf != nil {
		p.buf.Release()
	} else if n := cap(p.data); s.cached+n <= s.limit {
		c := bits.Len(uint(n - 1))
		s.blocks[c] = append(s.blocks[c], p.data)
		s.cached += n
	}
	*p = piece{next: s.pieces}
	s.pieces = p
}
