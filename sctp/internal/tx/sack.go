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
	// Paths are those to which newly acknowledged DATA was sent, and to no other. Their error
	// counters start again (8.2, RFC 7829 section 3.2).
	Paths PathSet
	// Suspected are the paths that have become so: they are to be asked by HEARTBEAT.
	Suspected PathSet
}

// HandleSack processes a SACK (sections 6.2.1 and 7.2.4). The error is an *UnsentTSNError: nothing
// was processed and the association is to be aborted.
//
// A SACK that takes a lot of work is processed in parts: see HasMoreWork.
func (s *Sender) HandleSack(now rawio.Time, k wire.Sack) (Result, error) {
	if s.isSuperseded(k.CumTSN()) {
		return Result{Stale: true}, nil
	}
	s.forgetOldStamps(now)
	a, err := s.beginAck(now, k.CumTSN())
	if err != nil || a.result.Stale {
		return a.result, err
	}
	above := uint32(s.outstanding.nextTSN - 1 - k.CumTSN()) // TSNs sent beyond the cumulative one
	for i := range k.NumGaps() {
		*s.steps++
		start, end := k.Gap(i)
		if start <= end && uint32(end) > above {
			return Result{}, &UnsentTSNError{k.CumTSN().Add(uint32(end)), s.outstanding.nextTSN}
		}
		if start <= end && s.acksWithheld(k.CumTSN().Add(uint32(start)), k.CumTSN().Add(uint32(end))) {
			return Result{}, &UnsentTSNError{s.withheld.tsn, s.outstanding.nextTSN}
		}
	}
	s.probeAnswered = true
	s.ackCredit = min(s.ackCredit+creditPerSackOctet*len(k), maxAckCredit)
	s.countDups(now, k)
	s.pendingSack = pendingSack{}
	s.pendingSack.active, s.pendingSack.receivedAt, s.pendingSack.cumTSN, s.pendingSack.sack = true, now, k.CumTSN(), k
	res := s.processPendingSack(a)
	if s.pendingSack.active {
		s.pendingSack.sack = slices.Clone(k)
	}
	return res, nil
}

// HandleCumAck processes the Cumulative TSN Ack of a SHUTDOWN (section 9.2). It says nothing of
// gaps or of the window. The window last advertised is taken to be still there: a peer in
// SHUTDOWN-SENT may answer DATA by nothing but SHUTDOWN.
func (s *Sender) HandleCumAck(now rawio.Time, cum wire.TSN) (Result, error) {
	if s.isSuperseded(cum) {
		return Result{Stale: true}, nil
	}
	s.forgetOldStamps(now)
	a, err := s.beginAck(now, cum)
	if err != nil || a.result.Stale || cum == s.outstanding.firstUnacked-1 {
		return a.result, err
	}
	s.pendingSack = pendingSack{active: true, receivedAt: now, cumTSN: cum}
	return s.processPendingSack(a), nil
}

// maxSliceSteps is how many steps a SACK or T3-rtx may take at once. It holds where more chunks are
// outstanding.
const maxSliceSteps = 4096

// startWorkSlice begins to count what is done at once.
func (s *Sender) startWorkSlice() {
	if s.stepLimit = math.MaxUint64; s.outstanding.len() > maxSliceSteps {
		s.stepLimit = *s.steps + maxSliceSteps
	}
}

// workSliceDone says that others are to have their turn.
func (s *Sender) workSliceDone() bool { return *s.steps >= s.stepLimit }

// pendingSack is a SACK that is not processed to its end, or the cumulative TSN of a SHUTDOWN.
type pendingSack struct {
	stage       sackStage
	cumAdvanced bool // left by the acknowledgements, as those below
	cumTSN      wire.TSN
	receivedAt  rawio.Time // when it came
	sack        wire.Sack  // a copy; nil for a SHUTDOWN

	// What the acknowledgements have left to the stages behind them.
	highestNewlyAcked, highestNamed wire.TSN // see ackState, and processGapAcks
	namedCount                      int
	missesFrom                      wire.TSN // where countMisses goes on
	active                          bool
	lostPaths                       PathSet
}

