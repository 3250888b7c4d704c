package tx

import (
	"github.com/rddp-go/rddp/internal/invariant"
	"github.com/rddp-go/rddp/sctp/internal/tsnset"
	"github.com/rddp-go/rddp/sctp/wire"
)

// state is where a chunk is. The table in the package comment says what leads from one to the other, and table below
// says it to the ledger.
type state uint8

const (
	none     state = iota // it has a TSN, and goes now
	sent                  // in flight, not acknowledged since
	withheld              // has not left, and counts as in flight (trust.go)
	back                  // in flight again: a gap block named it, a later SACK does not
	marked                // to be sent again
	released              // was withheld, and is to be sent
	disowned              // was taken back, and is to be sent again
	gapped                // acknowledged by a gap block
	gone                  // acknowledged by the cumulative TSN, or abandoned

	numStates
)

var stateNames = [numStates]string{"none", "sent", "withheld", "back", "marked", "released", "disowned", "gapped", "gone"}

func (st state) String() string { return stateNames[st] }

// trigger is what happens to a chunk.
type trigger uint8

const (
	onSend     trigger = iota // it leaves
	onWithhold                // it does not, and is counted as if it did
	onCopy                    // what was withheld leaves, as a copy
	onMark                    // it is taken for lost, or has not left after all
	onRestore                 // that was a false alarm
	onGap                     // a gap block names it
	onTakeBack                // none names it any more
	onCover                   // the cumulative TSN passes it

	numTriggers
)

var triggerNames = [numTriggers]string{"send", "withhold", "copy", "mark", "restore", "gap", "take back", "cover"}

func (t trigger) String() string { return triggerNames[t] }

// table is what may become of a chunk. What is not in it cannot be: who acknowledges what was withheld is found out before (Sender.lies).
var table = [numStates][numTriggers]state{
	none:     {onSend: sent, onWithhold: withheld},
	sent:     {onMark: marked, onGap: gapped, onCover: gone},
	withheld: {onCopy: sent, onMark: released},
	back:     {onMark: disowned, onGap: gapped, onCover: gone},
	marked:   {onSend: sent, onRestore: sent, onGap: gapped, onCover: gone},
	released: {onSend: sent, onCopy: marked},
	disowned: {onSend: sent, onGap: gapped, onCover: gone},
	gapped:   {onTakeBack: back, onCover: gone},
}

// accounts are some of those that the ledger keeps.
type accounts uint8

const (
	inFlight accounts = 1 << iota // flight sizes, and what is in flight to each path
	inQueue                       // what is to be sent
	inGaps                        // what may be taken back
	inPaid                        // what a gap block acknowledges at no price: that it was sent has paid for the work
	inOwed                        // what it does as long as SACKs have paid for that
)

// books says which accounts have the chunks of a state.
var books = [numStates]accounts{
	sent:     inFlight | inPaid,
	withheld: inFlight | inPaid,
	back:     inFlight | inOwed,
	marked:   inQueue | inPaid,
	released: inQueue | inPaid,
	disowned: inQueue | inOwed,
	gapped:   inGaps,
}

// is reports whether one of the accounts has the chunk.
func (r *record) is(a accounts) bool { return books[r.state]&a != 0 }

// ledger holds the chunks from the cumulative TSN Ack Point on. Its methods alone change the state of one, and with that
// all accounts: sums, and sets that find the chunks of an account, so that a SACK costs what it changes.
type ledger struct {
	recs    []record // a power of two; TSN t is at t mod len
	base    wire.TSN // the earliest TSN not acknowledged cumulatively
	next    wire.TSN // the first TSN not sent yet
	intact  wire.TSN // records from here on are still in place, also those before base
	lasting bool     // chunks were sent again, or the path is congested

	fault *invariant.Error // the table has been contradicted

	paid    tsnset.Set // those of inPaid
	nmarked int32      // how many there are of marked,
	ngapped int32      // and of gapped
	flight  int        // octets of chunks in flight, all paths
	data    int        // octets of user data in flight
	rwnd    int        // what the peer has room for beyond that; negative when a probe went out

	// What follows is for acknowledgements.
	octets int        // of memory that records and sets take
	ripeTo wire.TSN   // chunks before it were sent before the last that has arrived, unless they were sent again
	nowed  int32      // how many there are of owed
	marked tsnset.Set // those of inQueue
	ripe   tsnset.Set // of those in flight, the ones that take miss indications, see ripen
	gapped tsnset.Set // those of inGaps,
	owed   tsnset.Set // and inOwed

	again again // what was sent again, in that order

	own [firstRecs]record // the first recs, which lie with the rest
}

// begin makes t the first TSN to be sent.
func (g *ledger) begin(t wire.TSN) { g.base, g.next, g.intact, g.ripeTo = t, t, t, t }

