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
	if !b.round.started || s.AppLimited || s.Rate == 0 {
		return
	}
	if float64(s.Rate) >= bbrFullGrowth*float64(b.full.bw) {
		b.full.reset()
		b.full.bw = s.Rate
		return
	}
	b.full.count++
	rounds := bbrFullRounds
	if b.state == bbrProbeUp && b.isQueueBuilding(s) {
		rounds--
	}
	if b.full.now = b.full.count >= rounds; b.full.now {
		b.full.reached = true
	}
}

// isQueueBuilding says whether the probe has made a queue and nothing else. Another round trip of
// it would only make the queue longer, for all that share it. The draft waits for that one too.
func (b *bbr) isQueueBuilding(s *Sample) bool {
	return float64(s.RTT) >= bbrQueueGrowth*float64(b.rtt.min) &&
		float64(s.Rate) < bbrQueueGrowth*float64(b.full.bw)
}

// checkStartupDone ends Startup where the pipe is full. It also does so when a whole round trip of
// Fast Recovery has lost too much, in too many places.
func (b *bbr) checkStartupDone(s *Sample) {
	if b.state != bbrStartup {
		return
	}
	if b.signals.lossRoundStart && s.Recovery && b.signals.lossEvents >= bbrFullLossCnt &&
		inflightTooHigh(s.Lost, s.TxInFlight) {
		b.exitStartup()
	} else if b.full.reached {
		b.enterDrain()
	}
}

// exitStartup ends Startup because of congestion.
func (b *bbr) exitStartup() {
	b.recovery.undo.state = bbrStartup
	b.full.now, b.full.reached = true, true
	b.volume.inflightLongterm = max(b.bdpMultiple(b.rate.bw, 1), b.signals.inflightLatest)
	b.enterDrain()
}

func (b *bbr) enterDrain() { b.state, b.round.drainStart = bbrDrain, b.round.count }

func (b *bbr) checkDrainDone() {
	if b.state == bbrDrain && (int64(b.progress.inflight) <= b.inflightAt(b.rate.bw, 1) ||
		b.round.count > b.round.drainStart+bbrDrainRounds) {
		b.startProbeBWDown()
	}
}

func (b *bbr) startProbeBWDown() {
	b.signals.reset()
	b.pickProbeWait()
	b.cycle.beganAt = b.now
	b.cycle.stopping = true
	b.startRound()
	b.state = bbrProbeDown
}

func (b *bbr) startProbeBWCruise() { b.state = bbrProbeCruise }

func (b *bbr) startProbeBWRefill() {
	b.resetShortTermModel()
	b.cycle.upRounds, b.cycle.upAcked = 0, 0
	b.cycle.prevPrecautionary = false
	b.cycle.stopping = false
	b.startRound()
	b.state = bbrProbeRefill
}

func (b *bbr) startProbeBWUp(s *Sample) {
	b.startRound()
	b.full.reset()
	b.full.bw = s.Rate
	b.state = bbrProbeUp
	b.raiseInflightLongtermSlope()
}

func (b *bbr) updateProbeBWCyclePhase(s *Sample) {
	if !b.full.reached || b.adaptLongTermModel(s) {
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
		if b.round.started {
			b.cycle.hasSample = true
			b.startProbeBWUp(s)
		}
	case bbrProbeUp:
		if b.isTimeToGoDown(s) {
			b.cycle.prevTooHigh = false
			b.startProbeBWDown()
		}
	}
}

// adaptLongTermModel is AdaptLongTermModel. It reports whether it has changed the state.
func (b *bbr) adaptLongTermModel(s *Sample) bool {
	if b.cycle.stopping && b.round.started {
		b.cycle.hasSample, b.cycle.stopping = false, false
		if b.state.inProbeBWState() && !s.AppLimited {
			b.rate.maxBwFilter = [...]int64{b.rate.maxBwFilter[1], 0} // AdvanceMaxBwFilter
		}
		if b.state.inProbeBWState() && b.cycle.prevPrecautionary && !b.cycle.prevTooHigh {
			b.startProbeBWRefill()
			return true
		}
	}
	if inflightTooHigh(s.Lost, s.TxInFlight) {
		return false
	}
	b.volume.inflightLongterm = max(b.volume.inflightLongterm, int64(s.TxInFlight))
	if b.state == bbrProbeUp {
		b.probeInflightLongtermUpward(s)
	}
	return false
}