// sackStage is what of a SACK is done next. Each stage may be interrupted when enough was done at
// once.
type sackStage uint8

const (
	stageAcks         sackStage = iota // chunks are acknowledged
	stageRestore                       // others are not lost after all
	stageLossEligible                  // others become loss-eligible, and
	stageMisses                        // are counted as missing
	stageRenege                        // what was acknowledged and is no more is in flight again
)

// isSuperseded says whether a SACK that is in processing acknowledges more.
func (s *Sender) isSuperseded(cum wire.TSN) bool {
	return s.pendingSack.active && cum.Less(s.pendingSack.cumTSN)
}

// HasMoreWork says that a SACK, or T3-rtx, has used up its work budget. Others have their turn,
// then ContinueWork goes on. A SACK that comes meanwhile says all of it again, and takes the
// other's place.
func (s *Sender) HasMoreWork() bool { return s.pendingSack.active || s.pathsToMark != 0 }

// ContinueWork does the next part.
func (s *Sender) ContinueWork() Result {
	if s.pathsToMark != 0 {
		s.startWorkSlice()
		for _, p := range s.paths {
			if s.pathsToMark.Has(p.Index()) {
				s.markLostOnTimeout(p)
			}
		}
		return Result{}
	}
	a, _ := s.beginAck(s.pendingSack.receivedAt, s.pendingSack.cumTSN)
	return s.processPendingSack(a)
}

// processPendingSack goes on with a SACK, or SHUTDOWN, as far as the work budget goes. A part
// counts as a SACK that acknowledges no more than that part. But it says nothing of what else is
// missing or reneged, and does not open cwnd.
func (s *Sender) processPendingSack(a ackState) Result {
	s.startWorkSlice()
	l := &s.pendingSack
	arwnd := uint32(s.Rwnd() + s.outstanding.dataInFlight)
	if l.stage == stageAcks && s.processAcks(&a, l) {
		s.growCwnd(&a)
		s.undoSpuriousTimeouts(a.now)
		l.stage = stageRestore
	}
	if l.stage == stageRestore && s.restoreSpurious(a.now) {
		s.updateBypassCwnd()
		l.stage = stageLossEligible
	}
	if l.stage == stageLossEligible && s.updateLossEligible() {
		l.stage = stageMisses
		l.active = l.sack != nil
	}
	if l.active && l.stage == stageMisses && s.countMisses(l) {
		l.stage = stageRenege
	}
	if l.active && l.stage == stageRenege && s.renegeUnnamed(l) {
		l.active = false
		s.enterFastRecovery(a.now, l.lostPaths)
		s.onProbeRepair(a.now, &a.result)
		s.armRACK(a.now)
	}
	s.restartTimers(a.now)
	if l.sack != nil && l.stage > stageAcks {
		arwnd = l.sack.ARwnd()
	}
	s.setRwnd(arwnd)
	if !l.active {
		if l.sack != nil {
			s.retryWindowProbe(int(arwnd))
		}
		s.rateSamples(a.now)
		*l = pendingSack{}
	}
	return a.result
}

// processAcks acknowledges what is covered, then what gap blocks name, and says whether that was
// all.
func (s *Sender) processAcks(a *ackState, l *pendingSack) (all bool) {
	cum := l.cumTSN
	if n := int(uint32(cum + 1 - s.outstanding.firstUnacked)); n > maxSliceSteps {
		cum = s.outstanding.firstUnacked + maxSliceSteps - 1
	}
	s.processCumAck(a, cum)
	all = cum == l.cumTSN
	l.highestNamed = cum
	if all && l.sack != nil {
		l.highestNamed, l.namedCount, all = s.processGapAcks(a, l.sack)
	}
	s.exitRecovery(a.now)
	l.highestNewlyAcked, l.cumAdvanced, l.missesFrom = a.highestNewlyAcked, a.result.CumAdvanced,
		s.outstanding.firstUnacked
	return all
}