// move is the one place where a single chunk changes its state, and all accounts with it. It says whether the table has
// that; if not, this code has contradicted itself, and the association ends.
func (g *ledger) move(what trigger, t wire.TSN, r *record, p *Path) bool {
	to := table[r.state][what]
	if to == none {
		g.fault = invariant.Broken("tx.ledger.move", "%q in state %q; TSN %d of %d to %d", what, r.state, t, g.base, g.next)
		return false
	}
	now, changed := books[to], books[r.state]^books[to]
	r.state = to
	if changed&inFlight != 0 {
		if now&inFlight != 0 {
			g.takeOff(t, r, p)
		} else {
			p.inflight.Remove(t)
			g.ripe.Remove(t)
			g.land(r, p)
		}
	}
	enter(&g.paid, t, inPaid, changed, now)
	if changed&(inQueue|inGaps|inOwed) != 0 {
		enter(&g.marked, t, inQueue, changed, now)
		enter(&g.gapped, t, inGaps, changed, now)
		enter(&g.owed, t, inOwed, changed, now)
		g.count(changed&now, 1)
		g.count(changed&^now, -1)
	}
	return true
}

// enter adds a chunk to the set of an account, if that has changed and the chunk is in it now, or removes it.
func enter(set *tsnset.Set, t wire.TSN, account, changed, now accounts) {
	switch {
	case changed&account == 0:
	case now&account != 0:
		set.Add(t)
	default:
		set.Remove(t)
	}
}

// count counts a chunk in some accounts, or, by -1, no more.
func (g *ledger) count(in accounts, by int32) {
	if in&inQueue != 0 {
		g.nmarked += by
	}
	if in&inGaps != 0 {
		g.ngapped += by
	}
	if in&inOwed != 0 {
		g.nowed += by
	}
}

// takeOff counts a chunk as in flight to p.
func (g *ledger) takeOff(t wire.TSN, r *record, p *Path) {
	g.flightOf(p).Add(t)
	if p.flight == 0 || t.Less(p.first) {
		p.first = t
	}
	p.flight += r.chunkLen()
	g.flight += r.chunkLen()
	g.data += int(r.size)
}

// land counts it as in flight no more.
func (g *ledger) land(r *record, p *Path) {
	p.flight -= r.chunkLen()
	g.flight -= r.chunkLen()
	g.data -= int(r.size)
}

// flightOf returns the set of what is in flight to p, wide enough for what is outstanding.
func (g *ledger) flightOf(p *Path) *tsnset.Set {
	if n := len(g.recs); p.inflight.Cap() < n {
		p.inflight.Grow(n, g.base, min(g.len(), p.inflight.Cap()))
	}
	return &p.inflight
}

// depart sends a chunk to p, or withholds it, or takes that it was sent and is not lost. It takes room at the peer, and has its place in the order of sending.
func (g *ledger) depart(what trigger, t wire.TSN, r *record, p *Path) {
	if g.move(what, t, r, p) {
		g.rwnd -= int(r.size)
		if r.flags&resent != 0 {
			g.again.push(g, t, r.stamp)
		}
	}
}

// departAll sends the chunks from first on, which were cut just now for p, of so many octets of user data each.
func (g *ledger) departAll(first wire.TSN, size int, p *Path) {
	n := int(uint32(g.next - first))
	for t := first; t != g.next; t++ {
		g.rec(t).state = sent
	}
	g.flightOf(p).AddRange(first, n)
	g.paid.AddRange(first, n)
	chunks := n * g.rec(first).chunkLen()
	p.flight += chunks
	g.flight += chunks
	g.data += n * size
	g.rwnd -= n * size
}

// mark takes a chunk out of flight, to be sent again; its size counts no longer against rwnd
// (section 6.2.1, C).
func (g *ledger) mark(t wire.TSN, r *record, p *Path) {
	if g.move(onMark, t, r, p) {
		g.rwnd += int(r.size)
	}
}

// overtaken has a chunk take miss indications, if it is in flight: one that was sent after it has arrived.
func (g *ledger) overtaken(t wire.TSN, r *record) {
	if r.is(inFlight) {
		g.ripe.Add(t)
	}
}

// sweep takes the first n chunks out of all sets at once, for cover to be called for each.
func (g *ledger) sweep(n int, paths []*Path) {
	for _, p := range paths {
		if p.flight != 0 {
			p.inflight.RemoveRange(g.base, n)
		}
	}
	g.marked.RemoveRange(g.base, n) // one by one, as this is done for each SACK
	g.ripe.RemoveRange(g.base, n)
	g.gapped.RemoveRange(g.base, n)
	g.paid.RemoveRange(g.base, n)
	g.owed.RemoveRange(g.base, n)
}

// cover acknowledges the first chunk for good.
func (g *ledger) cover(r *record, p *Path) {
	if table[r.state][onCover] == none {
		g.fault = invariant.Broken("tx.ledger.cover", "in state %q; TSN %d to %d", r.state, g.base, g.next)
	}
	has := books[r.state]
	if r.state = gone; has&inFlight != 0 {
		g.land(r, p)
	}
	g.count(has, -1)
	g.base++
}

// abandon empties the accounts when the association has ended. The chunks remain, for pop.
func (g *ledger) abandon(paths []*Path) {
	for _, p := range paths {
		p.flight = 0
	}
	g.flight, g.data = 0, 0
}

// pop takes the first chunk out.
func (g *ledger) pop() *record {
	r := g.rec(g.base)
	r.state = gone
	g.base++
	return r
}
