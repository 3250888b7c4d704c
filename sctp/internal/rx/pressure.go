package rx

import (
	"github.com/rddp-go/rddp/internal/sparse"
	"github.com/rddp-go/rddp/sctp/internal/tsnset"
)

// Squeeze closes the window for as long as it is on, and drops what only gap blocks have acknowledged (section 6.2: that may
// be taken back, what the cumulative TSN covers may not). A TSN that others wait behind is still taken, so that
// what waits for it, with the protocol above too, comes to its end.
func (r *Receiver) Squeeze(on bool) {
	r.squeezed = on
	for on {
		gone, ok := r.reasm.Evict(r.track.Cum())
		if !ok {
			break
		}
		r.track.Remove(gone)
		r.evicted++
	}
	if on {
		r.reasm.shrink()
		r.ungrow()
	}
	r.ack.Demand()
}

// Trim gives back what an idle association does not need: when no user data is held and no TSN is missing, all that is kept for reuse. A message
// of which all that has come was delivered in pieces stays.
func (r *Receiver) Trim() {
	if g := &r.reasm; g.used == 0 && !r.track.Gaps() {
		g.shrink()
		if r.reading.read+r.reading.past == 0 {
			r.ungrow()
		}
		r.reading = reading{}
		r.track.set = tsnset.Set{}
		if r.track.Dups() {
			r.track.gaps = nil
		} else {
			r.track.reports = nil
		}
		if g.held.edge == nil {
			g.held = held{base: g.held.base}
		}
		if !g.partly() {
			g.reading = nil
		}
		if len(g.due) == 0 {
			g.due = nil
		}
	}
}

// shrink gives back what is kept for reuse.
func (r *Reassembly) shrink() {
	s := &r.store
	r.free, r.nfree, s.pieces, s.npiece, s.loans, s.nloan = nil, 0, nil, 0, nil, 0
	s.blocks, s.cached, s.lists = nil, 0, 0
	if r.waits.n == 0 {
		r.queues = sparse.Table[streamQueue]{}
	}
	r.held.pages -= r.held.kept
	r.held.spare, r.held.kept = nil, 0
}
