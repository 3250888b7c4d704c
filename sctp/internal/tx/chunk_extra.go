package tx

import (
	"unsafe"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// chunkExtra is what PR-SCTP and I-DATA need of a chunk beside its record.
type chunkExtra struct {
	mid       wire.MID
	limit     uint32
	expiresAt rawio.Time
	resent    int32 // how often it was sent again; -1: the link has refused it, and it has not left
	policy    AbandonPolicy
}

// chunkExtras is a chunkExtra for each record of outstanding.
type chunkExtras struct {
	ring    []chunkExtra
	partial *partialReliability // nil unless PR-SCTP is negotiated
}

// SetExtensions has messages abandoned as their policies say, or sends I-DATA instead of DATA. The
// peer has agreed. Call it before the first message.
func (s *Sender) SetExtensions(abandons, interleaves bool) {
	g := &s.outstanding
	if (abandons || interleaves) && g.extras == nil {
		g.extras = &chunkExtras{ring: make([]chunkExtra, len(g.chunkRing))}
	}
	if abandons && g.extras.partial == nil {
		g.extras.partial = &partialReliability{forward: newForwardTSN(g.firstUnacked)}
	}
	if interleaves {
		s.perStream().interleaves = true
	}
}

// Interleaves says whether I-DATA is sent.
func (s *Sender) Interleaves() bool {
	return s.queue.streams != nil && s.queue.streams.interleaves
}

// partial returns what there is of PR-SCTP, nil unless that is negotiated.
func (s *Sender) partial() *partialReliability {
	if s.outstanding.extras == nil {
		return nil
	}
	return s.outstanding.extras.partial
}

// extraOf returns the extra of a TSN. There is one if extras is not nil.
func (g *outstanding) extraOf(t wire.TSN) *chunkExtra { return g.extras.at(t) }

func (x *chunkExtras) at(t wire.TSN) *chunkExtra { return &x.ring[int(t)&(len(x.ring)-1)] }

// grow makes room for n, as there are records. Those of some TSNs are in use.
func (x *chunkExtras) grow(from, end wire.TSN, n int) {
	old := chunkExtras{ring: x.ring}
	x.ring = make([]chunkExtra, n)
	for t := from; len(old.ring) > 0 && t != end; t++ {
		*x.at(t) = *old.at(t)
	}
}

// trim gives back the ring, when nothing is outstanding.
func (x *chunkExtras) trim() {
	if x != nil {
		x.ring = nil
	}
}

// held returns the octets of memory behind it.
func (x *chunkExtras) held() int {
	if x == nil {
		return 0
	}
	return int(unsafe.Sizeof(*x)) + len(x.ring)*int(unsafe.Sizeof(chunkExtra{})) + x.partial.held()
}
