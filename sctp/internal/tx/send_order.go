package tx

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// stampOf is a time in microseconds that wrap; stamps are compared by their difference.
func stampOf(now rawio.Time) uint32 { return uint32(now / 1000) }

// maxStampAge is a quarter of the time in which stamps wrap. Of two stamps no further apart it is
// known which comes first.
const maxStampAge = 1 << 30 * time.Microsecond

// sendOrder says when a chunk was sent, and tells those apart that were sent together.
type sendOrder struct {
	isSet     bool // the others are set
	sentStamp uint32
	tsn       wire.TSN
}

// isAfter reports whether that was after another.
func (a *sendOrder) isAfter(stamp uint32, t wire.TSN) bool {
	d := int32(a.sentStamp - stamp)
	return a.isSet && (d > 0 || d == 0 && t.Less(a.tsn))
}

func (a *sendOrder) advanceTo(stamp uint32, t wire.TSN) {
	if d := int32(stamp - a.sentStamp); !a.isSet || d > 0 || d == 0 && a.tsn.Less(t) {
		*a = sendOrder{true, stamp, t}
	}
}

// lastDelivered is the last of what has arrived, in the order of sending.
type lastDelivered struct {
	latest sendOrder
	at     rawio.Time // when something has arrived last
}

// overtook reports whether a chunk was sent before one that has arrived.
func (d *lastDelivered) overtook(t wire.TSN, r *chunkRecord) bool {
	return d.latest.isAfter(r.sentStamp, t)
}

// noteDelivered remembers the chunk sent last of all that have arrived. What was sent after it is
// not missing yet. A SACK may report chunks with higher TSNs that were sent long before. That
// happens after a timeout, or when a SACK has no room for all gap blocks. For a chunk that was sent
// again it is not known which transmission has arrived. It counts as the last only if the answer
// took at least the shortest recent round trip.
func (s *Sender) noteDelivered(now rawio.Time, t wire.TSN, r *chunkRecord, p *Path) {
	if !p.isLastTransmission(now, r) {
		return
	}
	s.delivered.latest.advanceTo(r.sentStamp, t)
	p.latestDelivered.advanceTo(r.sentStamp, t)
	s.delivered.at = now
}

// isLastTransmission reports whether the transmission that was acknowledged may be the last one.
func (p *Path) isLastTransmission(now rawio.Time, r *chunkRecord) bool {
	return r.flags&flagProbeCopied == 0 &&
		(r.flags&flagResent == 0 || stampOf(now)-r.sentStamp >= uint32(p.rttEst.minRTT.get().Microseconds()))
}

// forgetOldStamps handles a silence so long that stamps do not tell any more what was sent when. A
// jump of the clock does the same. Nothing counts as having arrived then. What is outstanding
// counts as sent again now.
func (s *Sender) forgetOldStamps(now rawio.Time) {
	if now.Sub(s.delivered.at) <= maxStampAge {
		return
	}
	s.delivered.at, s.delivered.latest = now, sendOrder{}
	for _, p := range s.paths {
		p.latestDelivered, p.cwndFull, p.timing.active = sendOrder{}, sendOrder{}, false
	}
	g := &s.outstanding
	g.lossEligible.RemoveRange(g.firstUnacked, g.len())
	g.retransmitLog.clearAll()
	for t := g.firstUnacked; t != g.nextTSN; t++ {
		r := g.recordOf(t)
		r.sentStamp, r.flags = stampOf(now), r.flags|flagResent
		g.retransmitLog.push(g, t, r.sentStamp)
	}
}
