package rx

import (
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/internal/sparse"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// IdleState is what to keep of an idle Receiver, beside its Config.
type IdleState struct {
	streams          sparse.Table[streamState]
	evictedChunks    uint64
	sackDelay        int32 // nanoseconds: Config.SackDelay, or what SetSackDelay has made of it
	delayLimit       int32 // of it, nanoseconds
	advertisedWindow uint32
	cumTSN           wire.TSN
	lossBackoff      int32
	// What the AckPolicy knows.
	answeredInRow            uint8
	firstAcked, delayExpired bool
	goesOn                   bool // the next TSN may go on with a message, see lastTSNIndex.restTSN
}

// CanIdle says whether a Receiver made from IdleState would go on as this one. All that has come is
// delivered, released and acknowledged. The buffer has not grown, and memory is not short.
func (r *Receiver) CanIdle() bool {
	g := &r.reassembly
	return r.aside == nil && g.heldOctets == 0 && g.store.usedMemory == 0 && g.streams.numPlaceholders == 0 &&
		g.partial.message == nil && !g.partial.isBeingPopped() && len(g.streams.due) == 0 &&
		g.outOfOrder.count == 0 && g.ext.isAtRest() && g.byLastTSN.endsAtBase == nil &&
		g.byLastTSN.baseTSN == r.tracker.Cum() &&
		!r.tracker.HasGaps() && !r.tracker.HasDups() && !r.hadGaps &&
		!r.ackPolicy.Pending() && r.ackPolicy.sackDueAt == rawio.Never && !r.ackPolicy.hasData && !r.underPressure &&
		r.cfg.RecvBuffer == int(r.initialBuffer)
}

// IdleState returns what RestoreFrom goes on from. Call it only when CanIdle returns true.
func (r *Receiver) IdleState() IdleState {
	return IdleState{streams: r.reassembly.streams.table, evictedChunks: r.evictedChunks,
		sackDelay: int32(r.ackPolicy.sackDelay), delayLimit: int32(min(r.ackPolicy.delayLimit, MaxSackDelay)),
		advertisedWindow: uint32(r.advertisedWindow), cumTSN: r.tracker.Cum(), lossBackoff: r.ackPolicy.lossBackoff,
		answeredInRow: r.ackPolicy.answeredInRow, firstAcked: r.ackPolicy.firstAcked,
		delayExpired: r.ackPolicy.delayExpired,
		goesOn:       r.reassembly.byLastTSN.restTSN == r.tracker.Cum()+1}
}

// Config returns the Config of a Receiver that is to go on from r by RestoreFrom.
func (r *IdleState) Config(cfg Config) Config {
	cfg.PeerTSN, cfg.SackDelay = r.cumTSN+1, time.Duration(r.sackDelay)
	return cfg
}

// RestoreFrom makes a Receiver with such a Config go on from where another became idle.
func (r *Receiver) RestoreFrom(from *IdleState) {
	r.reassembly.streams.table, r.evictedChunks, r.advertisedWindow = from.streams, from.evictedChunks,
		int(from.advertisedWindow)
	r.ackPolicy.lossBackoff, r.ackPolicy.answeredInRow, r.ackPolicy.firstAcked,
		r.ackPolicy.delayExpired = from.lossBackoff, from.answeredInRow, from.firstAcked, from.delayExpired
	r.ackPolicy.delayLimit = time.Duration(from.delayLimit)
	if from.goesOn {
		r.reassembly.byLastTSN.restTSN = from.cumTSN + 1
	}
	r.fitBuffer()
}

// IdleExtensions is what an idle Receiver keeps of I-DATA, beside IdleState.
type IdleExtensions struct {
	mids         sparse.Table[nextMIDs]
	hasRestarted bool
}

// IdleExtensions returns it, nil for a peer that sends DATA.
func (r *Receiver) IdleExtensions() *IdleExtensions {
	if !r.reassembly.interleaves() {
		return nil
	}
	x := r.reassembly.ext.interleaving
	return &IdleExtensions{x.mids, x.hasRestarted}
}

// RestoreExtensions goes on with it, after RestoreFrom.
func (r *Receiver) RestoreExtensions(x *IdleExtensions) {
	if x != nil {
		r.reassembly.ext.interleaving.mids = x.mids
		r.reassembly.ext.interleaving.hasRestarted = x.hasRestarted
	}
}

// Held returns the octets of memory behind it.
func (x *IdleExtensions) Held() int {
	if x == nil {
		return 0
	}
	return int(unsafe.Sizeof(*x)) + x.mids.Held()
}

// CumTSN is that of the Receiver.
func (r *IdleState) CumTSN() wire.TSN { return r.cumTSN }

// Window is that of the Receiver. What the peer has seen advertised may be more than
// Config.RecvBuffer now.
func (r *IdleState) Window(recvBuffer int) int { return max(recvBuffer, int(r.advertisedWindow)) }

// Evicted is that of the Receiver.
func (r *IdleState) Evicted() uint64 { return r.evictedChunks }

// Stream is that of the Receiver; no message waits.
func (r *IdleState) Stream(id wire.StreamID) (next wire.SSN, known bool) {
	s := r.streams.At(uint16(id))
	if s == nil {
		return 0, false
	}
	return s.nextSSN, true
}

// Held is the octets of memory behind the IdleState.
func (r *IdleState) Held() int { return r.streams.Held() }
