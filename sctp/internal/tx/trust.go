package tx

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// A SACK is the peer's word, and a peer that lies would have its data sooner than others behind the same bottleneck. Octets that are acknowledged, taken back and
// acknowledged again open the window once (Path.debt); duplicates undo a few reductions (Sender.undo); what is reported missing goes again within bounds.
//
// No SACK shows that its peer acknowledges what has not arrived, so that nothing is ever lost. So now and then a chunk gets its TSN, and all that goes
// with it, but does not leave. An honest peer reports it missing, and a round trip later it goes, for the first time: nobody takes that for a loss. Who acknowledges it lies.
const (
	// withheldFirst and withheldEvery are within how many packets one is withheld, the first and after that: so seldom that it shows in
	// no percentile of what a program waits for.
	withheldFirst = 1 << 10
	withheldEvery = 1 << 15
	// withheldNarrow is that where the window is narrow, so that one is withheld in each 2,048.
	withheldNarrow = 2000
	// withheldAmong is how many full packets are in flight then.
	withheldAmong = 4
	// moreAgain is how many octets go again for each that went, because they are reported missing, beyond againFree. T3-rtx, which backs off, has no bound.
	moreAgain = 2
	againFree = 16 << 10
)

// withholding is of the chunk that is in state withheld or released.
type withholding struct {
	on    bool
	tsn   wire.TSN
	until rawio.Time // it goes then, whatever is reported, or Never
	after int        // packets until the next one, 0: not drawn yet
	clear rawio.Time // until when a narrow window is left to become empty, see clears; 0: it is not
}

// is reports whether a chunk has never left.
func (w *withholding) is(t wire.TSN) bool { return w.on && w.tsn == t }

// leaves takes that it does now.
func (w *withholding) leaves() { w.on, w.until = false, rawio.Never }

// Proved takes a round trip that the peer cannot make shorter than it is: the answer has a nonce of the question.
func (p *Path) Proved(rtt time.Duration) {
	p.ObserveRTT(rtt)
	p.NoFarther(rtt)
}

// NoFarther takes that something which the peer could not have known came back within that time.
func (p *Path) NoFarther(trip time.Duration) {
	p.outrun = false
	if p.proved == 0 || trip < p.proved {
		p.proved = max(trip, 1)
	}
}

// withholds reports whether the next new chunk to p, of so many octets, is withheld. Who has proved to be near is spared: there is no bottleneck of others
// in between.
func (s *Sender) withholds(p *Path, size int) bool {
	w := &s.withheld
	if !s.mayWithhold(p) {
		return false
	}
	room, every := s.roomy(p, size), uint32(withheldEvery)
	switch {
	case s.narrow(p):
		if every = withheldNarrow; !s.fitsTwo(size) || !s.follows(size) {
			return false
		}
		if w.after > withheldNarrow {
			w.after = 1 + int(s.cfg.Draw()%withheldNarrow)
		}
	case p.flight < withheldAmong*p.pmdcs || !room:
		return false
	}
	if w.after == 0 {
		w.after = 1 + int(s.cfg.Draw()%withheldFirst)
	}
	if w.after > 1 || !room {
		w.after = max(w.after-1, 1)
		return false
	}
	w.after = 1 + int(s.cfg.Draw()%every)
	return true
}

// mayWithhold reports whether anything may be withheld from p now.
func (s *Sender) mayWithhold(p *Path) bool {
	return s.cfg.Draw != nil && !s.cfg.Letter && !s.withheld.on && !s.probing && !s.recovery && p.usable() && (p.proved == 0 || p.proved >= nearTrip)
}

// lies reports whether a peer that acknowledges the TSNs from one to another lies about what was withheld.
func (s *Sender) lies(from, to wire.TSN) bool {
	w := &s.withheld
	return w.on && from.LessEq(w.tsn) && w.tsn.LessEq(to)
}

// withhold gives the next size octets of the slot a TSN, and no packet.
func (s *Sender) withhold(now rawio.Time, p *Path, size int) {
	w := &s.withheld
	w.on, w.tsn, w.until = true, s.ledger.next, now.Add(max(2*p.est.srtt, leastPTO))
	timing := p.timing
	t, r := s.cutNext(now, p, size)
	p.timing = timing // another measures the round trip
	s.depart(now, onWithhold, t, r, p)
}

// withheldLong has it go: nobody has reported anything.
func (s *Sender) withheldLong() {
	w := &s.withheld
	w.until = rawio.Never
	if r := s.ledger.rec(w.tsn); r.state == withheld {
		p := s.paths[r.path]
		s.ledger.mark(w.tsn, r, p)
		s.settleTimers(p)
	}
}

// release takes that what was withheld goes now. It counts as sent since it was withheld.
func (s *Sender) release(r *record) {
	s.withheld.leaves()
	s.stats.Chunks--
	s.stats.Octets -= uint64(r.size)
}

// overspent reports whether so much went again that reports of losses are not believed any more.
func (s *Sender) overspent() bool {
	went := s.stats.Octets - s.resentOctets
	return !s.cfg.Letter && s.resentOctets > moreAgain*went+againFree
}
