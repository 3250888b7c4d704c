package tx

import (
	"github.com/rddp-go/rddp/internal/sparse"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// IdleState is what is to be known of a Sender that rests, beside its Config, its paths and what
// SetUpper and SetECN have said.
type IdleState struct {
	nextSSN              sparse.Table[wire.SSN]
	stats                commonStats
	retransmittedOctets  uint64 // retransmittedOctets
	nextTSN              wire.TSN
	rwnd                 uint32
	maxRwnd              uint32
	outStreams           int32 // going out
	primaryIndex         int32
	packetsUntilWithhold int32 // withheld.after
}

// CanIdle says whether a Sender that is made from what Rest returns would go on as this one:
// nothing is outstanding or waits to be sent, and no timer runs. What is forgotten is how
// acknowledgements came before that.
func (s *Sender) CanIdle() bool {
	return s.isDrained() && s.NextTimeout() == rawio.Never && !s.inRecovery && !s.bypassCwnd && !s.zeroWindowProbing && !s.tailProbe.unacked && !s.withheld.isActive && !s.sackNow && !s.moreExpected &&
		s.Fault() == nil
}

// IdleState returns what Resume goes on from. It is for when Rests says so.
func (s *Sender) IdleState() IdleState {
	s.Trim()
	return IdleState{nextSSN: s.nextSSN, stats: s.stats, retransmittedOctets: s.retransmittedOctets, nextTSN: s.outstanding.nextTSN, rwnd: uint32(s.Rwnd()), maxRwnd: uint32(s.maxRwnd), outStreams: s.outStreams,
		primaryIndex: s.primaryIndex, packetsUntilWithhold: int32(s.withheld.packetsUntilNext)}
}

// RestoreFrom has a Sender that has its paths, and has sent nothing, go on from r.
func (s *Sender) RestoreFrom(r *IdleState) {
	s.nextSSN, s.stats, s.retransmittedOctets, s.outStreams, s.primaryIndex = r.nextSSN, r.stats, r.retransmittedOctets, r.outStreams, r.primaryIndex
	s.withheld.packetsUntilNext = int(r.packetsUntilWithhold)
	s.outstanding.initTSN(r.nextTSN)
	s.outstanding.rwnd, s.maxRwnd = int(r.rwnd), int(r.maxRwnd)
}

// Stats is that of the Sender.
func (r *IdleState) Stats() Stats { return r.stats.toStats() }

// SentTSNs is that of the Sender.
func (r *IdleState) SentTSNs() uint64 { return r.stats.newChunkCount() }

// Primary is the index of that of the Sender.
func (r *IdleState) Primary() int { return int(r.primaryIndex) }

// Rwnd is that of the Sender.
func (r *IdleState) Rwnd() int { return int(r.rwnd) }

// NextTSN is that of the Sender.
func (r *IdleState) NextTSN() wire.TSN { return r.nextTSN }

// NextSSN is that of the Sender.
func (r *IdleState) NextSSN(id wire.StreamID) *wire.SSN { return r.nextSSN.At(uint16(id)) }

// Held is the octets of memory behind the Rest.
func (r *IdleState) Held() int { return r.nextSSN.Held() }
