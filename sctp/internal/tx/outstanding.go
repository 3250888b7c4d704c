package tx

import (
	"github.com/rddp-go/rddp/internal/invariant"
	"github.com/rddp-go/rddp/sctp/internal/tsnset"
	"github.com/rddp-go/rddp/sctp/wire"
)

// chunkState is where a chunk is. The table in the package comment says which state leads to which,
// and transitions says it to the program.
type chunkState uint8

const (
	stateNone            chunkState = iota // it has a TSN, and goes now
	stateInFlight                          // in flight, not acknowledged since
	stateWithheld                          // has not left, and counts as in flight (optimistic_ack.go)
	stateReneged                           // in flight again: a gap block named it, a later SACK does not
	stateLost                              // to be sent again
	stateWithheldQueued                    // was withheld, and is to be sent
	stateLostAfterRenege                   // was taken back, and is to be sent again
	stateGapAcked                          // acknowledged by a gap block
	stateAbandoned                         // given up (RFC 3758): neither outstanding nor acknowledged
	stateAcked                             // acknowledged by the cumulative TSN, or the association has ended

	numChunkStates
)

var chunkStateNames = [numChunkStates]string{"none", "in-flight", "withheld", "reneged", "lost", "withheld-queued",
	"lost-reneged", "gap-acked", "abandoned", "acked"}

func (st chunkState) String() string { return chunkStateNames[st] }

// chunkEvent is what happens to a chunk.
type chunkEvent uint8

const (
	onSend      chunkEvent = iota // it leaves
	onWithhold                    // it does not, and is counted as if it did
	onProbeCopy                   // what was withheld leaves, as a copy
	onMarkLost                    // it is taken for lost, or has not left after all
	onUndoLoss                    // that was a false alarm
	onGapAck                      // a gap block names it
	onRenege                      // none names it any more
	onCumAck                      // the cumulative TSN passes it
	onAbandon                     // its message is given up

	numChunkEvents
)

var chunkEventNames = [numChunkEvents]string{"send", "withhold", "probe copy", "mark lost", "undo loss", "gap ack",
	"renege", "cum ack", "abandon"}

func (t chunkEvent) String() string { return chunkEventNames[t] }

// transitions is what may become of a chunk. What is not in it cannot be: a peer that acknowledges
// what was withheld is found out before (Sender.acksWithheld).
var transitions = [numChunkStates][numChunkEvents]chunkState{
	stateNone: {onSend: stateInFlight, onWithhold: stateWithheld, onAbandon: stateAbandoned},
	stateInFlight: {onMarkLost: stateLost, onGapAck: stateGapAcked, onCumAck: stateAcked,
		onAbandon: stateAbandoned},
	stateWithheld: {onProbeCopy: stateInFlight, onMarkLost: stateWithheldQueued},
	stateReneged: {onMarkLost: stateLostAfterRenege, onGapAck: stateGapAcked, onCumAck: stateAcked,
		onAbandon: stateAbandoned},
	stateLost: {onSend: stateInFlight, onUndoLoss: stateInFlight, onGapAck: stateGapAcked,
		onCumAck: stateAcked, onAbandon: stateAbandoned},
	stateWithheldQueued: {onSend: stateInFlight, onProbeCopy: stateLost},
	stateLostAfterRenege: {onSend: stateInFlight, onGapAck: stateGapAcked, onCumAck: stateAcked,
		onAbandon: stateAbandoned},
	stateGapAcked:  {onRenege: stateReneged, onCumAck: stateAcked, onAbandon: stateAbandoned},
	stateAbandoned: {onCumAck: stateAcked},
}

// chunkSets are some of the sets that outstanding keeps.
type chunkSets uint8

const (
	inFlight       chunkSets = 1 << iota // flight sizes, and what is in flight to each path
	inToRetransmit                       // what is to be sent
	inGapAcked                           // what may be taken back
	// what a gap block acknowledges at no price: that it was sent has paid for the work
	inUnacked
	inReneged // what it does as long as SACKs have paid for that
)

// setsOfState says which accounts have the chunks of a state.
var setsOfState = [numChunkStates]chunkSets{
	stateInFlight:        inFlight | inUnacked,
	stateWithheld:        inFlight | inUnacked,
	stateReneged:         inFlight | inReneged,
	stateLost:            inToRetransmit | inUnacked,
	stateWithheldQueued:  inToRetransmit | inUnacked,
	stateLostAfterRenege: inToRetransmit | inReneged,
	stateGapAcked:        inGapAcked,
}

