package tx

import (
	"slices"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

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
	cum := k.CumTSN()
	if stale, err := s.beginSack(now, cum); stale || err != nil {
		return Result{Stale: stale}, err
	}
	if err := s.checkGapBlocks(k); err != nil {
		return Result{}, err
	}
	s.window.probeAnswered = true
	s.work.payForReneging(len(k))
	s.observeDuplicates(now, k)
	s.sack.begin(now, cum, k)
	res := s.processSack()
	if s.sack.active {
		s.sack.chunk = slices.Clone(k)
	}
	return res, nil
}

// HandleCumAck processes the Cumulative TSN Ack of a SHUTDOWN (section 9.2). It says nothing of
// gaps or of the window. The window last advertised is taken to be still there: a peer in
// SHUTDOWN-SENT may answer DATA by nothing but SHUTDOWN.
func (s *Sender) HandleCumAck(now rawio.Time, cum wire.TSN) (Result, error) {
	stale, err := s.beginSack(now, cum)
	if stale || err != nil || cum == s.outstanding.firstUnacked-1 {
		return Result{Stale: stale}, err
	}
	s.sack.begin(now, cum, nil)
	return s.processSack(), nil
}

// HasMoreWork says that a SACK, or T3-rtx, has used up its work budget. Others have their turn,
// then ContinueWork goes on. A SACK that comes meanwhile says all of it again, and takes the
// other's place.
func (s *Sender) HasMoreWork() bool { return s.sack.active || s.recovery.pathsToMark != 0 }

// ContinueWork does the next part.
func (s *Sender) ContinueWork(now rawio.Time) Result {
	if s.recovery.pathsToMark != 0 {
		s.work.startSlice(s.outstanding.len())
		for _, p := range s.paths {
			if s.recovery.pathsToMark.Has(p.Index()) {
				s.markLostOnTimeout(now, p)
			}
		}
		return Result{}
	}
	s.clearPathSacks()
	return s.processSack()
}

// sackInProgress is a SACK that is not processed to its end, or the cumulative TSN of a SHUTDOWN.
// The zero value is none.
type sackInProgress struct {
	step       sackStep // what is done next
	cumTSN     wire.TSN
	receivedAt rawio.Time
	chunk      wire.Sack // once the first part is done, a copy; nil for a SHUTDOWN
	acked      ackedInfo // what acknowledge leaves to the steps behind it
	missesFrom wire.TSN  // where detectLoss goes on
	active     bool
	lostPaths  PathSet // on which detectLoss and renegeUnnamed have found losses
}

// ackedInfo is what was acknowledged, and how far the SACK reports.
type ackedInfo struct {
	newlyAcked, cumAdvanced bool     // see Result, as paths
	highestNewlyAcked       wire.TSN // 7.2.4; at least the cumulative TSN of before
	highestNamed            wire.TSN // the highest that the SACK reports
	namedCount              int32    // how many TSNs its gap blocks name
	paths                   PathSet
}

// begin begins with a SACK, or with a SHUTDOWN, where chunk is nil.
func (k *sackInProgress) begin(now rawio.Time, cum wire.TSN, chunk wire.Sack) {
	*k = sackInProgress{}
	k.active, k.receivedAt, k.cumTSN, k.chunk = true, now, cum, chunk
}

// numSteps is how many steps it takes. A SHUTDOWN does not say what is missing.
func (k *sackInProgress) numSteps() sackStep {
	if k.chunk == nil {
		return stepDetectLoss
	}
	return numSackSteps
}

// sackStep is a step in the work of a SACK. One that the work budget has cut goes on where it was;
// one that came to its end is not taken again.
type sackStep uint8

const (
	stepAcknowledge sackStep = iota // acknowledge.go
	stepGrow                        // grow_cwnd.go
	stepRestore                     // spurious_timeout.go
	stepOvertaken                   // loss_eligible.go
	stepDetectLoss                  // detect_loss.go
	stepRenege                      // renege.go
	stepRecover                     // fast_recovery.go
	numSackSteps                    // all is done
)

