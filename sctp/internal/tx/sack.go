package tx

import (
	"slices"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// missLimit is the miss indication on which a chunk is fast-retransmitted (section 7.2.4).
const missLimit = 3

// Result says what a SACK has brought.
type Result struct {
	// Stale: the SACK is older than one already processed and was dropped.
	Stale bool
	// NewlyAcked: DATA was acknowledged: the association's error counter starts again (8.1).
	NewlyAcked bool
	// CumAdvanced: the Cumulative TSN Ack Point has moved.
	CumAdvanced bool
	// Paths to which newly acknowledged DATA was sent, and to no other: their error counters start
	// again (8.2, RFC 7829 section 3.2).
	Paths PathSet
}

// HandleSack processes a SACK (sections 6.2.1 and 7.2.4). The error is an *UnsentTSNError: nothing
// was processed and the association is to be aborted.
//
// One that acknowledges a great deal is processed in parts: see More.
func (s *Sender) HandleSack(now rawio.Time, k wire.Sack) (Result, error) {
	if s.superseded(k.CumTSN()) {
		return Result{Stale: true}, nil
	}
	a, err := s.beginAck(now, k.CumTSN())
	if err != nil || a.result.Stale {
		return a.result, err
	}
	above := uint32(s.ring.next - 1 - k.CumTSN()) // TSNs sent beyond the cumulative one
	named := 0
	for i := range k.NumGaps() {
		s.steps++
		start, end := k.Gap(i)
		if start <= end && uint32(end) > above {
			return Result{}, &UnsentTSNError{k.CumTSN().Add(uint32(end)), s.ring.next}
		}
		named += max(int(end)-int(start)+1, 0)
	}
	s.probeHeard = true
	s.credit = min(s.credit+paidByOctet*len(k), maxCredit)
	s.countDups(k)
	s.later = later{}
	if int(uint32(k.CumTSN()+1-s.ring.base))+named-s.ring.ngapped > atOnce {
		s.later = later{on: true, now: now, cum: k.CumTSN(), sack: slices.Clone(k)}
		return s.Continue(), nil
	}
	return s.settle(a, k), nil
}

// settle is HandleSack for what little is left to acknowledge, and all that follows from a SACK.
func (s *Sender) settle(a ack, k wire.Sack) Result {
	now := a.now
	s.ackThrough(&a, k.CumTSN())
	highest, named, _ := s.ackGaps(&a, k, s.ring.len())
	s.exitRecovery()
	s.grow(&a)
	s.ripen()
	lost := s.countMisses(&a, k, highest)
	if s.ring.ngapped > named || s.ring.nowed > 0 {
		s.renege(k, &lost)
	}
	s.lose(now, lost)
	s.repaired(now)
	s.armRACK(now)
	s.restartTimers(now)
	s.setRwnd(k.ARwnd())
	s.reopen(int(k.ARwnd()))
	return a.result
}

// HandleCumAck processes the Cumulative TSN Ack of a SHUTDOWN (section 9.2). It says nothing of gaps,
// nor of the window: the one last advertised is taken to be still there, because a peer in
// SHUTDOWN-SENT may answer DATA by nothing but SHUTDOWN.
func (s *Sender) HandleCumAck(now rawio.Time, cum wire.TSN) (Result, error) {
	if s.superseded(cum) {
		return Result{Stale: true}, nil
	}
	a, err := s.beginAck(now, cum)
	if err != nil || a.result.Stale || cum == s.ring.base-1 {
		return a.result, err
	}
	s.later = later{}
	if int(uint32(cum+1-s.ring.base)) > atOnce {
		s.later = later{on: true, now: now, cum: cum}
		return s.Continue(), nil
	}
	return s.settleCum(a, cum), nil
}

// settleCum is HandleCumAck for what is left to acknowledge.
func (s *Sender) settleCum(a ack, cum wire.TSN) Result {
	arwnd := s.Rwnd() + s.data
	s.ackThrough(&a, cum)
	s.exitRecovery()
	s.grow(&a)
	s.ripen()
	s.restartTimers(a.now)
	s.setRwnd(uint32(arwnd))
	return a.result
}

// atOnce is how many chunks, which acknowledges them for the first time or for good, a SACK is processed for at once.
const atOnce = 4096

// later is a SACK, or the cumulative TSN of a SHUTDOWN without one, of which there is more to do.
type later struct {
	on   bool
	now  rawio.Time // when it came
	cum  wire.TSN
	sack wire.Sack // a copy; nil for a SHUTDOWN
}

// superseded says whether a SACK that is in processing acknowledges more.
func (s *Sender) superseded(cum wire.TSN) bool { return s.later.on && cum.Less(s.later.cum) }

// More says that a SACK has acknowledged so much that only the first of it is processed: others are to have their turn, then
// Continue goes on. A SACK that comes meanwhile says all of it again, and takes its place.
func (s *Sender) More() bool { return s.later.on }

// Continue processes the next part of the SACK. One part is as a SACK that acknowledges no more than that, but says nothing of what
// else is missing or taken back, and does not open cwnd.
func (s *Sender) Continue() Result {
	l := s.later
	cum := l.cum
	if n := int(uint32(cum + 1 - s.ring.base)); n > atOnce {
		cum = s.ring.base + atOnce - 1
	}
	a, _ := s.beginAck(l.now, cum)
	if cum == l.cum && l.sack == nil {
		s.later = later{}
		return s.settleCum(a, cum)
	}
	arwnd, room := s.Rwnd()+s.data, atOnce-int(uint32(cum+1-s.ring.base))
	s.ackThrough(&a, cum)
	if cum == l.cum {
		if _, _, all := s.ackGaps(&a, l.sack, room); all {
			s.later = later{}
			return s.settle(a, l.sack)
		}
	}
	s.exitRecovery()
	s.ripen()
	s.restartTimers(a.now)
	s.setRwnd(uint32(arwnd))
	return a.result
}

// ack is a SACK in processing.
type ack struct {
	now    rawio.Time
	result Result
	htna   wire.TSN // highest TSN newly acknowledged (7.2.4), at least the cumulative one of before
}

// beginAck checks the cumulative TSN and clears what the last SACK left on the paths.
func (s *Sender) beginAck(now rawio.Time, cum wire.TSN) (ack, error) {
	a := ack{now: now, htna: s.ring.base - 1}
	if cum.Less(s.ring.base - 1) {
		a.result.Stale = true
		return a, nil
	}
	if uint32(cum-(s.ring.base-1)) > uint32(s.ring.len()) {
		return a, &UnsentTSNError{cum, s.ring.next}
	}
	for _, p := range s.paths {
		s.steps++
		p.sack = pathSack{flight: p.flight}
	}
	return a, nil
}

// countDups adds up the duplicates for partial_bytes_acked (7.2.2). A chunk counts as often as it
// was sent again, so that a peer cannot open cwnd by inventing duplicates.
func (s *Sender) countDups(k wire.Sack) {
	s.tail.twin = false
	for i := range k.NumDups() {
		s.steps++
		s.stats.DupsReported++
		s.tail.twin = s.tail.twin || k.Dup(i) == s.tail.tsn
		if r := s.ring.sent(k.Dup(i)); r != nil && r.spare > 0 {
			r.spare--
			s.paths[r.path].sack.dups += r.chunkLen()
		}
	}
}

// ackThrough acknowledges everything up to cum and tells the upper layer.
func (s *Sender) ackThrough(a *ack, cum wire.TSN) {
	g := &s.ring
	base := g.base
	n := int(uint32(cum + 1 - base))
	if n == 0 {
		return
	}
	a.result.CumAdvanced = true
	for _, p := range s.paths {
		if p.flight != 0 {
			p.inflight.RemoveRange(base, n)
		}
	}
	g.ripe.RemoveRange(base, n)
	g.paid.RemoveRange(base, n)
	for t := base; t != cum+1; t++ {
		s.steps++
		r := g.rec(t)
		if g.ngapped > 0 && g.gapped.Has(t) {
			g.gapped.Remove(t)
			g.ngapped--
		} else {
			if g.nowed > 0 && g.owed.Has(t) {
				g.owed.Remove(t)
				g.nowed--
			}
			s.ackOne(a, t, r)
		}
		if r.state&queued != 0 {
			s.held -= int(r.size)
		}
		r.body = [2][]byte{} // let go of the user's memory
		g.base = t + 1
		if r.wire&wire.FlagE != 0 {
			s.done(a.now, r)
		}
	}
	s.probing = false // it was the only one outstanding
}

// done tells the upper layer that a message is acknowledged.
func (s *Sender) done(now rawio.Time, r *record) {
	if r.state&queued == 0 {
		if s.src != nil {
			s.src.Acked(now, r.stream, r.token)
		}
	} else if s.sink != nil {
		s.sink.Acked(now, r.stream, r.token)
	}
}

// Work that a peer can have done again and again, by taking acknowledgements back, is paid for by the octets of its
// SACKs: so many chunks for each octet, and so many at once.
const (
	paidByOctet = 4
	maxCredit   = 1 << 13
)

// ackGaps acknowledges what is in the gap blocks. It returns the highest TSN that the SACK reports
// and how many TSNs the blocks name. Blocks are to ascend; one that does not is passed over, which
// also bounds the work by the window. A chunk that was acknowledged and taken back, and not sent again since, is only
// acknowledged as long as SACKs have paid for that; else it stays in flight, until it is sent again or covered
// by the cumulative TSN.
// It stops after room chunks, and says whether those were all.
func (s *Sender) ackGaps(a *ack, k wire.Sack, room int) (highest wire.TSN, named int, all bool) {
	g := &s.ring
	cum := k.CumTSN()
	highest = cum
	for i, prev := 0, uint16(0); i < k.NumGaps(); i++ {
		start, end := k.Gap(i)
		if start <= prev || end < start {
			continue
		}
		n := int(end-start) + 1
		named += n
		prev, highest = end, cum+wire.TSN(end)
		s.steps++
		t, ok := g.paid.Next(cum+wire.TSN(start), n)
		for ; ok; t, ok = g.paid.Next(t+1, int(uint32(highest-t))) {
			if room--; room < 0 {
				return highest, named, false
			}
			g.paid.Remove(t)
			s.ackGap(a, t)
		}
		if g.nowed == 0 {
			continue
		}
		s.steps++
		t, ok = g.owed.Next(cum+wire.TSN(start), n)
		for ; ok && s.credit > 0; t, ok = g.owed.Next(t+1, int(uint32(highest-t))) {
			s.credit--
			g.owed.Remove(t)
			g.nowed--
			s.ackGap(a, t)
		}
	}
	return highest, named, true
}

// ackGap acknowledges a TSN that a gap block names.
func (s *Sender) ackGap(a *ack, t wire.TSN) {
	s.steps++
	g := &s.ring
	r := g.rec(t)
	s.ackOne(a, t, r)
	s.paths[r.path].inflight.Remove(t)
	g.ripe.Remove(t)
	g.gapped.Add(t)
	g.ngapped++
}

// ackOne acknowledges a TSN that is not acknowledged. The caller takes it out of what is in flight and ripe.
func (s *Sender) ackOne(a *ack, t wire.TSN, r *record) {
	p := s.paths[r.path]
	if s.ring.nmarked > 0 && s.ring.marked.Has(t) {
		s.ring.marked.Remove(t)
		s.ring.nmarked--
	} else {
		if t == p.first {
			p.sack.ackedFirst = true
		}
		s.landed(r)
	}
	p.sack.acked += r.chunkLen()
	s.acked += r.chunkLen()
	if p.timing && p.timed == t {
		p.timing = false
		p.sack.rtt = max(a.now.Sub(p.timedAt), 1)
	}
	if r.state&resent == 0 {
		if d := time.Duration(stamp(a.now)-r.stamp) * time.Microsecond; p.sack.trip == 0 || d < p.sack.trip {
			p.sack.trip = max(d, 1)
		}
	}
	r.misses = 0
	s.arrived(a.now, t, r, p)
	s.heardTail(a.now, t, r, p)
	if a.htna.Less(t) {
		a.htna = t
	}
	a.result.NewlyAcked = true
	if r.state&large != 0 {
		p.holes = 0
	}
	if r.state&moved == 0 { // else nobody knows which of the destinations it reached (RFC 7829 section 3.2)
		a.result.Paths.add(p.index)
	}
}

// exitRecovery leaves Fast Recovery when its exit point is acknowledged (section 6.2.1, D iv).
func (s *Sender) exitRecovery() {
	if s.recovery && s.exit.Less(s.ring.base) {
		s.recovery = false
	}
	s.urgent = s.urgent && (s.recovery || s.tail.due) && s.ring.nmarked > 0
}

// grow applies RTT measurements and the increase of cwnd, before any loss (sections 6.3.1, 7.2.4).
func (s *Sender) grow(a *ack) {
	all := s.ring.len() == 0
	for _, p := range s.paths {
		k := &p.sack
		if k.rtt > 0 {
			p.est.observe(k.rtt)
		}
		if k.acked > 0 {
			p.single = false
		}
		if k.acked > 0 || k.dups > 0 || all {
			p.cc.OnAck(a.now, cc.Ack{
				Octets: k.acked, Dups: k.dups, Flight: k.flight,
				Recovery: s.recovery || s.echoed, AllAcked: all, RTT: k.rtt, Trip: k.trip, Spread: s.spreads(p),
			})
		}
	}
	s.echoed = false
}

// countMisses gives a miss indication to what is missing below the highest TSN newly acknowledged,
// in Fast Recovery when the cumulative TSN advances below the highest that the SACK reports
// (section 7.2.4), and returns the paths of what has now missed three times. A SACK may stand for several: unless the letter is
// kept, what it reports three chunks above has missed as often as SACKs for each of them would say (RFC 6675 section 4).
func (s *Sender) countMisses(a *ack, k wire.Sack, highest wire.TSN) (lost PathSet) {
	g := &s.ring
	limit := a.htna
	if s.recovery && a.result.CumAdvanced {
		limit = highest
	}
	if limit.Less(g.base) {
		return 0
	}
	third := 0
	t, ok := g.ripe.Next(g.base, int(uint32(limit-g.base)))
	for ; ok; t, ok = g.ripe.Next(t+1, int(uint32(limit-t-1))) {
		s.steps++
		if third == 0 {
			third = missedBelow(k)
		}
		r := g.rec(t)
		if int(uint32(t-k.CumTSN())) < third && r.state&resent == 0 && !s.cfg.Letter && s.paths[r.path].latest.after(r.stamp, t) {
			r.misses = missLimit - 1
		}
		if left, known := s.left(a.now, t, r); known && left <= 0 {
			s.lost(t, r, &lost)
		} else {
			s.miss(t, r, &lost)
		}
	}
	return lost
}

// missedBelow returns the offset from the cumulative TSN of the third highest TSN that the gap blocks of a SACK name; what is missing below
// it has missed three. At least 1, below which nothing is missing.
func missedBelow(k wire.Sack) int {
	left, below := missLimit, 1<<16
	for i := k.NumGaps() - 1; i >= 0; i-- {
		start, end := k.Gap(i)
		if start == 0 || end < start || int(end) >= below {
			break
		}
		below = int(start)
		if n := int(end-start) + 1; n < left {
			left -= n
		} else {
			return int(end) - left + 1
		}
	}
	return 1
}

// miss counts a miss indication and marks the chunk on the third.
func (s *Sender) miss(t wire.TSN, r *record, lost *PathSet) {
	if r.misses++; r.misses < missLimit {
		return
	}
	s.lost(t, r, lost)
}

// lost marks a chunk that is taken for lost.
func (s *Sender) lost(t wire.TSN, r *record, lost *PathSet) {
	lost.add(int(r.path))
	s.mark(t, r)
	r.state = r.state&^timeout | fast
}

// stamp is a time in microseconds that wrap; stamps are compared by their difference.
func stamp(now rawio.Time) uint32 { return uint32(now / 1000) }

// stampLife is a quarter of the time in which stamps wrap: of two that are no further apart it is known which comes first.
const stampLife = 1 << 30 * time.Microsecond

// arrived remembers the chunk sent last of all that have arrived. What was sent after it is not
// missing yet: after a timeout, or when a SACK has no room for all gap blocks, chunks with higher TSNs
// are reported that were sent long before. For a chunk that was sent again it is not known which
// transmission has arrived; only an answer that came after a round trip, the shortest of late, can be the last one's.
func (s *Sender) arrived(now rawio.Time, t wire.TSN, r *record, p *Path) {
	if r.state&resent != 0 && stamp(now)-r.stamp < uint32(p.est.trip.get().Microseconds()) {
		return
	}
	s.latest.advance(r.stamp, t)
	p.latest.advance(r.stamp, t)
	s.heard = now
}

// forget drops what has arrived so long ago that stamps cannot tell it from what is sent now.
func (s *Sender) forget(now rawio.Time) {
	if s.latest.any && now.Sub(s.heard) > stampLife {
		s.latest = sending{}
		for _, p := range s.paths {
			p.latest = sending{}
		}
	}
}

// sending says when a chunk was sent, and tells those apart that were sent together.
type sending struct {
	any   bool // the others are set
	stamp uint32
	tsn   wire.TSN
}

// after reports whether that was after another.
func (a *sending) after(stamp uint32, t wire.TSN) bool {
	d := int32(a.stamp - stamp)
	return a.any && (d > 0 || d == 0 && t.Less(a.tsn))
}

func (a *sending) advance(stamp uint32, t wire.TSN) {
	if d := int32(stamp - a.stamp); !a.any || d > 0 || d == 0 && a.tsn.Less(t) {
		*a = sending{true, stamp, t}
	}
}

// sentEarlier reports whether a chunk was sent before one that has arrived.
func (s *Sender) sentEarlier(t wire.TSN, r *record) bool {
	return s.latest.after(r.stamp, t)
}

// mark takes a chunk out of flight, to be sent again; its size counts no longer against rwnd
// (section 6.2.1, C).
func (s *Sender) mark(t wire.TSN, r *record) {
	s.fromFlight(t, r)
	s.rwnd += int(r.size)
	s.ring.marked.Add(t)
	s.ring.nmarked++
}

// renege takes back the gap acknowledgement of TSNs that the SACK no longer names: they are in
// flight again, with one miss indication (section 6.2.1, D iii).
func (s *Sender) renege(k wire.Sack, lost *PathSet) {
	cum := k.CumTSN()
	hole := cum + 1 // the first TSN after the last block
	for i, prev := 0, uint16(0); i < k.NumGaps(); i++ {
		start, end := k.Gap(i)
		if start <= prev || end < start {
			continue
		}
		s.steps++
		s.renegeRange(hole, cum+wire.TSN(start), lost)
		prev, hole = end, cum+wire.TSN(end)+1
	}
	s.renegeRange(hole, s.ring.next, lost)
}

func (s *Sender) renegeRange(from, to wire.TSN, lost *PathSet) {
	g := &s.ring
	t, ok := g.gapped.Next(from, int(uint32(to-from)))
	for ; ok; t, ok = g.gapped.Next(t+1, int(uint32(to-t-1))) {
		s.steps++
		r := g.rec(t)
		g.gapped.Remove(t)
		g.ngapped--
		g.owed.Add(t)
		g.nowed++
		s.stats.Reneged++
		s.toFlight(t, r, s.paths[r.path])
		if s.sentEarlier(t, r) {
			s.ripe(t, r)
		}
		s.miss(t, r, lost)
	}
}

// lose reacts to the chunks that were marked by miss indications (section 7.2.4, points 2 to 6).
func (s *Sender) lose(now rawio.Time, lost PathSet) {
	if lost == 0 || s.recovery {
		return
	}
	for _, p := range s.paths {
		if lost.Has(p.index) {
			p.cc.OnLoss(now)
			p.reduced = s.fresh()
		}
	}
	s.recovery, s.urgent = true, true
	s.exit = s.ring.next - 1
	s.stats.FastRetransmits++
}

// restartTimers applies rules R2, R3 and R4 of section 6.3.2.
func (s *Sender) restartTimers(now rawio.Time) {
	for _, p := range s.paths {
		switch {
		case p.flight == 0:
			p.t3, p.pto = rawio.Never, rawio.Never
			continue
		case p.sack.ackedFirst || p.t3 == rawio.Never:
			p.t3 = now.Add(p.est.rto)
		}
		s.findFirst(p)
		s.armPTO(now, p)
	}
}

// findFirst moves p.first on to the earliest TSN that is still in flight to p.
func (s *Sender) findFirst(p *Path) {
	s.steps++
	p.first, _ = p.inflight.Next(s.ring.base, s.ring.len())
}

// reopen sends a zero window probe again as soon as the window is open: the peer has most likely
// dropped it, and waiting for T3-rtx would stall the association.
func (s *Sender) reopen(arwnd int) {
	if !s.probing {
		return
	}
	t := s.ring.base
	r := s.ring.rec(t)
	if arwnd < int(r.size) || s.ring.gapped.Has(t) {
		return
	}
	s.probing = false
	if p := s.paths[r.path]; p.flight != 0 { // or it is marked already
		s.mark(t, r)
		p.t3 = rawio.Never
	}
}