// ackState is a SACK in processing.
type ackState struct {
	now               rawio.Time
	result            Result
	highestNewlyAcked wire.TSN // highest TSN newly acknowledged (7.2.4), at least the cumulative one of before
}

// beginAck checks the cumulative TSN and clears what the last SACK left on the paths.
func (s *Sender) beginAck(now rawio.Time, cum wire.TSN) (ackState, error) {
	a := ackState{now: now, highestNewlyAcked: s.outstanding.firstUnacked - 1}
	if cum.Less(s.outstanding.firstUnacked - 1) {
		a.result.Stale = true
		return a, nil
	}
	if uint32(cum-(s.outstanding.firstUnacked-1)) > uint32(s.outstanding.len()) {
		return a, &UnsentTSNError{cum, s.outstanding.nextTSN}
	}
	if s.acksWithheld(s.outstanding.firstUnacked, cum) {
		return a, &UnsentTSNError{s.withheld.tsn, s.outstanding.nextTSN}
	}
	for _, p := range s.paths {
		*s.steps++
		p.sack = pathSack{priorFlight: p.flightSize, priorDelivered: p.latestDelivered}
	}
	return a, nil
}

// countDups adds up the duplicates for partial_bytes_acked (7.2.2). A chunk counts as often as it
// was sent again. So a peer cannot open cwnd by inventing duplicates.
func (s *Sender) countDups(now rawio.Time, k wire.Sack) {
	s.tailProbe.duplicate = false
	for i := range k.NumDups() {
		*s.steps++
		s.rareStats().DupsReported++
		s.onSpuriousLoss(now, k.Dup(i))
		if k.Dup(i) == s.tailProbe.tsn {
			s.tailProbe.duplicate = true
			s.learnLateSack()
		}
		if r := s.outstanding.sentRecord(k.Dup(i)); r != nil && r.unreportedDups > 0 {
			s.onDuplicateReported(k.Dup(i), r)
			r.unreportedDups--
			s.paths[r.path].sack.dupOctets += r.chunkLen()
		}
	}
}

// processCumAck acknowledges everything up to cum and tells the upper layer.
func (s *Sender) processCumAck(a *ackState, cum wire.TSN) {
	g := &s.outstanding
	base := g.firstUnacked
	n := int(uint32(cum + 1 - base))
	if n == 0 {
		return
	}
	a.result.CumAdvanced = true
	g.removeFromSets(n, s.paths)
	var told ackRun
	like := 0 // so many more, of those that were sent together
	for t := base; t != cum+1; t++ {
		*s.steps++
		r := g.recordOf(t)
		if like--; like < 0 && r.state != stateGapAcked {
			like = s.countSentTogether(t, cum, r) - 1
			s.ackChunk(a, t, r, like+1)
		}
		if r.flags&flagEnqueued != 0 {
			s.bufferedOctets -= int(r.size)
		}
		r.body = [2][]byte{} // let go of the user's memory
		g.cumAckFirst(r, s.paths[r.path])
		if r.wireFlags&wire.FlagE != 0 && !told.add(r) {
			s.notifyAcked(a.now, told)
			told = ackRun{}
			told.add(r)
		}
	}
	s.notifyAcked(a.now, told)
	s.zeroWindowProbing = false // it was the only one outstanding
}

// A peer can cause the same work again and again by reneging. The octets of its SACKs pay for that
// work: so many chunks for each octet, and so many at once.
const (
	creditPerSackOctet = 4
	maxAckCredit       = 1 << 13
)

// processGapAcks acknowledges what is in the gap blocks. It returns the highest TSN that the SACK
// reports and how many TSNs the blocks name, and whether it came to the end. Blocks are to ascend.
// One that does not is passed over, which also bounds the work by the window. A reneged chunk that
// was not sent again is acknowledged only while SACKs have paid for that. Else it stays in flight
// until it is sent again or covered by the cumulative TSN.
func (s *Sender) processGapAcks(a *ackState, k wire.Sack) (highest wire.TSN, named int, all bool) {
	g := &s.outstanding
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
		t, ok := g.unacked.Next(cum+wire.TSN(start), n)
		for ; ok; t, ok = g.unacked.Next(t+1, int(uint32(highest-t))) {
			if s.workSliceDone() {
				return highest, named, false
			}
			s.ackGapTSN(a, t)
		}
		if g.numReneged == 0 {
			continue
		}
		*s.steps++
		t, ok = g.reneged.Next(cum+wire.TSN(start), n)
		for ; ok && s.ackCredit > 0; t, ok = g.reneged.Next(t+1, int(uint32(highest-t))) {
			s.ackCredit--
			s.ackGapTSN(a, t)
		}
	}
	return highest, named, true
}

