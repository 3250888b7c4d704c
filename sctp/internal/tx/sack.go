package tx

import (
	"math"
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
	// Suspected are the paths that have become so: they are to be asked by HEARTBEAT.
	Suspected PathSet
}

// HandleSack processes a SACK (sections 6.2.1 and 7.2.4). The error is an *UnsentTSNError: nothing
// was processed and the association is to be aborted.
//
// One that there is a great deal to do for is processed in parts: see More.
func (s *Sender) HandleSack(now rawio.Time, k wire.Sack) (Result, error) {
	if s.superseded(k.CumTSN()) {
		return Result{Stale: true}, nil
	}
	s.forget(now)
	a, err := s.beginAck(now, k.CumTSN())
	if err != nil || a.result.Stale {
		return a.result, err
	}
	above := uint32(s.ledger.next - 1 - k.CumTSN()) // TSNs sent beyond the cumulative one
	for i := range k.NumGaps() {
		*s.steps++
		start, end := k.Gap(i)
		if start <= end && uint32(end) > above {
			return Result{}, &UnsentTSNError{k.CumTSN().Add(uint32(end)), s.ledger.next}
		}
		if start <= end && s.lies(k.CumTSN().Add(uint32(start)), k.CumTSN().Add(uint32(end))) {
			return Result{}, &UnsentTSNError{s.withheld.tsn, s.ledger.next}
		}
	}
	s.probeHeard = true
	s.credit = min(s.credit+paidByOctet*len(k), maxCredit)
	s.countDups(now, k)
	s.later = later{}
	s.later.on, s.later.now, s.later.cum, s.later.sack = true, now, k.CumTSN(), k
	res := s.proceed(a)
	if s.later.on {
		s.later.sack = slices.Clone(k)
	}
	return res, nil
}

// HandleCumAck processes the Cumulative TSN Ack of a SHUTDOWN (section 9.2). It says nothing of gaps,
// nor of the window: the one last advertised is taken to be still there, because a peer in
// SHUTDOWN-SENT may answer DATA by nothing but SHUTDOWN.
func (s *Sender) HandleCumAck(now rawio.Time, cum wire.TSN) (Result, error) {
	if s.superseded(cum) {
		return Result{Stale: true}, nil
	}
	s.forget(now)
	a, err := s.beginAck(now, cum)
	if err != nil || a.result.Stale || cum == s.ledger.base-1 {
		return a.result, err
	}
	s.later = later{on: true, now: now, cum: cum}
	return s.proceed(a), nil
}

// atOnce is how many steps a SACK, or T3-rtx, is processed for at once where more chunks are outstanding.
const atOnce = 4096

// slice begins to count what is done at once.
func (s *Sender) slice() {
	if s.until = math.MaxUint64; s.ledger.len() > atOnce {
		s.until = *s.steps + atOnce
	}
}

// spent says that others are to have their turn.
func (s *Sender) spent() bool { return *s.steps >= s.until }

// later is a SACK, or the cumulative TSN of a SHUTDOWN without one, of which there is more to do.
type later struct {
	stage    stage
	advanced bool // left by the acknowledgements, as those below
	cum      wire.TSN
	now      rawio.Time // when it came
	sack     wire.Sack  // a copy; nil for a SHUTDOWN

	// What the acknowledgements have left to the stages behind them.
	htna, highest wire.TSN // see ack, and ackGaps
	named         int
	at            wire.TSN // where countMisses goes on
	on            bool
	lost          PathSet
}

// stage is what of a SACK is done next: each may end amid its work, when enough was done at once.
type stage uint8

const (
	acking    stage = iota // chunks are acknowledged
	restoring              // others are not lost after all
	ripening               // others become ripe, and
	missing                // are counted as missing
	reneging               // what was acknowledged and is no more is in flight again
)

// superseded says whether a SACK that is in processing acknowledges more.
func (s *Sender) superseded(cum wire.TSN) bool { return s.later.on && cum.Less(s.later.cum) }

// More says that there is so much to do for a SACK, or T3-rtx, that only the first of it is done: others are to have their turn, then
// Continue goes on. A SACK that comes meanwhile says all of it again, and takes the other's place.
func (s *Sender) More() bool { return s.later.on || s.marking != 0 }

