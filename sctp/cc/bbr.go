package cc

import (
	"math"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// Constants of draft-ietf-ccwg-bbr, by its names. Gains are with the states.
const (
	bbrPacingMargin = 0.01 // BBR.PacingMarginPercent
	bbrLossThresh   = 0.02 // of what a round trip carries may be lost while more is tried
	bbrBeta         = 0.7  // what is left at least of a bound after a round trip with losses
	// what is left after a congestion mark, for which the draft has no number: see OnECN
	bbrECNBeta        = 0.85
	bbrHeadroom       = 0.15 // of inflight_longterm is left to others
	bbrMinPipePackets = 4    // packets in flight at least (BBR.MinPipeCwnd)
	bbrFullGrowth     = 1.25 // a round trip that delivers so much more has not filled the pipe,
	bbrFullRounds     = 3    // and so many that do not have
	// ranges of TSNs lost in a round trip end Startup; so many packets lower the pace
	bbrFullLossCnt      = 6
	bbrDrainRounds      = 3                      // round trips that Drain takes at most
	bbrMaxBwFilterLen   = 2                      // cycles of ProbeBW, the present one included
	bbrExtraAckedRounds = 10                     // BBR.ExtraAckedFilterLen, 1 in Startup
	bbrProbeWait        = 2 * time.Second        // between two probes for more, and at random up to a second more,
	bbrRenoRounds       = 63                     // or so many round trips, or as many as packets in flight
	bbrMinRTTFilterLen  = 10 * time.Second       //
	bbrProbeRTTInterval = 5 * time.Second        //
	bbrProbeRTTDuration = 200 * time.Millisecond //
	// BBR.send_quantum is what the pace allows in it, two packets at least, 64 KiB at most
	bbrQuantumTime = time.Millisecond
	bbrMaxQuantum  = 64 << 10
)

// unbounded is the draft's Infinity of volumes and rates.
const unbounded = math.MaxInt64 / 4

// bbr is BBR version 3 (draft-ietf-ccwg-bbr). Its model of the path is the most that it delivers
// (max_bw) and the shortest round trip (min_rtt). It paces by the first, and has no more in flight
// than about twice what both make up. Single losses do not slow it down, losses above LossThresh
// do. Fields and methods have the draft's names. Volumes are octets of DATA chunks, rates octets of
// them a second.
type bbr struct {
	pmdcs     int        // C.SMSS
	now       rawio.Time // of the event in processing
	hasSample bool       // there was a sample

	// Output control parameters.
	cwnd       int
	pacingRate int64 // C.pacing_rate, 0 until there is a sample

	// General state.
	state              bbrState
	delivered          uint64 // C.delivered
	inflight           int    // C.inflight
	roundCount         uint64
	roundStart         bool
	nextRoundDelivered uint64
	idleRestart        bool
	drainStartRound    uint64
	cwndLimited        bool // C.is_cwnd_limited: cwnd was used up in the last round trip
	cwndUsed           bool // or in this one
	initialDelivered   uint64

	// The model: data rate.
	maxBw       int64
	maxBwFilter [bbrMaxBwFilterLen]int64 // of each cycle, the present one last
	bwShortterm int64
	bw          int64

	// The model: data volume.
	minRTT                 time.Duration // 0: none yet, the draft's Infinity
	minRTTStamp            rawio.Time
	inflightLongterm       int64
	inflightShortterm      int64
	extraAcked             int64
	extraAckedFilter       maxFilter
	extraAckedStart        rawio.Time
	extraAckedDelivered    int64
	maxInflight            int64
	probeRTTMinDelay       time.Duration // 0: none yet
	probeRTTMinStamp       rawio.Time
	probeRTTExpired        bool
	probeRTTDoneAt         rawio.Time // 0: not due
	probeRTTRoundDone      bool
	priorCwnd              int
	lossRoundDelivered     uint64
	lossRoundStart         bool
	lossInRound            bool
	lossEvents             int // ranges lost in the round trip
	bwLatest               int64
	inflightLatest         int64
	fullBw                 int64
	fullBwCount            int
	fullBwNow              bool
	fullBwReached          bool
	probeStopping          bool // BBR.ack_phase is ACKS_PROBE_STOPPING: its other values say nothing
	bwProbeSample          bool
	bwProbeUpAcked         int64
	probeUpAckedPerInc     int64
	bwProbeUpRounds        int
	roundsSinceProbeUp     int64
	bwProbeWait            time.Duration
	cycleStamp             rawio.Time
	prevProbeTooHigh       bool
	prevProbePrecautionary bool
	inRecovery             bool // losses are being repaired
	undoSaved              bool // and what there was before is in undo,
	undoable               bool // from which it may be restored
	undoState              bbrUndo
}

// bbrUndo is the state before an episode of losses.
type bbrUndo struct {
	state             bbrState // that was left because of it: Startup or ProbeBW_UP, else none
	bwShortterm       int64
	inflightShortterm int64
	inflightLongterm  int64
}

// NewBBR returns a BBR controller, version 3 (draft-ietf-ccwg-bbr). It fills paths that lose up to
// about 2 % of the packets for other reasons than congestion. It keeps queues short where no other
// controller fills them.
func NewBBR(pmdcs int, ipv6 bool) Controller {
	b := &bbr{pmdcs: pmdcs}
	b.Reset()
	return b
}

// Reset is OnInit. Times are set with the first sample.
func (b *bbr) Reset() {
	*b = bbr{pmdcs: b.pmdcs, inflightLongterm: unbounded}
	b.cwnd = b.initialCwnd()
	b.resetShortTermModel()
	b.enterStartup()
}

// initialCwnd is C.InitialCwnd (RFC 6928).
func (b *bbr) initialCwnd() int { return min(10*b.pmdcs, max(2*b.pmdcs, initialCwndRFC6928)) }

func (b *bbr) Window() int { return b.cwnd }

// Ssthresh: there is none.
func (b *bbr) Ssthresh() int { return math.MaxInt32 }

func (b *bbr) SetPMDCS(octets int) { b.pmdcs = octets }

// PacingRate returns C.pacing_rate: before there is a sample, what InitPacingRate says.
func (b *bbr) PacingRate(srtt time.Duration) int64 {
	if b.pacingRate > 0 {
		return b.pacingRate
	}
	if srtt <= 0 {
		srtt = time.Millisecond
	}
	return octetsPerSecond(bbrGains[bbrStartup].pacing*float64(b.initialCwnd()), srtt)
}

// octetsPerSecond returns how many octets a second so many in a time are.
func octetsPerSecond(octets float64, in time.Duration) int64 {
	return int64(min(octets*float64(time.Second)/float64(in), unbounded))
}

// octetsAtRate returns how many octets pass at a rate in a time.
func octetsAtRate(rate int64, d time.Duration) int64 { return int64(float64(rate) * d.Seconds()) }

// OnSent notes whether cwnd is used up.
func (b *bbr) OnSent(_ rawio.Time, _, flight int) {
	if flight >= b.cwnd {
		b.cwndUsed, b.cwndLimited = true, true
	}
}

// OnAck does nothing: OnSample says it better.
func (b *bbr) OnAck(rawio.Time, Ack) {}

// OnSample is UpdateOnACK.
func (b *bbr) OnSample(now rawio.Time, s *Sample) (limited bool) {
	b.now, b.delivered, b.inflight = now, s.Delivered, s.Inflight
	if !b.hasSample {
		b.hasSample = true
		b.probeRTTMinStamp = now
		b.initialDelivered = s.Delivered - uint64(s.NewlyAcked)
	}
	if s.SRTT > 0 { // which matters until there is a rate
		b.pacingRate = b.PacingRate(s.SRTT)
	}
	if b.inRecovery && !s.Recovery {
		b.restoreCwnd()
	}
	if b.inRecovery = s.Recovery; !b.inRecovery {
		b.undoSaved = false
	}
	limited = b.updateModelAndState(s)
	b.setPacingRate(bbrGains[b.state].pacing)
	b.setCwnd(s)
	return limited
}

// OnRestart is HandleRestartFromIdle.
func (b *bbr) OnRestart(now rawio.Time) {
	b.now, b.idleRestart, b.extraAckedStart = now, true, now
	if b.state.inProbeBWState() {
		b.setPacingRate(1)
	} else if b.state == bbrProbeRTT {
		b.checkProbeRTTDone()
	}
}

// OnIdle forgets a path of which nothing was heard for minutes. A shorter silence leaves the model
// as it is.
func (b *bbr) OnIdle(now, since rawio.Time, _ int) {
	if now.Sub(since) > cwndLifetime {
		b.Reset()
	}
}

// OnLoss is OnEnterFastRecovery, and for the loss that a probe has repaired.
func (b *bbr) OnLoss(now rawio.Time) {
	b.noteLoss()
	b.inRecovery = true
}

// OnTimeout is OnEnterRTO.
func (b *bbr) OnTimeout(now rawio.Time) {
	b.noteLoss()
	b.saveCwnd()
	b.inRecovery = true
	b.cwnd = b.pmdcs
}

// OnECN takes a mark for congestion, as the draft demands without saying how. While BBR tries for
// more, a mark counts as losses above LossThresh. Else the short-term bounds fall to what RFC 8511
// leaves of CUBIC's window. The delivery rate does not lower them, as nothing is missing from it.
func (b *bbr) OnECN(now rawio.Time) {
	b.now = now
	b.noteLoss()
	b.undoable = false
	switch {
	case b.state == bbrStartup:
		b.exitStartup()
	case b.state == bbrProbeRefill || b.state == bbrProbeUp:
		b.handleInflightTooHigh(int64(b.inflight), false)
	default:
		b.initLowerBounds()
		b.bwShortterm = int64(bbrECNBeta * float64(min(b.bwShortterm, max(b.bw, 1))))
		b.inflightShortterm = max(int64(bbrECNBeta*float64(min(b.inflightShortterm, int64(b.cwnd)))), b.minPipeCwnd())
	}
	b.boundBWForModel()
	b.setPacingRate(bbrGains[b.state].pacing)
	b.boundCwndForModel()
}

// Undo is HandleSpuriousLossDetection.
func (b *bbr) Undo(now rawio.Time) {
	if !b.undoable {
		return
	}
	b.restoreCwnd()
	b.lossInRound, b.undoable = false, false
	b.resetFullBW()
	u := b.undoState
	b.bwShortterm = max(b.bwShortterm, u.bwShortterm)
	b.inflightShortterm = max(b.inflightShortterm, u.inflightShortterm)
	b.inflightLongterm = max(b.inflightLongterm, u.inflightLongterm)
	b.undoState.state = bbrNone
	switch {
	case u.state == bbrStartup && b.state != bbrStartup:
		if b.fullBwReached = false; b.state != bbrProbeRTT {
			b.enterStartup()
		}
	case u.state == bbrProbeUp && b.state != bbrProbeUp && b.state != bbrProbeRTT:
		b.startProbeBWRefill()
	}
}

func (b *bbr) saveStateUponLoss() {
	b.saveCwnd()
	b.undoSaved, b.undoable = true, true
	b.undoState = bbrUndo{bbrNone, b.bwShortterm, b.inflightShortterm, b.inflightLongterm}
}

func (b *bbr) saveCwnd() {
	if !b.inRecovery && b.state != bbrProbeRTT {
		b.priorCwnd = b.cwnd
	} else {
		b.priorCwnd = max(b.priorCwnd, b.cwnd)
	}
}

func (b *bbr) restoreCwnd() { b.cwnd = max(b.cwnd, b.priorCwnd) }

// setPacingRate is SetPacingRateWithGain. Until the pipe was full once the pace only grows.
func (b *bbr) setPacingRate(gain float64) {
	r := int64(gain * float64(b.bw) * (1 - bbrPacingMargin))
	if r > 0 && (b.fullBwReached || r > b.pacingRate) {
		b.pacingRate = r
	}
}

// sendQuantum is C.send_quantum, and BBR.offload_budget.
func (b *bbr) sendQuantum() int64 {
	return max(min(octetsAtRate(b.pacingRate, bbrQuantumTime), bbrMaxQuantum), 2*int64(b.pmdcs))
}

func (b *bbr) minPipeCwnd() int64 { return bbrMinPipePackets * int64(b.pmdcs) }

func (b *bbr) setCwnd(s *Sample) {
	b.updateMaxInflight()
	if grown := b.cwnd + s.NewlyAcked; b.fullBwReached {
		b.cwnd = int(min(int64(grown), b.maxInflight))
	} else if int64(b.cwnd) < b.maxInflight || b.delivered-b.initialDelivered < uint64(b.initialCwnd()) {
		b.cwnd = grown
	}
	b.cwnd = max(b.cwnd, int(b.minPipeCwnd()))
	if b.state == bbrProbeRTT {
		b.cwnd = min(b.cwnd, int(b.probeRTTCwnd()))
	}
	b.boundCwndForModel()
}

func (b *bbr) boundCwndForModel() {
	limit := int64(unbounded)
	switch {
	case b.state == bbrProbeCruise || b.state == bbrProbeRTT:
		limit = b.inflightWithHeadroom()
	case b.state.inProbeBWState():
		limit = b.inflightLongterm
	}
	limit = max(min(limit, b.inflightShortterm), b.minPipeCwnd())
	b.cwnd = int(min(int64(b.cwnd), limit, math.MaxInt32))
}