// ackGapTSN acknowledges a TSN that a gap block names.
func (s *Sender) ackGapTSN(a *ackState, t wire.TSN) {
	*s.steps++
	r := s.outstanding.recordOf(t)
	s.ackChunk(a, t, r, 1)
	s.outstanding.applyEvent(onGapAck, t, r, s.paths[r.path])
}

// countSentTogether returns how many chunks from t (that of r) to cum tell the same by their
// acknowledgement. They went once, at the same time, to one path, and nothing was heard of any.
func (s *Sender) countSentTogether(t, cum wire.TSN, r *chunkRecord) int {
	p, n := s.paths[r.path], 1
	if r.state != stateInFlight || r.flags&^flagLongPacket != 0 || s.tailProbe.unacked || p.rateSampler != nil ||
		r.sentStamp == p.cwndFull.sentStamp {
		return n
	}
	for ; t != cum; n++ {
		t++
		if q := s.outstanding.recordOf(t); q.sentStamp != r.sentStamp || q.size != r.size ||
			q.wireFlags != r.wireFlags || q.flags != r.flags || q.path != r.path || q.state != stateInFlight {
			break
		}
	}
	return n
}

// ackChunk learns from the acknowledgement of a TSN that was not acknowledged, or of n TSNs from
// there on that went together. The caller changes their states.
func (s *Sender) ackChunk(a *ackState, t wire.TSN, r *chunkRecord, n int) {
	p, octets := s.paths[r.path], n*r.chunkLen()
	if r.isIn(inToRetransmit) {
		s.onSpuriousLoss(a.now, t)
	} else if uint32(p.firstInFlight-t) < uint32(n) {
		p.sack.ackedFirst = true
	}
	p.sack.ackedOctets += octets
	if p.cwndFull.isAfter(r.sentStamp, t) {
		p.sack.cwndLimitedOctets += octets
	}
	s.ackedOctets += octets
	if p.rttTiming && uint32(p.rttTSN-t) < uint32(n) {
		p.rttTiming = false
		p.sack.rtt = max(a.now.Sub(p.rttStartAt), 1)
	}
	if r.flags&flagAmbiguous == 0 {
		p.reordering.isObserved = p.reordering.isObserved || p.sack.priorDelivered.isAfter(r.sentStamp, t)
		if d := time.Duration(stampOf(a.now)-r.sentStamp) * time.Microsecond; p.sack.minRTT == 0 || d < p.sack.minRTT {
			p.sack.minRTT = max(d, 1)
		}
		p.sack.sackNowAsked = p.sack.sackNowAsked || r.wireFlags&wire.FlagI != 0
	}
	if p.rateSampler != nil {
		s.rateAcked(a.now, t, r, p)
	}
	r.missCount = 0
	t += wire.TSN(n - 1) // the last of them
	s.checkSpuriousTimeout(a.now, t, r, p)
	s.noteDelivered(a.now, t, r, p)
	s.onTailProbeAcked(a.now, t, r, p)
	if a.highestNewlyAcked.Less(t) {
		a.highestNewlyAcked = t
	}
	a.result.NewlyAcked = true
	if r.flags&flagLongPacket != 0 {
		p.blackHoleTimeouts = 0
	}
	if r.flags&flagMultiPath == 0 { // else it is not known which destination it reached (RFC 7829 section 3.2)
		a.result.Paths.add(p.Index())
	}
}

