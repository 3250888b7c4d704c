package cc

// bbrState is BBR.state.
type bbrState uint8

const (
	bbrNone bbrState = iota // of undo alone
	bbrStartup
	bbrDrain
	bbrProbeDown
	bbrProbeCruise
	bbrProbeRefill
	bbrProbeUp
	bbrProbeRTT
)

var bbrStateNames = [...]string{"", "Startup", "Drain", "ProbeBW_DOWN", "ProbeBW_CRUISE", "ProbeBW_REFILL",
	"ProbeBW_UP", "ProbeRTT"}

func (s bbrState) String() string { return bbrStateNames[s] }

// bbrGains are BBR.pacing_gain and BBR.cwnd_gain of each state.
var bbrGains = [...]struct{ pacing, cwnd float64 }{
	bbrStartup:     {2.77, 2},
	bbrDrain:       {0.5, 2},
	bbrProbeDown:   {0.9, 2},
	bbrProbeCruise: {1, 2},
	bbrProbeRefill: {1, 2},
	bbrProbeUp:     {1.25, 2.25},
	bbrProbeRTT:    {1, 0.5},
}

// inProbeBWState is IsInAProbeBWState.
func (s bbrState) inProbeBWState() bool { return s >= bbrProbeDown && s <= bbrProbeUp }

// isProbingBW is IsProbingBW.
func (s bbrState) isProbingBW() bool {
	return s == bbrStartup || s == bbrProbeRefill || s == bbrProbeUp
}

func (b *bbr) enterStartup() { b.state = bbrStartup }

// checkFullBWReached is CheckFullBWReached. It need not ask for full_bw_now, which nothing reads
// then before it is reset.
func (b *bbr) checkFullBWReached(s *Sample) {
	if !b.roundStart || s.AppLimited || s.Rate == 0 {
		return
	}
	if float64(s.Rate) >= bbrFullGrowth*float64(b.fullBw) {
		b.resetFullBW()
		b.fullBw = s.Rate
		return
	}
	b.fullBwCount++
	if b.fullBwNow = b.fullBwCount >= bbrFullRounds; b.fullBwNow {
		b.fullBwReached = true
	}
}

// checkStartupDone ends Startup where the pipe is full. It also does so when a whole round trip of
// Fast Recovery has lost too much, in too many places.
func (b *bbr) checkStartupDone(s *Sample) {
	if b.state != bbrStartup {
		return
	}
	if b.lossRoundStart && s.Recovery && b.lossEvents >= bbrFullLossCnt && inflightTooHigh(s.Lost, s.TxInFlight) {
		b.exitStartup()
	} else if b.fullBwReached {
		b.enterDrain()
	}
}

// exitStartup ends Startup because of congestion.
func (b *bbr) exitStartup() {
	b.undoState.state = bbrStartup
	b.fullBwNow, b.fullBwReached = true, true
	b.inflightLongterm = max(b.bdpMultiple(b.bw, 1), b.inflightLatest)
	b.enterDrain()
}

func (b *bbr) enterDrain() { b.state, b.drainStartRound = bbrDrain, b.roundCount }

func (b *bbr) checkDrainDone() {
	if b.state == bbrDrain && (int64(b.inflight) <= b.inflightAt(b.bw, 1) || b.roundCount > b.drainStartRound+
		bbrDrainRounds) {
		b.startProbeBWDown()
	}
}

func (b *bbr) startProbeBWDown() {
	b.resetCongestionSignals()
	b.pickProbeWait()
	b.cycleStamp = b.now
	b.probeStopping = true
	b.startRound()
	b.state = bbrProbeDown
}

func (b *bbr) startProbeBWCruise() { b.state = bbrProbeCruise }

func (b *bbr) startProbeBWRefill() {
	b.resetShortTermModel()
	b.bwProbeUpRounds, b.bwProbeUpAcked = 0, 0
	b.prevProbePrecautionary = false
	b.probeStopping = false
	b.startRound()
	b.state = bbrProbeRefill
}

func (b *bbr) startProbeBWUp(s *Sample) {
	b.startRound()
	b.resetFullBW()
	b.fullBw = s.Rate
	b.state = bbrProbeUp
	b.raiseInflightLongtermSlope()
}

func (b *bbr) updateProbeBWCyclePhase(s *Sample) {
	if !b.fullBwReached || b.adaptLongTermModel(s) {
		return
	}
	switch b.state {
	case bbrProbeDown:
		if !b.isTimeToProbeBW() && b.isTimeToCruise() {
			b.startProbeBWCruise()
		}
	case bbrProbeCruise:
		b.isTimeToProbeBW()
	case bbrProbeRefill:
		if b.roundStart {
			b.bwProbeSample = true
			b.startProbeBWUp(s)
		}
	case bbrProbeUp:
		if b.isTimeToGoDown(s) {
			b.prevProbeTooHigh = false
			b.startProbeBWDown()
		}
	}
}