// isTimeToProbeBW goes to REFILL where it is.
func (b *bbr) isTimeToProbeBW() bool {
	reno := min(b.targetInflight()/int64(b.pmdcs), bbrRenoRounds)
	if b.now.Sub(b.cycle.beganAt) <= b.cycle.wait && b.cycle.roundsSinceUp < reno {
		return false
	}
	b.startProbeBWRefill()
	return true
}

func (b *bbr) isTimeToCruise() bool {
	return int64(b.progress.inflight) <= min(b.inflightWithHeadroom(), b.inflightAt(b.rate.maxBw, 1))
}

func (b *bbr) isTimeToGoDown(s *Sample) bool {
	switch {
	case b.cycle.prevTooHigh && int64(b.progress.inflight) >= b.volume.inflightLongterm:
		b.cycle.prevPrecautionary = true
		return true
	case b.round.cwndLimited && int64(b.cwnd) >= b.volume.inflightLongterm: // which limits the rate
		b.full.reset()
		b.full.bw = s.Rate
	}
	return b.full.now
}

func (b *bbr) raiseInflightLongtermSlope() {
	growth := int64(1) << b.cycle.upRounds
	b.cycle.upRounds = min(b.cycle.upRounds+1, 30)
	b.cycle.upAckedPerInc = max(int64(b.cwnd)/growth, int64(b.pmdcs))
}

func (b *bbr) probeInflightLongtermUpward(s *Sample) {
	if !b.round.cwndLimited || int64(b.cwnd) < b.volume.inflightLongterm {
		return
	}
	b.cycle.upAcked += int64(s.NewlyAcked)
	n := b.cycle.upAcked / b.cycle.upAckedPerInc
	b.cycle.upAcked -= n * b.cycle.upAckedPerInc
	b.volume.inflightLongterm += n * int64(b.pmdcs)
	if b.round.started {
		b.raiseInflightLongtermSlope()
	}
}

// checkProbeRTT is CheckProbeRTT. It reports whether what is sent now is less than the path takes.
func (b *bbr) checkProbeRTT(s *Sample) (limited bool) {
	if b.state != bbrProbeRTT && b.rtt.probeExpired && !b.probeRTT.idleRestart {
		b.state = bbrProbeRTT
		b.saveCwnd()
		b.probeRTT.doneAt = 0
		b.cycle.stopping = true
		b.startRound()
	}
	if b.state == bbrProbeRTT {
		b.handleProbeRTT()
		limited = true
	}
	if s.Volume > 0 {
		b.probeRTT.idleRestart = false
	}
	return limited
}

func (b *bbr) handleProbeRTT() {
	if b.probeRTT.doneAt == 0 && int64(b.progress.inflight) <= b.probeRTTCwnd() {
		b.probeRTT.doneAt = b.now.Add(bbrProbeRTTDuration)
		b.probeRTT.roundDone = false
		b.startRound()
		return
	}
	if b.round.started {
		b.probeRTT.roundDone = true
	}
	if b.probeRTT.roundDone {
		b.checkProbeRTTDone()
	}
}

func (b *bbr) checkProbeRTTDone() {
	if b.probeRTT.doneAt != 0 && b.probeRTT.doneAt.Before(b.now) {
		b.rtt.probeMinStamp = b.now
		b.restoreCwnd()
		b.exitProbeRTT()
	}
}

func (b *bbr) exitProbeRTT() {
	b.resetShortTermModel()
	if b.full.reached {
		b.startProbeBWDown()
		b.startProbeBWCruise()
	} else {
		b.enterStartup()
	}
}