// exitRecovery leaves Fast Recovery when its exit point is acknowledged (section 6.2.1, D iv).
func (s *Sender) exitRecovery(now rawio.Time) {
	if s.inRecovery && s.recoveryExit.Less(s.outstanding.firstUnacked) {
		s.inRecovery = false
		s.endRecovery(now)
	}
	s.updateBypassCwnd()
}

// updateBypassCwnd no longer lets a packet ignore cwnd when the reason for it has gone, or there is
// nothing to send in it.
func (s *Sender) updateBypassCwnd() {
	s.bypassCwnd = s.bypassCwnd && (s.inRecovery || s.tailProbe.pending) && s.outstanding.numToRetransmit > 0
}

// growCwnd applies RTT measurements and the increase of cwnd, before any loss (sections 6.3.1,
// 7.2.4).
func (s *Sender) growCwnd(a *ackState) {
	all := s.outstanding.len() == 0
	for _, p := range s.paths {
		k := &p.sack
		if k.rtt > 0 {
			p.ObserveRTT(k.rtt)
		}
		if k.ackedOctets > 0 {
			p.onePacketOnly, p.earlyT3.expiries = false, 0
			s.clearCwndFull(p)
			p.packetPairs.onAcked(a.now, k.ackedOctets, p.pmdcs)
		}
		if all {
			p.learnSackDelay()
		}
		if k.ackedOctets > 0 || k.dupOctets > 0 || all {
			again := min(k.ackedOctets, p.renegedOctets)
			p.renegedOctets -= again
			p.cc.OnAck(a.now, cc.Ack{
				Octets: k.ackedOctets - again, Full: min(k.cwndLimitedOctets, k.ackedOctets-again), Dups: k.dupOctets,
				Flight:   k.priorFlight,
				Recovery: s.inRecovery || s.ecnEchoed, AllAcked: all, RTT: k.rtt, Trip: k.minRTT, Spread: s.isPaced(p),
			})
		}
	}
	s.ecnEchoed = false
}

// countMisses gives a miss indication to what is missing below the highest TSN newly acknowledged.
// In Fast Recovery, when the cumulative TSN advances, it goes up to the highest that the SACK
// reports (section 7.2.4). It notes the paths of what has now missed three times. A SACK may stand
// for several. So a chunk below three reported ones has missed three times at once, unless in
// strict RFC mode (RFC 6675 section 4). It says whether it came to the end.
func (s *Sender) countMisses(l *pendingSack) (all bool) {
	g, k, now := &s.outstanding, l.sack, l.receivedAt
	limit := l.highestNewlyAcked
	if s.inRecovery && l.cumAdvanced {
		limit = l.highestNamed
	}
	if limit.Less(l.missesFrom) {
		return true
	}
	t, ok := g.lossEligible.Next(l.missesFrom, int(uint32(limit-l.missesFrom)))
	third := 0
	if ok {
		third = missedBelow(k)
	}
	for ; ok; t, ok = g.lossEligible.Next(t+1, int(uint32(limit-t-1))) {
		if s.workSliceDone() {
			l.missesFrom = t
			return false
		}
		*s.steps++
		r := g.recordOf(t)
		if int(uint32(t-k.CumTSN())) < third && r.flags&flagResent == 0 && !s.cfg.StrictRFC &&
			s.paths[r.path].latestDelivered.isAfter(r.sentStamp, t) {
			r.missCount = missLimit - 1
		}
		switch left, known := s.rackTimeLeft(now, t, r); {
		case known && left <= 0:
			s.declareLost(now, t, r, &l.lostPaths)
		case !known || !s.paths[r.path].reordering.isObserved:
			s.addMiss(now, t, r, &l.lostPaths)
		}
	}
	return true
}

// missedBelow returns the third highest TSN that the gap blocks of a SACK name, as an offset from
// the cumulative TSN. What is missing below it has missed three.
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

// addMiss counts a miss indication and marks the chunk on the third.
func (s *Sender) addMiss(now rawio.Time, t wire.TSN, r *chunkRecord, lost *PathSet) {
	if r.missCount++; r.missCount < missLimit || s.overRetransmitBudget() {
		return
	}
	s.declareLost(now, t, r, lost)
}