// Continue does the next part.
func (s *Sender) Continue() Result {
	if s.marking != 0 {
		s.slice()
		for _, p := range s.paths {
			if s.marking.Has(p.Index()) {
				s.markAll(p)
			}
		}
		return Result{}
	}
	a, _ := s.beginAck(s.later.now, s.later.cum)
	return s.proceed(a)
}

// proceed goes on with a SACK, or SHUTDOWN, as far as it goes at once. To acknowledge a part is as a SACK that acknowledges no more than that,
// but says nothing of what else is missing or taken back, and does not open cwnd.
func (s *Sender) proceed(a ack) Result {
	s.slice()
	l := &s.later
	arwnd := uint32(s.Rwnd() + s.ledger.data)
	if l.stage == acking && s.acknowledge(&a, l) {
		s.grow(&a)
		s.falseAlarms(a.now)
		l.stage = restoring
	}
	if l.stage == restoring && s.restore(a.now) {
		s.settleUrgent()
		l.stage = ripening
	}
	if l.stage == ripening && s.ripen() {
		l.stage = missing
		l.on = l.sack != nil
	}
	if l.on && l.stage == missing && s.countMisses(l) {
		l.stage = reneging
	}
	if l.on && l.stage == reneging && s.renege(l) {
		l.on = false
		s.lose(a.now, l.lost)
		s.repaired(a.now, &a.result)
		s.armRACK(a.now)
	}
	s.restartTimers(a.now)
	if l.sack != nil && l.stage > acking {
		arwnd = l.sack.ARwnd()
	}
	s.setRwnd(arwnd)
	if !l.on {
		if l.sack != nil {
			s.reopen(int(arwnd))
		}
		s.rateSamples(a.now)
		*l = later{}
	}
	return a.result
}

// acknowledge acknowledges what is covered, then what gap blocks name, and says whether that was all.
func (s *Sender) acknowledge(a *ack, l *later) (all bool) {
	cum := l.cum
	if n := int(uint32(cum + 1 - s.ledger.base)); n > atOnce {
		cum = s.ledger.base + atOnce - 1
	}
	s.ackThrough(a, cum)
	all = cum == l.cum
	l.highest = cum
	if all && l.sack != nil {
		l.highest, l.named, all = s.ackGaps(a, l.sack)
	}
	s.exitRecovery(a.now)
	l.htna, l.advanced, l.at = a.htna, a.result.CumAdvanced, s.ledger.base
	return all
}

// ack is a SACK in processing.
type ack struct {
	now    rawio.Time
	result Result
	htna   wire.TSN // highest TSN newly acknowledged (7.2.4), at least the cumulative one of before
}

// beginAck checks the cumulative TSN and clears what the last SACK left on the paths.
func (s *Sender) beginAck(now rawio.Time, cum wire.TSN) (ack, error) {
	a := ack{now: now, htna: s.ledger.base - 1}
	if cum.Less(s.ledger.base - 1) {
		a.result.Stale = true
		return a, nil
	}
	if uint32(cum-(s.ledger.base-1)) > uint32(s.ledger.len()) {
		return a, &UnsentTSNError{cum, s.ledger.next}
	}
	if s.lies(s.ledger.base, cum) {
		return a, &UnsentTSNError{s.withheld.tsn, s.ledger.next}
	}
	for _, p := range s.paths {
		*s.steps++
		p.sack = pathSack{flight: p.flight, latest: p.latest}
	}
	return a, nil
}

// countDups adds up the duplicates for partial_bytes_acked (7.2.2). A chunk counts as often as it
// was sent again, so that a peer cannot open cwnd by inventing duplicates.
func (s *Sender) countDups(now rawio.Time, k wire.Sack) {
	s.tail.twin = false
	for i := range k.NumDups() {
		*s.steps++
		s.rare().DupsReported++
		s.late(now, k.Dup(i))
		if k.Dup(i) == s.tail.tsn {
			s.tail.twin = true
			s.overdue()
		}
		if r := s.ledger.sent(k.Dup(i)); r != nil && r.spare > 0 {
			s.cameTwice(k.Dup(i), r)
			r.spare--
			s.paths[r.path].sack.dups += r.chunkLen()
		}
	}
}