// takeSackStep takes the next step of a SACK, and says whether that came to its end.
func (s *Sender) takeSackStep(k *sackInProgress, res *Result) (done bool) {
	switch now := k.receivedAt; k.step {
	case stepAcknowledge: // what the cumulative TSN covers, and gap blocks name (6.2.1, D)
		done = s.acknowledge(k)
		res.NewlyAcked, res.CumAdvanced, res.Paths = k.acked.newlyAcked, k.acked.cumAdvanced, k.acked.paths
		return done
	case stepGrow: // cwnd, before any loss reduces it (7.2.1, 7.2.2, 7.2.4)
		s.growCwnd(now)
		s.undoSpuriousTimeouts(now)
	case stepRestore: // what T3-rtx has marked lost and was only late (RFC 5682)
		return s.restoreSpurious(now)
	case stepOvertaken: // what was sent before something that has arrived
		return s.updateLossEligible()
	case stepDetectLoss: // of that, what is lost (7.2.4, RFC 8985 section 6.2)
		return s.detectLoss(k)
	case stepRenege: // what was gap-acked, and is not any more (6.2.1, D iii)
		return s.renegeUnnamed(k)
	case stepRecover: // from what was found lost (7.2.4)
		s.enterFastRecovery(now, k.lostPaths)
		s.onProbeRepair(now, res)
		s.armRACK(now)
	}
	return true
}

// processSack goes on with the SACK, or SHUTDOWN, as far as the work budget goes. A part counts as
// a SACK that acknowledges no more than that part. But it says nothing of what else is missing or
// reneged, and does not open cwnd.
func (s *Sender) processSack() Result {
	k, now := &s.sack, s.sack.receivedAt
	s.work.startSlice(s.outstanding.len())
	arwnd := uint32(s.Rwnd() + s.outstanding.dataInFlight) // as advertised last
	var res Result
	steps := k.numSteps()
	for k.step < steps && s.takeSackStep(k, &res) {
		k.step++
	}
	s.restartTimers(now)
	if k.chunk != nil && k.step > stepAcknowledge {
		arwnd = k.chunk.ARwnd()
	}
	s.setRwnd(arwnd)
	if k.step == steps {
		if k.chunk != nil {
			s.retryWindowProbe(now, int(arwnd))
		}
		s.rateSamples(now)
		*k = sackInProgress{}
		if s.partial() != nil {
			s.repeatForward(now)
		}
	}
	return res
}

// beginSack checks the cumulative TSN of a SACK or SHUTDOWN, and clears what the last one has left
// on the paths. It is stale if it says less than one that is processed, or in progress.
func (s *Sender) beginSack(now rawio.Time, cum wire.TSN) (stale bool, err error) {
	if s.sack.active && cum.Less(s.sack.cumTSN) {
		return true, nil
	}
	s.forgetOldStamps(now)
	g := &s.outstanding
	if cum.Less(g.firstUnacked - 1) {
		return true, nil
	}
	if uint32(cum-(g.firstUnacked-1)) > uint32(g.len()) {
		return false, &UnsentTSNError{cum, g.nextTSN}
	}
	if s.withheld.isWithin(g.firstUnacked, cum) {
		return false, &UnsentTSNError{s.withheld.tsn, g.nextTSN}
	}
	s.clearPathSacks()
	return false, nil
}

// checkGapBlocks returns an error where a gap block names what was not sent.
func (s *Sender) checkGapBlocks(k wire.Sack) error {
	cum := k.CumTSN()
	above := uint32(s.outstanding.nextTSN - 1 - cum) // TSNs sent beyond the cumulative one
	for i := range k.NumGaps() {
		*s.work.steps++
		start, end := k.Gap(i)
		if start <= end && uint32(end) > above {
			return &UnsentTSNError{cum.Add(uint32(end)), s.outstanding.nextTSN}
		}
		if start <= end && s.withheld.isWithin(cum.Add(uint32(start)), cum.Add(uint32(end))) {
			return &UnsentTSNError{s.withheld.tsn, s.outstanding.nextTSN}
		}
	}
	return nil
}

// clearPathSacks begins to collect what a SACK, or the next part of one, says about each path.
func (s *Sender) clearPathSacks() {
	for _, p := range s.paths {
		*s.work.steps++
		p.sack = pathSack{priorFlight: p.flight.octets, priorDelivered: p.latestDelivered}
	}
}