// declareLost marks a chunk that is taken for lost.
func (s *Sender) declareLost(now rawio.Time, t wire.TSN, r *chunkRecord, lost *PathSet) {
	p := s.paths[r.path]
	if r.state != stateWithheld {
		lost.add(p.Index())
		s.recordLoss(t, p)
	}
	if p.rateSampler != nil {
		s.rateLost(now, t, r, p)
	}
	s.outstanding.markLost(t, r, p)
	r.flags = r.flags&^flagTimedOut | flagFastRetransmitted
}

// stampOf is a time in microseconds that wrap; stamps are compared by their difference.
func stampOf(now rawio.Time) uint32 { return uint32(now / 1000) }

// maxStampAge is a quarter of the time in which stamps wrap. Of two stamps no further apart it is
// known which comes first.
const maxStampAge = 1 << 30 * time.Microsecond

// noteDelivered remembers the chunk sent last of all that have arrived. What was sent after it is
// not missing yet. A SACK may report chunks with higher TSNs that were sent long before. That
// happens after a timeout, or when a SACK has no room for all gap blocks. For a chunk that was sent
// again it is not known which transmission has arrived. It counts as the last only if the answer
// took at least the shortest recent round trip.
func (s *Sender) noteDelivered(now rawio.Time, t wire.TSN, r *chunkRecord, p *Path) {
	if !p.isLastTransmission(now, r) {
		return
	}
	s.latestDelivered.advanceTo(r.sentStamp, t)
	p.latestDelivered.advanceTo(r.sentStamp, t)
	s.lastAckedAt = now
}

// isLastTransmission reports whether the transmission that was acknowledged may be the last one.
func (p *Path) isLastTransmission(now rawio.Time, r *chunkRecord) bool {
	return r.flags&flagProbeCopied == 0 &&
		(r.flags&flagResent == 0 || stampOf(now)-r.sentStamp >= uint32(p.rttEst.minRTT.get().Microseconds()))
}

// forgetOldStamps handles a silence so long that stamps do not tell any more what was sent when. A
// jump of the clock does the same. Nothing counts as having arrived then. What is outstanding
// counts as sent again now.
func (s *Sender) forgetOldStamps(now rawio.Time) {
	if now.Sub(s.lastAckedAt) <= maxStampAge {
		return
	}
	s.lastAckedAt, s.latestDelivered = now, sendOrder{}
	for _, p := range s.paths {
		p.latestDelivered, p.cwndFull, p.rttTiming = sendOrder{}, sendOrder{}, false
	}
	g := &s.outstanding
	g.lossEligible.RemoveRange(g.firstUnacked, g.len())
	g.retransmitLog.clearAll()
	for t := g.firstUnacked; t != g.nextTSN; t++ {
		r := g.recordOf(t)
		r.sentStamp, r.flags = stampOf(now), r.flags|flagResent
		g.retransmitLog.push(g, t, r.sentStamp)
	}
}

// sendOrder says when a chunk was sent, and tells those apart that were sent together.
type sendOrder struct {
	isSet     bool // the others are set
	sentStamp uint32
	tsn       wire.TSN
}

// isAfter reports whether that was after another.
func (a *sendOrder) isAfter(stamp uint32, t wire.TSN) bool {
	d := int32(a.sentStamp - stamp)
	return a.isSet && (d > 0 || d == 0 && t.Less(a.tsn))
}

func (a *sendOrder) advanceTo(stamp uint32, t wire.TSN) {
	if d := int32(stamp - a.sentStamp); !a.isSet || d > 0 || d == 0 && a.tsn.Less(t) {
		*a = sendOrder{true, stamp, t}
	}
}

// sentBeforeDelivered reports whether a chunk was sent before one that has arrived.
func (s *Sender) sentBeforeDelivered(t wire.TSN, r *chunkRecord) bool {
	return s.latestDelivered.isAfter(r.sentStamp, t)
}