// isIn reports whether one of the accounts has the chunk.
func (r *chunkRecord) isIn(a chunkSets) bool { return setsOfState[r.state]&a != 0 }

// outstanding holds the chunks from the cumulative TSN Ack Point on. Only its methods change the
// state of a chunk, and with it all sums and sets. The sets find the chunks of a kind, so that a
// SACK costs what it changes.
type outstanding struct {
	chunkRing    []chunkRecord // a power of two; TSN t is at t mod len
	firstUnacked wire.TSN      // the earliest TSN not acknowledged cumulatively
	nextTSN      wire.TSN      // the first TSN not sent yet
	firstIntact  wire.TSN      // records from here on are still in place, also those before firstUnacked
	keepHistory  bool          // chunks were sent again, or the path is congested

	fault *invariant.Error // the table has been contradicted

	unacked         tsnset.Set // those of inUnacked
	numToRetransmit int32      // how many there are of marked,
	numGapAcked     int32      // and of gapped
	flightSize      int        // octets of chunks in flight, all paths
	dataInFlight    int        // octets of user data in flight
	rwnd            int        // what the peer has room for beyond that; negative when a probe went out

	// What follows is for acknowledgements.
	memoryOctets   int        // of memory that records and sets take
	lossEligibleTo wire.TSN   // chunks before it were sent before the last that has arrived, or sent again
	numReneged     int32      // how many chunks are reneged
	toRetransmit   tsnset.Set // those of inToRetransmit
	lossEligible   tsnset.Set // of those in flight, the ones that are, see updateLossEligible
	gapAcked       tsnset.Set // those of inGapAcked,
	reneged        tsnset.Set // and inReneged

	retransmitLog retransmitLog // what was sent again, in that order
	extras        *chunkExtras  // nil unless PR-SCTP or I-DATA is negotiated (chunk_extra.go)

	inlineRecords [initialRecords]chunkRecord // the first recs, which lie with the rest
}

// initTSN makes t the first TSN to be sent.
func (g *outstanding) initTSN(t wire.TSN) {
	g.firstUnacked, g.nextTSN, g.firstIntact, g.lossEligibleTo = t, t, t, t
}

// applyEvent is the one place where a single chunk changes its state, and all sums and sets with
// it. It says whether the table has that change. If not, this code has contradicted itself, and the
// association ends.
func (g *outstanding) applyEvent(what chunkEvent, t wire.TSN, r *chunkRecord, p *Path) bool {
	to := transitions[r.state][what]
	if to == stateNone {
		g.fault = invariant.Violation("tx.outstanding.applyEvent", "%q in state %q; TSN %d of %d to %d", what,
			r.state, t, g.firstUnacked, g.nextTSN)
		return false
	}
	now, changed := setsOfState[to], setsOfState[r.state]^setsOfState[to]
	r.state = to
	if changed&inFlight != 0 {
		if now&inFlight != 0 {
			g.addInFlight(t, r, p)
		} else {
			p.flight.tsns.Remove(t)
			g.lossEligible.Remove(t)
			g.removeInFlight(r, p)
		}
	}
	updateSet(&g.unacked, t, inUnacked, changed, now)
	if changed&(inToRetransmit|inGapAcked|inReneged) != 0 {
		updateSet(&g.toRetransmit, t, inToRetransmit, changed, now)
		updateSet(&g.gapAcked, t, inGapAcked, changed, now)
		updateSet(&g.reneged, t, inReneged, changed, now)
		g.addToCounts(changed&now, 1)
		g.addToCounts(changed&^now, -1)
	}
	return true
}

// updateSet adds a chunk to a set that it has come into, or removes it from one that it has left.
// changed says whether it has done either.
func updateSet(set *tsnset.Set, t wire.TSN, account, changed, now chunkSets) {
	switch {
	case changed&account == 0:
	case now&account != 0:
		set.Add(t)
	default:
		set.Remove(t)
	}
}

// addToCounts counts a chunk in some accounts, or, by -1, no more.
func (g *outstanding) addToCounts(in chunkSets, by int32) {
	if in&inToRetransmit != 0 {
		g.numToRetransmit += by
	}
	if in&inGapAcked != 0 {
		g.numGapAcked += by
	}
	if in&inReneged != 0 {
		g.numReneged += by
	}
}