// ackThrough acknowledges everything up to cum and tells the upper layer.
func (s *Sender) ackThrough(a *ack, cum wire.TSN) {
	g := &s.ledger
	base := g.base
	n := int(uint32(cum + 1 - base))
	if n == 0 {
		return
	}
	a.result.CumAdvanced = true
	g.sweep(n, s.paths)
	var told alike
	like := 0 // so many more, of those that were sent together
	for t := base; t != cum+1; t++ {
		*s.steps++
		r := g.rec(t)
		if like--; like < 0 && r.state != gapped {
			like = s.together(t, cum, r) - 1
			s.ackOne(a, t, r, like+1)
		}
		if r.flags&queued != 0 {
			s.held -= int(r.size)
		}
		r.body = [2][]byte{} // let go of the user's memory
		g.cover(r, s.paths[r.path])
		if r.wire&wire.FlagE != 0 && !told.add(r) {
			s.done(a.now, told)
			told = alike{}
			told.add(r)
		}
	}
	s.done(a.now, told)
	s.probing = false // it was the only one outstanding
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
// It says whether it came to the end.
func (s *Sender) ackGaps(a *ack, k wire.Sack) (highest wire.TSN, named int, all bool) {
	g := &s.ledger
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
		*s.steps++
		t, ok := g.paid.Next(cum+wire.TSN(start), n)
		for ; ok; t, ok = g.paid.Next(t+1, int(uint32(highest-t))) {
			if s.spent() {
				return highest, named, false
			}
			s.ackGap(a, t)
		}
		if g.nowed == 0 {
			continue
		}
		*s.steps++
		t, ok = g.owed.Next(cum+wire.TSN(start), n)
		for ; ok && s.credit > 0; t, ok = g.owed.Next(t+1, int(uint32(highest-t))) {
			s.credit--
			s.ackGap(a, t)
		}
	}
	return highest, named, true
}

// ackGap acknowledges a TSN that a gap block names.
func (s *Sender) ackGap(a *ack, t wire.TSN) {
	*s.steps++
	r := s.ledger.rec(t)
	s.ackOne(a, t, r, 1)
	s.ledger.move(onGap, t, r, s.paths[r.path])
}

// together returns how many chunks from t, that of r, to cum are alike in all that their acknowledgement tells: they went once and at the same time, to one path, and nothing was heard of any.
func (s *Sender) together(t, cum wire.TSN, r *record) int {
	p, n := s.paths[r.path], 1
	if r.state != sent || r.flags&^large != 0 || s.tail.out || p.rates != nil || r.stamp == p.full.stamp {
		return n
	}
	for ; t != cum; n++ {
		t++
		if q := s.ledger.rec(t); q.stamp != r.stamp || q.size != r.size || q.wire != r.wire || q.flags != r.flags || q.path != r.path || q.state != sent {
			break
		}
	}
	return n
}

// ackOne learns from the acknowledgement of a TSN that is not acknowledged, or of n from there on that went together. The caller enters it in the ledger.
func (s *Sender) ackOne(a *ack, t wire.TSN, r *record, n int) {
	p, octets := s.paths[r.path], n*r.chunkLen()
	if r.is(inQueue) {
		s.late(a.now, t)
	} else if uint32(p.first-t) < uint32(n) {
		p.sack.ackedFirst = true
	}
	p.sack.acked += octets
	if p.full.after(r.stamp, t) {
		p.sack.full += octets
	}
	s.acked += octets
	if p.timing && uint32(p.timed-t) < uint32(n) {
		p.timing = false
		p.sack.rtt = max(a.now.Sub(p.timedAt), 1)
	}
	if r.flags&vague == 0 {
		p.disorder.seen = p.disorder.seen || p.sack.latest.after(r.stamp, t)
		if d := time.Duration(stamp(a.now)-r.stamp) * time.Microsecond; p.sack.trip == 0 || d < p.sack.trip {
			p.sack.trip = max(d, 1)
		}
		p.sack.asked = p.sack.asked || r.wire&wire.FlagI != 0
	}
	if p.rates != nil {
		s.rateAcked(a.now, t, r, p)
	}
	r.misses = 0
	t += wire.TSN(n - 1) // the last of them
	s.cameLate(a.now, t, r, p)
	s.arrived(a.now, t, r, p)
	s.heardTail(a.now, t, r, p)
	if a.htna.Less(t) {
		a.htna = t
	}
	a.result.NewlyAcked = true
	if r.flags&large != 0 {
		p.holes = 0
	}
	if r.flags&moved == 0 { // else nobody knows which of the destinations it reached (RFC 7829 section 3.2)
		a.result.Paths.add(p.Index())
	}
}

