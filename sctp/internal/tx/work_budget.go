package tx

import (
	"math"

	"github.com/rddp-go/rddp/sctp/internal/tsnset"
	"github.com/rddp-go/rddp/sctp/wire"
)

// A SACK, or an expiry of T3-rtx, may be about 65,535 chunks. So its work is counted in steps: a
// chunk, a gap block or a path that is looked at is one. When the budget is used up others have
// their turn, and Sender.ContinueWork goes on from there.

// maxSliceSteps is how many steps a SACK or T3-rtx may take at once. It holds where more chunks are
// outstanding.
const maxSliceSteps = 4096

// workBudget counts steps, and bounds how many are taken at once.
type workBudget struct {
	steps *uint64 // see Sender.Steps
	limit uint64  // how far steps may go at once

	renegeCredit int // chunks that SACKs have paid for, see payForReneging
}

// startSlice begins to count what is done at once, while so many chunks are outstanding.
func (w *workBudget) startSlice(outstanding int) {
	if w.limit = math.MaxUint64; outstanding > maxSliceSteps {
		w.limit = *w.steps + maxSliceSteps
	}
}

// takeStep takes a step, if the budget has one left.
func (w *workBudget) takeStep() bool {
	if *w.steps >= w.limit {
		return false
	}
	*w.steps++
	return true
}

// lastOfSlice returns how far a slice goes that takes TSNs in a row, of those from first to last.
func lastOfSlice(first, last wire.TSN) wire.TSN {
	if n := int(uint32(last + 1 - first)); n > maxSliceSteps {
		return first + maxSliceSteps - 1
	}
	return last
}

// chunkWalk visits chunks in TSN order, as far as the work budget goes: each takes a step. The
// members of the set that it has visited may leave the set meanwhile.
type chunkWalk struct {
	set  *tsnset.Set // whose members are visited; nil: all TSNs
	work *workBudget
	from wire.TSN // those from here
	end  wire.TSN // to before this one are yet to be visited

	tsn wire.TSN // the chunk that is visited; behind the last visit, where to go on
	cut bool     // the budget was used up before the end
}

// walk visits the members of set from one TSN to before another.
func (w *workBudget) walk(set *tsnset.Set, from, end wire.TSN) chunkWalk {
	return chunkWalk{set: set, work: w, from: from, end: end}
}

// next goes to the next chunk, if there is one and the budget allows it.
func (v *chunkWalk) next() bool {
	t, left := v.from, int(int32(v.end-v.from))
	found := left > 0
	if v.set != nil {
		t, found = v.set.Next(t, left)
	}
	if !found {
		v.tsn = v.end
		return false
	}
	v.tsn, v.from = t, t+1
	v.cut = !v.work.takeStep()
	return !v.cut
}