// addInFlight counts a chunk as in flight to p.
func (g *outstanding) addInFlight(t wire.TSN, r *chunkRecord, p *Path) {
	g.growInFlightSet(p)
	p.flight.add(t, r.chunkLen())
	g.flightSize += r.chunkLen()
	g.dataInFlight += int(r.size)
}

// removeInFlight counts a chunk as in flight no more.
func (g *outstanding) removeInFlight(r *chunkRecord, p *Path) {
	p.flight.octets -= r.chunkLen()
	g.flightSize -= r.chunkLen()
	g.dataInFlight -= int(r.size)
}

// growInFlightSet makes the set of what is in flight to p wide enough for what is outstanding.
func (g *outstanding) growInFlightSet(p *Path) {
	if n := len(g.chunkRing); p.flight.tsns.Cap() < n {
		p.flight.tsns.Grow(n, g.firstUnacked, min(g.len(), p.flight.tsns.Cap()))
	}
}

// recordSend records that a chunk is sent to p, or withheld, or was sent and is not lost. The chunk
// takes room at the peer. It has its place in the order of sending.
func (g *outstanding) recordSend(what chunkEvent, t wire.TSN, r *chunkRecord, p *Path) {
	if g.applyEvent(what, t, r, p) {
		g.rwnd -= int(r.size)
		if r.flags&flagResent != 0 {
			g.retransmitLog.push(g, t, r.sentStamp)
		}
	}
}

// recordNewSends records as sent the chunks from first on, which were cut just now for p. Each has
// size octets of user data.
func (g *outstanding) recordNewSends(first wire.TSN, size int, p *Path) {
	n := int(uint32(g.nextTSN - first))
	for t := first; t != g.nextTSN; t++ {
		g.recordOf(t).state = stateInFlight
	}
	g.growInFlightSet(p)
	p.flight.tsns.AddRange(first, n)
	g.unacked.AddRange(first, n)
	chunks := n * g.recordOf(first).chunkLen()
	p.flight.octets += chunks
	g.flightSize += chunks
	g.dataInFlight += n * size
	g.rwnd -= n * size
}

// markLost takes a chunk out of flight, to be sent again. Its size counts no longer against rwnd
// (section 6.2.1, C).
func (g *outstanding) markLost(t wire.TSN, r *chunkRecord, p *Path) {
	if g.applyEvent(onMarkLost, t, r, p) {
		g.rwnd += int(r.size)
	}
}

// addLossEligible makes a chunk loss-eligible if it is in flight: one that was sent after it has
// arrived.
func (g *outstanding) addLossEligible(t wire.TSN, r *chunkRecord) {
	if r.isIn(inFlight) {
		g.lossEligible.Add(t)
	}
}

// removeFromSets takes the first n chunks out of all sets at once. The caller then calls
// cumAckFirst for each.
func (g *outstanding) removeFromSets(n int, paths []*Path) {
	for _, p := range paths {
		if p.flight.octets != 0 {
			p.flight.tsns.RemoveRange(g.firstUnacked, n)
		}
	}
	g.toRetransmit.RemoveRange(g.firstUnacked, n) // one by one, as this is done for each SACK
	g.lossEligible.RemoveRange(g.firstUnacked, n)
	g.gapAcked.RemoveRange(g.firstUnacked, n)
	g.unacked.RemoveRange(g.firstUnacked, n)
	g.reneged.RemoveRange(g.firstUnacked, n)
}

// cumAckFirst acknowledges the first chunk for good.
func (g *outstanding) cumAckFirst(r *chunkRecord, p *Path) {
	if transitions[r.state][onCumAck] == stateNone {
		g.fault = invariant.Violation("tx.outstanding.cumAckFirst", "in state %q; TSN %d to %d", r.state,
			g.firstUnacked, g.nextTSN)
	}
	has := setsOfState[r.state]
	if r.state = stateAcked; has&inFlight != 0 {
		g.removeInFlight(r, p)
	}
	g.addToCounts(has, -1)
	g.firstUnacked++
}

// clearFlight empties the accounts when the association has ended. The chunks remain, for popFirst.
func (g *outstanding) clearFlight(paths []*Path) {
	for _, p := range paths {
		p.flight.octets = 0
	}
	g.flightSize, g.dataInFlight = 0, 0
}

// popFirst takes the first chunk out.
func (g *outstanding) popFirst() *chunkRecord {
	r := g.recordOf(g.firstUnacked)
	r.state = stateAcked
	g.firstUnacked++
	return r
}
