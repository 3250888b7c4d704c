package rx

import (
	"github.com/rddp-go/rddp/internal/sparse"
	"github.com/rddp-go/rddp/sctp/internal/tsnset"
	"github.com/rddp-go/rddp/sctp/wire"
)

// pieceIndex finds pieces of I-DATA by TSN, those beyond the cumulative TSN. An entry outlives its
// piece until the cumulative TSN has passed it, or a search has met it.
type pieceIndex struct {
	tsns   tsnset.Set
	pieces sparse.Table[*piece] // TSNs of one window differ in their low 16 bits
}

// maxIdleIndex is the most memory, in octets, that an index without entries keeps.
const maxIdleIndex = 16 << 10

// add enters a piece. All TSNs up to cum have been received.
func (x *pieceIndex) add(p *piece, cum wire.TSN) {
	if n := int(uint32(p.tsn - cum)); n > x.tsns.Cap() {
		x.tsns.Grow(max(n, 1024), cum+1, x.tsns.Cap())
	}
	x.tsns.Add(p.tsn)
	*x.pieces.Use(uint16(p.tsn)) = p
}

// take removes what there is of TSN t.
func (x *pieceIndex) take(t wire.TSN) {
	x.tsns.Remove(t)
	*x.pieces.At(uint16(t)) = nil
}

// highest returns the piece with the highest TSN, or nil. All TSNs up to cum have been received.
// steps is how many entries it has looked at.
func (x *pieceIndex) highest(cum wire.TSN) (p *piece, steps int) {
	for n := x.tsns.Cap(); ; steps++ {
		t, ok := x.tsns.Last(cum.Add(uint32(n)), n)
		if !ok {
			return nil, steps + 1
		}
		if p := *x.pieces.At(uint16(t)); p.owner != nil && p.owner.mayDrop && p.tsn == t {
			return p, steps + 1
		}
		x.take(t)
	}
}

// advance forgets the TSNs beyond from, up to cum.
func (x *pieceIndex) advance(from, cum wire.TSN) {
	n := min(int(uint32(cum-from)), x.tsns.Cap())
	for t, ok := x.tsns.Next(from+1, n); ok; t, ok = x.tsns.Next(t+1, n-int(uint32(t-from))) {
		x.take(t)
	}
	if x.pieces.Held() > maxIdleIndex {
		if _, ok := x.tsns.Next(cum+1, x.tsns.Cap()); !ok {
			*x = pieceIndex{}
		}
	}
}

func (x *pieceIndex) memorySize() int { return x.tsns.Held() + x.pieces.Held() }
