package rx

import (
	"time"

	"github.com/rddp-go/rddp/internal/sparse"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Rest is what is to be known of a Receiver that rests, beside its Config.
type Rest struct {
	streams sparse.Table[stream]
	evicted uint64
	delay   int32 // nanoseconds: Config.SackDelay, or what SetSackDelay has made of it
	limit   int32 // of it, nanoseconds
	credit  uint32
	cum     wire.TSN
	wary    int32
	// What the AckPolicy knows.
	answered    uint8
	begun, vain bool
}

// Rests says whether a Receiver that is made from what Rest returns would go on as this one: all that has come is delivered, released and acknowledged,
// there is no more room for it than at first, and memory is not short.
func (r *Receiver) Rests() bool {
	g := &r.reasm
	return g.used == 0 && g.store.mem == 0 && g.skips == 0 && g.open == nil && !g.partly() && len(g.due) == 0 && g.waits.n == 0 && g.held.edge == nil &&
		g.held.base == r.track.Cum() && !r.track.Gaps() && !r.track.Dups() && !r.gaps &&
		!r.ack.Pending() && r.ack.deadline == rawio.Never && !r.ack.data && !r.squeezed && r.cfg.RecvBuffer == r.first
}

// Rest returns what Resume goes on from. It is for when Rests says so.
func (r *Receiver) Rest() Rest {
	return Rest{streams: r.reasm.streams, evicted: r.evicted, delay: int32(r.ack.delay), limit: int32(min(r.ack.limit, MaxSackDelay)), credit: uint32(r.credit), cum: r.track.Cum(), wary: r.ack.wary,
		answered: r.ack.answered, begun: r.ack.begun, vain: r.ack.vain}
}

// Config is that of a Receiver which is to go on from r by Resume.
func (r *Rest) Config(cfg Config) Config {
	cfg.PeerTSN, cfg.SackDelay = r.cum+1, time.Duration(r.delay)
	return cfg
}

// Resume has a Receiver that was made with such a Config go on from where another has rested.
func (r *Receiver) Resume(from *Rest) {
	r.reasm.streams, r.evicted, r.credit = from.streams, from.evicted, int(from.credit)
	r.ack.wary, r.ack.answered, r.ack.begun, r.ack.vain = from.wary, from.answered, from.begun, from.vain
	r.ack.limit = time.Duration(from.limit)
	r.fit()
}

// CumTSN is that of the Receiver.
func (r *Rest) CumTSN() wire.TSN { return r.cum }

// Window is that of the Receiver, which the peer may have been told of more than Config.RecvBuffer is now.
func (r *Rest) Window(recvBuffer int) int { return max(recvBuffer, int(r.credit)) }

// Evicted is that of the Receiver.
func (r *Rest) Evicted() uint64 { return r.evicted }

// Stream is that of the Receiver, of which no message waits.
func (r *Rest) Stream(id wire.StreamID) (next wire.SSN, known bool) {
	s := r.streams.At(uint16(id))
	if s == nil {
		return 0, false
	}
	return s.next, true
}

// Held is the octets of memory behind the Rest.
func (r *Rest) Held() int { return r.streams.Held() }