// exitRecovery leaves Fast Recovery when its exit point is acknowledged (section 6.2.1, D iv).
func (s *Sender) exitRecovery(now rawio.Time) {
	if s.recovery && s.exit.Less(s.ledger.base) {
		s.recovery = false
		s.recovered(now)
	}
	s.settleUrgent()
}

// settleUrgent takes back that a packet ignores cwnd, when there is no reason for one any more or nothing to go in it.
func (s *Sender) settleUrgent() {
	s.urgent = s.urgent && (s.recovery || s.tail.due) && s.ledger.nmarked > 0
}

// grow applies RTT measurements and the increase of cwnd, before any loss (sections 6.3.1, 7.2.4).
func (s *Sender) grow(a *ack) {
	all := s.ledger.len() == 0
	for _, p := range s.paths {
		k := &p.sack
		if k.rtt > 0 {
			p.ObserveRTT(k.rtt)
		}
		if k.acked > 0 {
			p.single, p.early.n = false, 0
			s.emptied(p)
			p.spacing.arrived(a.now, k.acked, p.pmdcs)
		}
		if all {
			p.learnWait()
		}
		if k.acked > 0 || k.dups > 0 || all {
			again := min(k.acked, p.debt)
			p.debt -= again
			p.cc.OnAck(a.now, cc.Ack{
				Octets: k.acked - again, Full: min(k.full, k.acked-again), Dups: k.dups, Flight: k.flight,
				Recovery: s.recovery || s.echoed, AllAcked: all, RTT: k.rtt, Trip: k.trip, Spread: s.spreads(p),
			})
		}
	}
	s.echoed = false
}

// countMisses gives a miss indication to what is missing below the highest TSN newly acknowledged,
// in Fast Recovery when the cumulative TSN advances below the highest that the SACK reports
// (section 7.2.4), and notes the paths of what has now missed three times. A SACK may stand for several: unless the letter is
// kept, what it reports three chunks above has missed as often as SACKs for each of them would say (RFC 6675 section 4).
// It says whether it came to the end.
func (s *Sender) countMisses(l *later) (all bool) {
	g, k, now := &s.ledger, l.sack, l.now
	limit := l.htna
	if s.recovery && l.advanced {
		limit = l.highest
	}
	if limit.Less(l.at) {
		return true
	}
	t, ok := g.ripe.Next(l.at, int(uint32(limit-l.at)))
	third := 0
	if ok {
		third = missedBelow(k)
	}
	for ; ok; t, ok = g.ripe.Next(t+1, int(uint32(limit-t-1))) {
		if s.spent() {
			l.at = t
			return false
		}
		*s.steps++
		r := g.rec(t)
		if int(uint32(t-k.CumTSN())) < third && r.flags&resent == 0 && !s.cfg.Letter && s.paths[r.path].latest.after(r.stamp, t) {
			r.misses = missLimit - 1
		}
		switch left, known := s.left(now, t, r); {
		case known && left <= 0:
			s.lost(now, t, r, &l.lost)
		case !known || !s.paths[r.path].disorder.seen:
			s.miss(now, t, r, &l.lost)
		}
	}
	return true
}

// missedBelow returns the offset from the cumulative TSN of the third highest TSN that the gap blocks of a SACK name; what is missing below
// it has missed three.
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
	return 0
}

// miss counts a miss indication and marks the chunk on the third.
func (s *Sender) miss(now rawio.Time, t wire.TSN, r *record, lost *PathSet) {
	if r.misses++; r.misses < missLimit || s.overspent() {
		return
	}
	s.lost(now, t, r, lost)
}

// lost marks a chunk that is taken for lost.
func (s *Sender) lost(now rawio.Time, t wire.TSN, r *record, lost *PathSet) {
	p := s.paths[r.path]
	if r.state != withheld {
		lost.add(p.Index())
		s.suspect(t, p)
	}
	if p.rates != nil {
		s.rateLost(now, t, r, p)
	}
	s.ledger.mark(t, r, p)
	r.flags = r.flags&^timeout | fast
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
	if !p.last(now, r) {
		return
	}
	s.latest.advance(r.stamp, t)
	p.latest.advance(r.stamp, t)
	s.heard = now
}

// last reports whether the transmission that was acknowledged may be the last one.
func (p *Path) last(now rawio.Time, r *record) bool {
	return r.flags&copied == 0 && (r.flags&resent == 0 || stamp(now)-r.stamp >= uint32(p.est.trip.get().Microseconds()))
}

