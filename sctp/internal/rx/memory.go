package rx

import (
	"math/bits"

	"github.com/rddp-go/rddp/rawio"
)

// piece is the user data of one DATA chunk.
type piece struct {
	prev, next *piece
	data       []byte
	loan       *loan // of the buffer that data lies in, or nil: data is the store's
	cost       int   // octets of memory that it keeps from other use, without the loan
}

// loan is the store's one reference to a packet buffer, for all pieces whose data lie there. Between pieces
// from another buffer it is taken anew.
type loan struct {
	buf    *rawio.Buf
	pieces int
	next   *loan // in the list of free ones
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
	loans  *loan // free ones
	last   *loan // of the buffer that the last piece came in, while it has pieces
	blocks [maxBlock + 1][][]byte
	cached int // octets in blocks
	limit  int // of user data
	mem    int // what the pieces in use and the loans keep
}

func newStore(limit int) store { return store{limit: limit} }

// keep returns a piece with the octets of data, which lies in buf: it stays there, or it is copied, so that a
// little data does not hold much memory.
func (s *store) keep(data []byte, buf *rawio.Buf) *piece {
	p := s.pieces
	if p != nil {
		s.pieces = p.next
	} else {
		p = new(piece)
	}
	if l := s.borrow(data, buf); l != nil {
		l.pieces++
		*p = piece{data: data, loan: l, cost: pieceCost}
	} else {
		b := s.block(len(data))
		copy(b, data)
		*p = piece{data: b, cost: cap(b) + pieceCost}
	}
	s.mem += p.cost
	return p
}

// borrow returns the loan of buf, or nil when data is to be copied. It pays for itself when data is a good
// part of the buffer. It may also be when the packets in buf are together, as those of a train are: while the
// store does not keep much more than what it is for, in case they are not all for it.
func (s *store) borrow(data []byte, buf *rawio.Buf) *loan {
	switch {
	case buf == nil:
		return nil
	case s.last != nil && s.last.buf == buf:
		return s.last
	case len(data) < len(buf.B)/4 && (buf.Filled < len(buf.B)/4 || s.mem > 2*s.limit):
		return nil
	}
	l := s.loans
	if l != nil {
		s.loans = l.next
	} else {
		l = new(loan)
	}
	buf.Retain()
	*l = loan{buf: buf}
	s.mem += len(buf.B)
	s.last = l
	return l
}

// giveBack drops a piece of a loan.
func (s *store) giveBack(l *loan) {
	if l.pieces--; l.pieces > 0 {
		return
	}
	s.mem -= len(l.buf.B)
	l.buf.Release()
	if s.last == l {
		s.last = nil
	}
	*l = loan{next: s.loans}
	s.loans = l
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
	if p.loan != nil {
		s.giveBack(p.loan)
	} else if n := cap(p.data); s.cached+n <= 2*s.limit { // of blocks up to twice as long as what is in them
		c := bits.Len(uint(n - 1))
		s.blocks[c] = append(s.blocks[c], p.data)
		s.cached += n
	}
	*p = piece{next: s.pieces}
	s.pieces = p
}
