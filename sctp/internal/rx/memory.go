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

// Octets that one of each takes, as the allocator rounds them.
const (
	pieceCost   = 64
	messageCost = 112
	loanCost    = 24
	listCost    = 24 // of a block in a list of free ones
)

// Of pieces, messages and loans as many are kept for reuse as a receive buffer full of data takes that comes in spareData octets, and
// leastSpare at least.
const (
	leastSpare = 256
	spareData  = 1 << 10
)

// Copies live in blocks of a power of two octets.
const (
	minBlock = 6  // 64 octets
	maxBlock = 16 // 65536 octets
)

// store hands out pieces and the blocks that short user data is copied to, and takes them back.
type store struct {
	pieces *piece // free ones, the last that was dropped first, with the block that its data lay in: the next data are mostly as long
	loans  *loan
	npiece int // so many
	nloan  int
	last   *loan                              // of the buffer that the last piece came in, while it has pieces
	blocks *[maxBlock + 1 - minBlock][][]byte // free ones that no piece has, by their length; nil until there was one
	cached int                                // octets in free blocks
	lists  int                                // octets of the lists of them
	limit  int                                // of user data
	spare  int                                // see leastSpare
	mem    int                                // what is in use keeps: pieces, messages and loans

	ownUsed bool
	own     piece // a short one, which is copied to room
	room    [1 << (minBlock + 1)]byte
}

func (s *store) begin(limit int) { s.limit, s.spare = limit, max(leastSpare, limit/spareData) }

// keep returns a piece with the octets of data, which lies in buf: it stays there, or it is copied, so that a
// little data does not hold much memory.
func (s *store) keep(data []byte, buf *rawio.Buf) *piece {
	l := s.borrow(data, buf)
	if l == nil && !s.ownUsed && len(data) <= len(s.room) {
		return s.keepHere(data)
	}
	p := s.pieces
	if p != nil {
		s.pieces = p.next
		s.npiece--
	} else {
		p = new(piece)
	}
	own := p.data
	if l != nil {
		l.pieces++
		*p = piece{data: data, loan: l, cost: pieceCost}
	} else {
		var b []byte
		b, own = s.block(len(data), own)
		copy(b, data)
		*p = piece{data: b, cost: cap(b) + pieceCost}
	}
	if own != nil {
		s.shelve(own)
	}
	s.mem += p.cost
	return p
}

// keepHere copies data to the room that there is without any memory elsewhere.
func (s *store) keepHere(data []byte) *piece {
	p, n := &s.own, copy(s.room[:], data)
	*p = piece{data: s.room[:n:n], cost: 1<<class(n) + pieceCost}
	s.ownUsed = true
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
		s.nloan--
	} else {
		l = new(loan)
	}
	buf.Retain()
	*l = loan{buf: buf}
	s.mem += len(buf.B) + loanCost
	s.last = l
	return l
}

// giveBack drops a piece of a loan.
func (s *store) giveBack(l *loan) {
	if l.pieces--; l.pieces > 0 {
		return
	}
	s.mem -= len(l.buf.B) + loanCost
	l.buf.Release()
	if s.last == l {
		s.last = nil
	}
	if *l = (loan{}); s.nloan < s.spare {
		l.next, s.loans = s.loans, l
		s.nloan++
	}
}

// held returns the octets of memory that the store keeps elsewhere, in use or not.
func (s *store) held() int {
	return s.mem - s.own.cost + s.cached + s.lists + s.npiece*pieceCost + s.nloan*loanCost
}

// class is the logarithm of the length of the blocks for n octets, 1 <= n <= 65536.
func class(n int) int { return max(bits.Len(uint(n-1)), minBlock) }

// block returns one for n octets: a piece's own, if that is as long, or one that no piece has; rest is its own if that is still free.
func (s *store) block(n int, own []byte) (b, rest []byte) {
	c := class(n)
	if cap(own) == 1<<c {
		s.cached -= cap(own)
		return own[:n], nil
	}
	if s.blocks != nil {
		if l := &s.blocks[c-minBlock]; len(*l) > 0 {
			k := len(*l) - 1
			b = (*l)[k]
			(*l)[k], *l = nil, (*l)[:k]
			s.cached -= cap(b)
			return b[:n], own
		}
	}
	return make([]byte, n, 1<<c), own
}

// shelve keeps a free block without a piece.
func (s *store) shelve(b []byte) {
	if s.blocks == nil {
		s.blocks = new([maxBlock + 1 - minBlock][][]byte)
	}
	l := &s.blocks[bits.TrailingZeros(uint(cap(b)))-minBlock]
	before := cap(*l)
	*l = append(*l, b)
	s.lists += listCost * (cap(*l) - before)
}

// drop takes a piece back.
func (s *store) drop(p *piece) {
	s.mem -= p.cost
	if p == &s.own {
		*p, s.ownUsed = piece{}, false
		return
	}
	b := p.data
	if p.loan != nil {
		s.giveBack(p.loan)
		b = nil
	} else if s.cached+cap(b) > 2*s.limit { // blocks are up to twice as long as what is in them
		b = nil
	}
	s.cached += cap(b)
	if *p = (piece{}); s.npiece < s.spare {
		p.data, p.next, s.pieces = b, s.pieces, p
		s.npiece++
	} else if b != nil {
		s.shelve(b)
	}
}