// forget is for a silence so long that stamps do not tell any more what was sent when, as behind a jump of the clock. Nothing counts as having arrived, and what
// is outstanding as sent again now.
func (s *Sender) forget(now rawio.Time) {
	if now.Sub(s.heard) <= stampLife {
		return
	}
	s.heard, s.latest = now, sending{}
	for _, p := range s.paths {
		p.latest, p.full, p.timing = sending{}, sending{}, false
	}
	g := &s.ledger
	g.ripe.RemoveRange(g.base, g.len())
	g.again.empty()
	for t := g.base; t != g.next; t++ {
		r := g.rec(t)
		r.stamp, r.flags = stamp(now), r.flags|resent
		g.again.push(g, t, r.stamp)
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

// renege takes back the gap acknowledgement of TSNs that the SACK no longer names: they are in
// flight again, with one miss indication (section 6.2.1, D iii). It says whether it came to the end.
func (s *Sender) renege(l *later) (all bool) {
	if int(s.ledger.ngapped) <= l.named && s.ledger.nowed == 0 {
		return true
	}
	k, cum := l.sack, l.cum
	hole := cum + 1 // the first TSN after the last block
	for i, prev := 0, uint16(0); i < k.NumGaps(); i++ {
		start, end := k.Gap(i)
		if start <= prev || end < start {
			continue
		}
		*s.steps++
		if !s.renegeRange(hole, cum+wire.TSN(start), &l.lost) {
			return false
		}
		prev, hole = end, cum+wire.TSN(end)+1
	}
	return s.renegeRange(hole, s.ledger.next, &l.lost)
}

func (s *Sender) renegeRange(from, to wire.TSN, lost *PathSet) (all bool) {
	g := &s.ledger
	t, ok := g.gapped.Next(from, int(uint32(to-from)))
	for ; ok; t, ok = g.gapped.Next(t+1, int(uint32(to-t-1))) {
		if s.spent() {
			return false
		}
		*s.steps++
		r := g.rec(t)
		p := s.paths[r.path]
		g.move(onTakeBack, t, r, p)
		s.rare().Reneged++
		p.debt += r.chunkLen()
		if s.sentEarlier(t, r) {
			s.overtaken(t, r)
		}
		s.miss(s.later.now, t, r, lost)
	}
	return true
}

// lose reacts to the chunks that were marked by miss indications (section 7.2.4, points 2 to 6).
func (s *Sender) lose(now rawio.Time, lost PathSet) {
	if lost == 0 || s.recovery {
		return
	}
	for _, p := range s.paths {
		if lost.Has(p.Index()) {
			s.reduce(now, p)
			p.disorder.undo = !s.cfg.Letter
		}
	}
	s.recovery, s.urgent = true, true
	s.exit = s.ledger.next - 1
	s.rare().FastRetransmits++
}

// reduce is the reaction to a loss.
func (s *Sender) reduce(now rawio.Time, p *Path) {
	p.cc.OnLoss(now)
	p.reduced, p.full = s.Fresh(), sending{}
	p.alarm.on = false // that could not be taken back
}

// restartTimers applies rules R2, R3 and R4 of section 6.3.2.
func (s *Sender) restartTimers(now rawio.Time) {
	for _, p := range s.paths {
		switch {
		case p.flight == 0:
			p.t3, p.pto = rawio.Never, rawio.Never
			continue
		case p.sack.ackedFirst || p.t3 == rawio.Never:
			s.startT3(now, p)
		}
		s.findFirst(p)
		s.armPTO(now, p, p.sack.acked > 0)
	}
}

// findFirst moves p.first on to the earliest TSN that is still in flight to p.
func (s *Sender) findFirst(p *Path) {
	*s.steps++
	p.first, _ = p.inflight.Next(s.ledger.base, s.ledger.len())
}

// reopen sends a zero window probe again as soon as the window is open: the peer has most likely
// dropped it, and waiting for T3-rtx would stall the association.
func (s *Sender) reopen(arwnd int) {
	if !s.probing {
		return
	}
	t := s.ledger.base
	r := s.ledger.rec(t)
	if arwnd < int(r.size) || r.state == gapped {
		return
	}
	s.probing = false
	if p := s.paths[r.path]; r.is(inFlight) { // or it is marked already
		s.ledger.mark(t, r, p)
		p.t3 = rawio.Never
	}
}
