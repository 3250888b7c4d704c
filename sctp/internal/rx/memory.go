package rx

import (
	"math"
	"math/bits"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// piece is the user data of one DATA or I-DATA chunk.
type piece struct {
	prev, next *piece
	data       []byte
	bufRef     *bufferRef // of the buffer that data lies in, or nil: data is the store's
	// Of I-DATA, while it may be dropped for want of room, and its number in the message.
	owner *Message
	tsn   wire.TSN
	fsn   wire.FSN
}

// cost is the octets of memory that p uses, without the buffer's.
func (p *piece) cost() int {
	if p.bufRef != nil {
		return pieceCost
	}
	return cap(p.data) + pieceCost
}

// bufferRef is the store's one reference to a packet buffer, for all pieces whose data lie there.
// After a piece from another buffer a new one is taken.
type bufferRef struct {
	buf       *rawio.Buf
	numPieces int
	next      *bufferRef // in the list of free ones
}

// Octets that one of each takes, as rounded by the allocator.
const (
	pieceCost     = 64
	messageCost   = 112
	bufferRefCost = 24
	listCost      = 24 // of a block in a list of free ones
)

// Pieces, messages and buffer references are kept for reuse: one for each octetsPerSpare octets of
// the receive buffer, and minSpares at least.
const (
	minSpares      = 256
	octetsPerSpare = 1 << 10
)

// Copies live in blocks of a power of two octets.
const (
	minBlockBits = 6  // 64 octets
	maxBlockBits = 16 // 65536 octets
)

// memoryStore hands out messages, pieces, and the blocks that short user data is copied to. It
// takes them back, keeps some for reuse, and counts what is in use.
type memoryStore struct {
	freeMessages *Message
	// Free pieces, the last dropped first, each with the block of its data: the next data are
	// usually as long.
	freePieces      *piece
	freeRefs        *bufferRef
	numFreeMessages int32
	numFreePieces   int32
	numFreeRefs     int32
	maxSpares       int32                                      // of each, see minSpares
	lastRef         *bufferRef                                 // of the last piece's buffer, while that has pieces
	freeBlocks      *[maxBlockBits + 1 - minBlockBits][][]byte // free blocks without a piece, by length, or nil
	freeBlockOctets int                                        // octets in free blocks
	freeListOctets  int                                        // octets of the lists of them
	dataLimit       int                                        // of user data
	usedMemory      int                                        // memory in use: pieces, messages and buffer references
	inline          inlineMemory
}

// inlineMemory is room for one message of one short piece inside the store. Where few messages
// wait, the next needs no memory elsewhere.
type inlineMemory struct {
	pieceUsed, messageUsed bool
	piece                  piece // its data is copied to room
	room                   [1 << (minBlockBits + 1)]byte
	message                Message
}

func (s *memoryStore) setLimit(limit int) {
	s.dataLimit, s.maxSpares = limit, int32(min(max(minSpares, limit/octetsPerSpare), math.MaxInt32))
}

// keepData returns a piece with the octets of data, which lies in buf. Data stays there, or is
// copied so that a little data does not hold much memory.
func (s *memoryStore) keepData(data []byte, buf *rawio.Buf) *piece {
	l := s.refBuffer(data, buf)
	if l == nil && !s.inline.pieceUsed && len(data) <= len(s.inline.room) {
		return s.keepInline(data)
	}
	p := s.freePieces
	if p != nil {
		s.freePieces = p.next
		s.numFreePieces--
	} else {
		p = new(piece)
	}
	own := p.data
	if l != nil {
		l.numPieces++
		*p = piece{data: data, bufRef: l}
	} else {
		var b []byte
		b, own = s.takeBlock(len(data), own)
		copy(b, data)
		*p = piece{data: b}
	}
	if own != nil {
		s.putBlock(own)
	}
	s.usedMemory += p.cost()
	return p
}

// keepInline copies data to the room inside the store.
func (s *memoryStore) keepInline(data []byte) *piece {
	p, n := &s.inline.piece, copy(s.inline.room[:], data)
	*p = piece{data: s.inline.room[: n : 1<<blockBits(n)]}
	s.inline.pieceUsed = true
	s.usedMemory += p.cost()
	return p
}

// inlineCost is the cost of the piece inside the store, if there is one.
func (s *memoryStore) inlineCost() int {
	if !s.inline.pieceUsed {
		return 0
	}
	return s.inline.piece.cost()
}

// refBuffer returns the reference to buf, or nil when data is to be copied. A reference pays if
// data is a good part of the buffer. It may also pay when the packets in buf are together, as those
// of a train are. They may not all be for this store, so that is only while the store holds little
// more than it is for.
func (s *memoryStore) refBuffer(data []byte, buf *rawio.Buf) *bufferRef {
	switch {
	case buf == nil:
		return nil
	case s.lastRef != nil && s.lastRef.buf == buf:
		return s.lastRef
	case len(data) < len(buf.B)/4 && (buf.Filled < len(buf.B)/4 || s.usedMemory > 2*s.dataLimit):
		return nil
	}
	l := s.freeRefs
	if l != nil {
		s.freeRefs = l.next
		s.numFreeRefs--
	} else {
		l = new(bufferRef)
	}
	buf.Retain()
	*l = bufferRef{buf: buf}
	s.usedMemory += len(buf.B) + bufferRefCost
	s.lastRef = l
	return l
}

// unrefBuffer drops a piece of a buffer reference.
func (s *memoryStore) unrefBuffer(l *bufferRef) {
	if l.numPieces--; l.numPieces > 0 {
		return
	}
	s.usedMemory -= len(l.buf.B) + bufferRefCost
	l.buf.Release()
	if s.lastRef == l {
		s.lastRef = nil
	}
	if *l = (bufferRef{}); s.numFreeRefs < s.maxSpares {
		l.next, s.freeRefs = s.freeRefs, l
		s.numFreeRefs++
	}
}

// memorySize returns the octets of memory that the store keeps elsewhere, in use or not.
func (s *memoryStore) memorySize() int {
	n := s.usedMemory - s.inlineCost() + s.freeBlockOctets + s.freeListOctets +
		int(s.numFreeMessages)*messageCost + int(s.numFreePieces)*pieceCost + int(s.numFreeRefs)*bufferRefCost
	if s.inline.messageUsed {
		n -= messageCost
	}
	return n
}

// blockBits is the logarithm of the length of the blocks for n octets, 1 <= n <= 65536.
func blockBits(n int) int { return max(bits.Len(uint(n-1)), minBlockBits) }

// takeBlock returns a block for n octets: the piece's own if that is as long, or one without a
// piece. rest is the piece's own block if it is still free.
func (s *memoryStore) takeBlock(n int, own []byte) (b, rest []byte) {
	c := blockBits(n)
	if cap(own) == 1<<c {
		s.freeBlockOctets -= cap(own)
		return own[:n], nil
	}
	if s.freeBlocks != nil {
		if l := &s.freeBlocks[c-minBlockBits]; len(*l) > 0 {
			k := len(*l) - 1
			b = (*l)[k]
			(*l)[k], *l = nil, (*l)[:k]
			s.freeBlockOctets -= cap(b)
			return b[:n], own
		}
	}
	return make([]byte, n, 1<<c), own
}

// putBlock keeps a free block without a piece.
func (s *memoryStore) putBlock(b []byte) {
	if s.freeBlocks == nil {
		s.freeBlocks = new([maxBlockBits + 1 - minBlockBits][][]byte)
	}
	l := &s.freeBlocks[bits.TrailingZeros(uint(cap(b)))-minBlockBits]
	before := cap(*l)
	*l = append(*l, b)
	s.freeListOctets += listCost * (cap(*l) - before)
}

// dropPiece takes a piece back.
func (s *memoryStore) dropPiece(p *piece) {
	s.usedMemory -= p.cost()
	if p == &s.inline.piece {
		*p, s.inline.pieceUsed = piece{}, false
		return
	}
	b := p.data
	if p.bufRef != nil {
		s.unrefBuffer(p.bufRef)
		b = nil
	} else if s.freeBlockOctets+cap(b) > 2*s.dataLimit { // blocks are up to twice as long as their data
		b = nil
	}
	s.freeBlockOctets += cap(b)
	if *p = (piece{}); s.numFreePieces < s.maxSpares {
		p.data, p.next, s.freePieces = b, s.freePieces, p
		s.numFreePieces++
	} else if b != nil {
		s.putBlock(b)
	}
}

// newMessage returns an empty message.
func (s *memoryStore) newMessage() *Message {
	s.usedMemory += messageCost
	m := s.freeMessages
	switch {
	case !s.inline.messageUsed:
		s.inline.messageUsed = true
		return &s.inline.message
	case m == nil:
		return new(Message)
	}
	s.freeMessages = m.next
	s.numFreeMessages--
	m.next = nil
	return m
}

// dropMessage takes a message back, and its pieces.
func (s *memoryStore) dropMessage(m *Message) {
	for p := m.headPiece; p != nil; {
		next := p.next
		s.dropPiece(p)
		p = next
	}
	s.recycleMessage(m)
}

// recycleMessage takes a message back whose pieces are elsewhere.
func (s *memoryStore) recycleMessage(m *Message) {
	s.usedMemory -= messageCost
	*m = Message{}
	switch {
	case m == &s.inline.message:
		s.inline.messageUsed = false
	case s.numFreeMessages < s.maxSpares:
		m.next, s.freeMessages = s.freeMessages, m
		s.numFreeMessages++
	}
}