// adaptLongTermModel is AdaptLongTermModel. It reports whether it has changed the state.
func (b *bbr) adaptLongTermModel(s *Sample) bool {
	if b.probeStopping && b.roundStart {
		b.bwProbeSample, b.probeStopping = false, false
		if b.state.inProbeBWState() && !s.AppLimited {
			b.maxBwFilter = [...]int64{b.maxBwFilter[1], 0} // AdvanceMaxBwFilter
		}
		if b.state.inProbeBWState() && b.prevProbePrecautionary && !b.prevProbeTooHigh {
			b.startProbeBWRefill()
			return true
		}
	}
	if inflightTooHigh(s.Lost, s.TxInFlight) {
		return false
	}
	b.inflightLongterm = max(b.inflightLongterm, int64(s.TxInFlight))
	if b.state == bbrProbeUp {
		b.probeInflightLongtermUpward(s)
	}
	return false
}

// isTimeToProbeBW goes to REFILL where it is.
func (b *bbr) isTimeToProbeBW() bool {
	reno := min(b.targetInflight()/int64(b.pmdcs), bbrRenoRounds)
	if b.now.Sub(b.cycleStamp) <= b.bwProbeWait && b.roundsSinceProbeUp < reno {
		return false
	}
	b.startProbeBWRefill()
	return true
}

func (b *bbr) isTimeToCruise() bool {
	return int64(b.inflight) <= min(b.inflightWithHeadroom(), b.inflightAt(b.maxBw, 1))
}

func (b *bbr) isTimeToGoDown(s *Sample) bool {
	switch {
	case b.prevProbeTooHigh && int64(b.inflight) >= b.inflightLongterm:
		b.prevProbePrecautionary = true
		return true
	case b.cwndLimited && int64(b.cwnd) >= b.inflightLongterm: // which limits the rate
		b.resetFullBW()
		b.fullBw = s.Rate
	}
	return b.fullBwNow
}

func (b *bbr) raiseInflightLongtermSlope() {
	growth := int64(1) << b.bwProbeUpRounds
	b.bwProbeUpRounds = min(b.bwProbeUpRounds+1, 30)
	b.probeUpAckedPerInc = max(int64(b.cwnd)/growth, int64(b.pmdcs))
}

func (b *bbr) probeInflightLongtermUpward(s *Sample) {
	if !b.cwndLimited || int64(b.cwnd) < b.inflightLongterm {
		return
	}
	b.bwProbeUpAcked += int64(s.NewlyAcked)
	n := b.bwProbeUpAcked / b.probeUpAckedPerInc
	b.bwProbeUpAcked -= n * b.probeUpAckedPerInc
	b.inflightLongterm += n * int64(b.pmdcs)
	if b.roundStart {
		b.raiseInflightLongtermSlope()
	}
}

// checkProbeRTT is CheckProbeRTT. It reports whether what is sent now is less than the path takes.
func (b *bbr) checkProbeRTT(s *Sample) (limited bool) {
	if b.state != bbrProbeRTT && b.probeRTTExpired && !b.idleRestart {
		b.state = bbrProbeRTT
		b.saveCwnd()
		b.probeRTTDoneAt = 0
		b.probeStopping = true
		b.startRound()
	}
	if b.state == bbrProbeRTT {
		b.handleProbeRTT()
		limited = true
	}
	if s.Volume > 0 {
		b.idleRestart = false
	}
	return limited
}

func (b *bbr) handleProbeRTT() {
	if b.probeRTTDoneAt == 0 && int64(b.inflight) <= b.probeRTTCwnd() {
		b.probeRTTDoneAt = b.now.Add(bbrProbeRTTDuration)
		b.probeRTTRoundDone = false
		b.startRound()
		return
	}
	if b.roundStart {
		b.probeRTTRoundDone = true
	}
	if b.probeRTTRoundDone {
		b.checkProbeRTTDone()
	}
}

func (b *bbr) checkProbeRTTDone() {
	if b.probeRTTDoneAt != 0 && b.probeRTTDoneAt.Before(b.now) {
		b.probeRTTMinStamp = b.now
		b.restoreCwnd()
		b.exitProbeRTT()
	}
}

func (b *bbr) exitProbeRTT() {
	b.resetShortTermModel()
	if b.fullBwReached {
		b.startProbeBWDown()
		b.startProbeBWCruise()
	} else {
		b.enterStartup()
	}
}
