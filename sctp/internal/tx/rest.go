package tx

import (
	"github.com/rddp-go/rddp/internal/sparse"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Rest is what is to be known of a Sender that rests, beside its Config, its paths and what SetUpper and SetECN have said.
type Rest struct {
	ssn     sparse.Table[wire.SSN]
	stats   usual
	resent  uint64 // resentOctets
	next    wire.TSN
	rwnd    uint32
	maxRwnd uint32
	streams int32 // going out
	primary int32
	after   int32 // withheld.after
}

// Rests says whether a Sender that is made from what Rest returns would go on as this one: nothing is outstanding or waits to be sent, and no timer runs.
// What is forgotten is how acknowledgements came before that.
func (s *Sender) Rests() bool {
	return s.empty() && s.NextTimeout() == rawio.Never && !s.recovery && !s.urgent && !s.probing && !s.tail.out && !s.withheld.on && !s.sackNow && !s.more &&
		s.Fault() == nil
}

// Rest returns what Resume goes on from. It is for when Rests says so.
func (s *Sender) Rest() Rest {
	s.Trim()
	return Rest{ssn: s.ssn, stats: s.stats, resent: s.resentOctets, next: s.ledger.next, rwnd: uint32(s.Rwnd()), maxRwnd: uint32(s.maxRwnd), streams: s.outStreams,
		primary: s.primary, after: int32(s.withheld.after)}
}

// Resume has a Sender that has its paths, and has sent nothing, go on from r.
func (s *Sender) Resume(r *Rest) {
	s.ssn, s.stats, s.resentOctets, s.outStreams, s.primary = r.ssn, r.stats, r.resent, r.streams, r.primary
	s.withheld.after = int(r.after)
	s.ledger.begin(r.next)
	s.ledger.rwnd, s.maxRwnd = int(r.rwnd), int(r.maxRwnd)
}

// Stats is that of the Sender.
func (r *Rest) Stats() Stats { return r.stats.all() }

// Fresh is that of the Sender.
func (r *Rest) Fresh() uint64 { return r.stats.fresh() }

// Primary is the index of that of the Sender.
func (r *Rest) Primary() int { return int(r.primary) }

// Rwnd is that of the Sender.
func (r *Rest) Rwnd() int { return int(r.rwnd) }

// NextTSN is that of the Sender.
func (r *Rest) NextTSN() wire.TSN { return r.next }

// NextSSN is that of the Sender.
func (r *Rest) NextSSN(id wire.StreamID) *wire.SSN { return r.ssn.At(uint16(id)) }

// Held is the octets of memory behind the Rest.
func (r *Rest) Held() int { return r.ssn.Held() }
