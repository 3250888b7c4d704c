package tx

import (
	"unsafe"

	"github.com/rddp-go/rddp/internal/sparse"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// IdleState is the idle state of a Sender. It lacks its Config, its paths, and what SetUpper and
// SetECN have set.
type IdleState struct {
	nextSSN              sparse.Table[wire.SSN]
	stats                commonStats
	nextTSN              wire.TSN
	rwnd                 uint32
	maxRwnd              uint32
	outStreams           int32 // going out
	primaryIndex         int32
	packetsUntilWithhold int32 // withheld.packetsUntilNext
}

// IdleExtensions is what an idle Sender keeps of its extensions, beside IdleState.
type IdleExtensions struct {
	streams *streamQueues
	extras  *chunkExtras
}

// IdleExtensions returns what is to be kept of the extensions, nil if that is nothing.
func (s *Sender) IdleExtensions() *IdleExtensions {
	x := IdleExtensions{s.queue.streams, s.outstanding.extras}
	if x == (IdleExtensions{}) {
		return nil
	}
	return &x
}

// RestoreExtensions goes on with them, after RestoreFrom.
func (s *Sender) RestoreExtensions(x *IdleExtensions) {
	if x == nil {
		return
	}
	s.queue.streams = x.streams
	if g := &s.outstanding; x.extras != nil {
		x.extras.grow(0, 0, len(g.chunkRing))
		if g.extras = x.extras; g.extras.partial != nil {
			g.extras.partial.forward = newForwardTSN(g.nextTSN)
		}
	}
}

// CanIdle says whether a Sender that is restored from IdleState would go on as this one. Nothing is
// outstanding or waits to be sent, and no timer runs. What is forgotten is how earlier
// acknowledgements came.
func (s *Sender) CanIdle() bool {
	return s.isDrained() && s.NextTimeout() == rawio.Never && !s.recovery.active && !s.recovery.bypassCwnd &&
		!s.window.probing && !s.tailProbe.unacked && !s.withheld.isActive && !s.sackNow && !s.burst.moreExpected &&
		s.Fault() == nil
}

// IdleState returns what RestoreFrom goes on from. Call it when CanIdle says so.
func (s *Sender) IdleState() IdleState {
	s.Trim()
	return IdleState{nextSSN: s.streams.nextSSN, outStreams: s.streams.count, stats: s.stats,
		nextTSN: s.outstanding.nextTSN, rwnd: uint32(s.Rwnd()), maxRwnd: s.window.largest,
		primaryIndex: s.primaryIndex, packetsUntilWithhold: int32(s.withheld.packetsUntilNext)}
}

// RestoreFrom has a Sender that has its paths, and has sent nothing, go on from r.
func (s *Sender) RestoreFrom(r *IdleState) {
	s.streams.nextSSN, s.streams.count, s.stats, s.primaryIndex = r.nextSSN, r.outStreams, r.stats, r.primaryIndex
	s.withheld.packetsUntilNext = int(r.packetsUntilWithhold)
	s.outstanding.initTSN(r.nextTSN)
	s.outstanding.rwnd, s.window.largest, s.window.last = int(r.rwnd), r.maxRwnd, r.rwnd
}

// Stats returns those of the Sender.
func (r *IdleState) Stats() Stats { return r.stats.toStats() }

// SentTSNs returns that of the Sender.
func (r *IdleState) SentTSNs() uint64 { return r.stats.newChunkCount() }

// Primary returns the index of the Sender's primary path.
func (r *IdleState) Primary() int { return int(r.primaryIndex) }

// Rwnd returns that of the Sender.
func (r *IdleState) Rwnd() int { return int(r.rwnd) }

// NextTSN returns that of the Sender.
func (r *IdleState) NextTSN() wire.TSN { return r.nextTSN }

// NextSSN returns that of the Sender.
func (r *IdleState) NextSSN(id wire.StreamID) *wire.SSN { return r.nextSSN.At(uint16(id)) }

// Held returns the octets of memory behind the IdleState.
func (r *IdleState) Held() int { return r.nextSSN.Held() }

// Held returns the octets of memory of the extensions.
func (x *IdleExtensions) Held() int {
	if x == nil {
		return 0
	}
	return int(unsafe.Sizeof(*x)) + x.streams.held() + x.extras.held()
}
