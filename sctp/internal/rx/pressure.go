package rx

import (
	"github.com/rddp-go/rddp/internal/sparse"
	"github.com/rddp-go/rddp/sctp/internal/tsnset"
)

// SetMemoryPressure closes the window for as long as it is on, and drops what only gap blocks have
// acknowledged. Section 6.2 allows to take that back, but not what the cumulative TSN covers. A TSN
// that others wait behind is still taken, so that what waits for it can complete, in the protocol
// above too.
func (r *Receiver) SetMemoryPressure(on bool) {
	r.underPressure = on
	for on {
		gone, ok := r.reassembly.Evict(r.tracker.Cum())
		if !ok {
			break
		}
		r.tracker.Remove(gone)
		r.evictedChunks++
	}
	if on {
		r.reassembly.freeSpares()
		r.resetBufferSize()
	}
	r.ackPolicy.Demand()
}

// Trim gives back what an idle association does not need. When no user data is held and no TSN is
// missing, that is all that is kept for reuse. A message stays if all that has come of it was
// delivered in pieces.
func (r *Receiver) Trim() {
	if g := &r.reassembly; g.heldOctets == 0 && !r.tracker.HasGaps() {
		g.freeSpares()
		if r.readRate.read+r.readRate.lastRTT == 0 {
			r.resetBufferSize()
		}
		r.readRate = readRate{}
		r.tracker.aboveCum = tsnset.Set{}
		if g.interleaves() {
			g.ext.interleaving.index = pieceIndex{}
		}
		if r.tracker.HasDups() {
			r.tracker.gaps = nil
		} else {
			r.tracker.sackReports = nil
		}
		if g.byLastTSN.endsAtBase == nil {
			g.byLastTSN = lastTSNIndex{baseTSN: g.byLastTSN.baseTSN}
		}
		if !g.partial.isBeingPopped() {
			g.partial.popped = nil
		}
		if len(g.streams.due) == 0 {
			g.streams.due = nil
		}
	}
}

// freeSpares gives back what is kept for reuse.
func (r *Reassembly) freeSpares() {
	s := &r.store
	s.freeMessages, s.numFreeMessages, s.freePieces, s.numFreePieces, s.freeRefs, s.numFreeRefs = nil, 0, nil, 0, nil, 0
	s.freeBlocks, s.freeBlockOctets, s.freeListOctets = nil, 0, 0
	if r.outOfOrder.count == 0 {
		r.outOfOrder.queues = sparse.Table[streamQueue]{}
		if r.ext != nil {
			r.ext.waiting = sparse.Table[orderedQueue]{}
		}
	}
	if r.interleaves() {
		r.ext.interleaving.freeSpares()
	}
	r.byLastTSN.numPages -= r.byLastTSN.numSpare
	r.byLastTSN.sparePages, r.byLastTSN.numSpare = nil, 0
}
