package ddp

import (
	"math"

	"github.com/rddp-go/rddp/internal/prefetch"
)

// Piece is a stretch of memory: Len octets from Off.
//
// If Region is set, as Stream.Resolve does, the octets are the region's: Off counts from its first
// octet, and Mem is ignored. An access then happens only while the region is valid, has the same
// buffer, and grants the rights that were asked for. So nothing is written after Region.Invalidate
// has returned.
type Piece struct {
	Mem    Memory
	Region *Region
	Off    uint64
	Len    uint64

	needAccess Access // of the region
	inRAM      bool   // Mem is the octets, as Resolve found them: they are not on a device
	bufferGen  uint32 // of the region's buffer
}

// beginAccess begins an access to the region of a piece. It returns false if the region may not be
// used any more.
func (p *Piece) beginAccess() bool {
	if !p.Region.beginAccess() {
		return false
	}
	if p.Region.grants(p.bufferGen, p.needAccess) {
		return true
	}
	p.Region.endAccess()
	return false
}

// Gather is the payload of a message, or the scatter list of a receive buffer: its pieces in order.
// A stream refers to the slice until the message or buffer is done. Do not change it.
type Gather []Piece

// Len returns the sum of the lengths in octets, or the largest uint64 if the sum is larger.
func (g Gather) Len() uint64 {
	var n uint64
	for i := range g {
		if g[i].Len > math.MaxUint64-n {
			return math.MaxUint64
		}
		n += g[i].Len
	}
	return n
}

// checkLen checks that the pieces lie within their memory and together have at most 2^32-1 octets.
// It returns their length.
func (g Gather) checkLen() (uint32, error) {
	for i := range g {
		if err := g[i].checkRange(); err != nil {
			return 0, err
		}
	}
	n := g.Len()
	if n > math.MaxUint32 {
		return 0, ErrMessageTooLong
	}
	return uint32(n), nil
}

func (p *Piece) checkRange() error {
	mem := p.Mem
	if p.Region != nil {
		if !p.beginAccess() {
			return ErrRevoked
		}
		mem = p.Region.mem
		p.Region.endAccess()
	}
	if !mem.hasRange(p.Off, p.Len) {
		return ErrRange
	}
	return nil
}

// writeAt writes b at off within the piece.
func (p *Piece) writeAt(off uint64, b []byte) error {
	if p.Region == nil {
		return writeWithin(p.Mem, p.Off+off, b, p.Mem.shouldPrefetch(uint64(len(b))))
	}
	if !p.beginAccess() {
		return ErrRevoked
	}
	err := writeWithin(p.Region.mem, p.Off+off, b, p.Region.shouldPrefetch(uint64(len(b))))
	p.Region.endAccess()
	return err
}

func writeWithin(m Memory, off uint64, b []byte, far bool) error {
	if !m.hasRange(off, uint64(len(b))) {
		return ErrRange
	}
	return m.writeAt(off, b, far)
}

// sliceAt returns octets [off, off+n) of the piece for sending. The octets are read after it has
// returned. So a check of the region is as good as an access here, and costs less.
func (p *Piece) sliceAt(off, n uint64) ([]byte, error) {
	if p.Region == nil {
		return sliceWithin(p.Mem, p.Off+off, n, p.Mem.shouldPrefetch(n))
	}
	if b := p.Mem.b; p.inRAM && off <= uint64(len(b)) && n <= uint64(len(b))-off && p.Region.Valid() &&
		p.Region.grants(p.bufferGen, p.needAccess) {
		if p.Region.shouldPrefetch(n) {
			prefetch.ForRead(prefetchRange(b, off, n))
		}
		return b[off : off+n : off+n], nil
	}
	if !p.beginAccess() {
		return nil, ErrRevoked
	}
	b, err := sliceWithin(p.Region.mem, p.Off+off, n, p.Region.shouldPrefetch(n))
	p.Region.endAccess()
	return b, err
}

func sliceWithin(m Memory, off, n uint64, far bool) ([]byte, error) {
	if !m.hasRange(off, n) {
		return nil, ErrRange
	}
	return m.sliceAt(off, n, far)
}

// scatterAt writes b at offset off of the pieces taken together.
func (g Gather) scatterAt(off uint64, b []byte) error {
	for i := range g {
		p := &g[i]
		if off >= p.Len {
			off -= p.Len
			continue
		}
		n := min(uint64(len(b)), p.Len-off)
		if err := p.writeAt(off, b[:n]); err != nil {
			return err
		}
		if b = b[n:]; len(b) == 0 {
			return nil
		}
		off = 0
	}
	if len(b) > 0 {
		return ErrRange
	}
	return nil
}

// RecvBuffer is an untagged buffer that serves one message (section 5.1.2). Make it with
// MakeRecvBuffer.
type RecvBuffer struct {
	Pieces Gather
	Len    uint32 // octets of all pieces
	Token  uint64 // the ULP's own; not looked at
}

// MakeRecvBuffer checks the pieces (ErrRange, ErrRevoked; ErrMessageTooLong for 2^32 octets or
// more) and adds up their length.
func MakeRecvBuffer(g Gather, token uint64) (RecvBuffer, error) {
	n, err := g.checkLen()
	return RecvBuffer{Pieces: g, Len: n, Token: token}, err
}

// BufferSource lends buffers that several streams share.
type BufferSource interface {
	// TakeBuffer removes and returns the next buffer, or false when there is none.
	TakeBuffer() (RecvBuffer, bool)
}