// renegeUnnamed takes back the gap acknowledgement of TSNs that the SACK no longer names. They are
// in flight again, with one miss indication (section 6.2.1, D iii). It says whether it came to the
// end.
func (s *Sender) renegeUnnamed(l *pendingSack) (all bool) {
	if int(s.outstanding.numGapAcked) <= l.namedCount && s.outstanding.numReneged == 0 {
		return true
	}
	k, cum := l.sack, l.cumTSN
	hole := cum + 1 // the first TSN after the last block
	for i, prev := 0, uint16(0); i < k.NumGaps(); i++ {
		start, end := k.Gap(i)
		if start <= prev || end < start {
			continue
		}
		*s.steps++
		if !s.renegeRange(hole, cum+wire.TSN(start), &l.lostPaths) {
			return false
		}
		prev, hole = end, cum+wire.TSN(end)+1
	}
	return s.renegeRange(hole, s.outstanding.nextTSN, &l.lostPaths)
}

func (s *Sender) renegeRange(from, to wire.TSN, lost *PathSet) (all bool) {
	g := &s.outstanding
	t, ok := g.gapAcked.Next(from, int(uint32(to-from)))
	for ; ok; t, ok = g.gapAcked.Next(t+1, int(uint32(to-t-1))) {
		if s.workSliceDone() {
			return false
		}
		*s.steps++
		r := g.recordOf(t)
		p := s.paths[r.path]
		g.applyEvent(onRenege, t, r, p)
		s.rareStats().Reneged++
		p.renegedOctets += r.chunkLen()
		if s.sentBeforeDelivered(t, r) {
			s.markLossEligible(t, r)
		}
		s.addMiss(s.pendingSack.receivedAt, t, r, lost)
	}
	return true
}

// enterFastRecovery reacts to the chunks that were marked by miss indications (section 7.2.4,
// points 2 to 6).
func (s *Sender) enterFastRecovery(now rawio.Time, lost PathSet) {
	if lost == 0 || s.inRecovery {
		return
	}
	for _, p := range s.paths {
		if lost.Has(p.Index()) {
			s.reduceCwnd(now, p)
			p.reordering.mayUndo = !s.cfg.StrictRFC
		}
	}
	s.inRecovery, s.bypassCwnd = true, true
	s.recoveryExit = s.outstanding.nextTSN - 1
	s.rareStats().FastRetransmits++
}

// reduceCwnd is the reaction to a loss.
func (s *Sender) reduceCwnd(now rawio.Time, p *Path) {
	p.cc.OnLoss(now)
	p.tsnsSentAtReduction, p.cwndFull = s.SentTSNs(), sendOrder{}
	p.spuriousTimeout.possible = false // that could not be taken back
}

// restartTimers applies rules R2, R3 and R4 of section 6.3.2.
func (s *Sender) restartTimers(now rawio.Time) {
	for _, p := range s.paths {
		switch {
		case p.flightSize == 0:
			p.t3At, p.ptoAt = rawio.Never, rawio.Never
			continue
		case p.sack.ackedFirst || p.t3At == rawio.Never:
			s.startT3(now, p)
		}
		s.updateFirstInFlight(p)
		s.armPTO(now, p, p.sack.ackedOctets > 0)
	}
}

// updateFirstInFlight moves p.firstInFlight on to the earliest TSN that is still in flight to p.
func (s *Sender) updateFirstInFlight(p *Path) {
	*s.steps++
	p.firstInFlight, _ = p.inFlightTSNs.Next(s.outstanding.firstUnacked, s.outstanding.len())
}

// retryWindowProbe sends a zero window probe again as soon as the window is open. The peer has most
// likely dropped it, and waiting for T3-rtx would stall the association.
func (s *Sender) retryWindowProbe(arwnd int) {
	if !s.zeroWindowProbing {
		return
	}
	t := s.outstanding.firstUnacked
	r := s.outstanding.recordOf(t)
	if arwnd < int(r.size) || r.state == stateGapAcked {
		return
	}
	s.zeroWindowProbing = false
	if p := s.paths[r.path]; r.isIn(inFlight) { // or it is marked already
		s.outstanding.markLost(t, r, p)
		p.t3At = rawio.Never
	}
}
