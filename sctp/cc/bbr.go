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
	bbrQueueGrowth    = 1.1  // one less of a probe if only the round trip has grown by so much
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
	*b = bbr{pmdcs: b.pmdcs, volume: bbrVolume{inflightLongterm: unbounded}}
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
		b.round.cwndUsed, b.round.cwndLimited = true, true
	}
}

// OnAck does nothing: OnSample says it better.
func (b *bbr) OnAck(rawio.Time, Ack) {}

// OnSample is UpdateOnACK.
func (b *bbr) OnSample(now rawio.Time, s *Sample) (limited bool) {
	b.now, b.progress.delivered, b.progress.inflight = now, s.Delivered, s.Inflight
	if !b.progress.hasSample {
		b.progress.hasSample = true
		b.rtt.probeMinStamp = now
		b.progress.initialDelivered = s.Delivered - uint64(s.NewlyAcked)
	}
	if s.SRTT > 0 { // which matters until there is a rate
		b.pacingRate = b.PacingRate(s.SRTT)
	}
	if b.recovery.active && !s.Recovery {
		b.restoreCwnd()
	}
	if b.recovery.active = s.Recovery; !b.recovery.active {
		b.recovery.isSaved = false
	}
	limited = b.updateModelAndState(s)
	b.setPacingRate(bbrGains[b.state].pacing)
	b.setCwnd(s)
	return limited
}

// OnRestart is HandleRestartFromIdle.
func (b *bbr) OnRestart(now rawio.Time) {
	b.now, b.probeRTT.idleRestart, b.aggregation.startedAt = now, true, now
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
	b.recovery.active = true
}

// OnTimeout is OnEnterRTO.
func (b *bbr) OnTimeout(now rawio.Time) {
	b.noteLoss()
	b.saveCwnd()
	b.recovery.active = true
	b.cwnd = b.pmdcs
}

// OnECN takes a mark for congestion, as the draft demands without saying how. While BBR tries for
// more, a mark counts as losses above LossThresh. Else the short-term bounds fall to what RFC 8511
// leaves of CUBIC's window. The delivery rate does not lower them, as nothing is missing from it.
func (b *bbr) OnECN(now rawio.Time) {
	b.now = now
	b.noteLoss()
	b.recovery.undoable = false
	switch {
	case b.state == bbrStartup:
		b.exitStartup()
	case b.state == bbrProbeRefill || b.state == bbrProbeUp:
		b.handleInflightTooHigh(int64(b.progress.inflight), false)
	default:
		b.initLowerBounds()
		b.rate.bwShortterm = int64(bbrECNBeta * float64(min(b.rate.bwShortterm, max(b.rate.bw, 1))))
		inflight := min(b.volume.inflightShortterm, int64(b.cwnd))
		b.volume.inflightShortterm = max(int64(bbrECNBeta*float64(inflight)), b.minPipeCwnd())
	}
	b.boundBWForModel()
	b.setPacingRate(bbrGains[b.state].pacing)
	b.boundCwndForModel()
}

// Undo is HandleSpuriousLossDetection.
func (b *bbr) Undo(now rawio.Time) {
	if !b.recovery.undoable {
		return
	}
	b.restoreCwnd()
	b.signals.lossInRound, b.recovery.undoable = false, false
	b.full.reset()
	u := b.recovery.undo
	b.rate.bwShortterm = max(b.rate.bwShortterm, u.bwShortterm)
	b.volume.inflightShortterm = max(b.volume.inflightShortterm, u.inflightShortterm)
	b.volume.inflightLongterm = max(b.volume.inflightLongterm, u.inflightLongterm)
	b.recovery.undo.state = bbrNone
	switch {
	case u.state == bbrStartup && b.state != bbrStartup:
		if b.full.reached = false; b.state != bbrProbeRTT {
			b.enterStartup()
		}
	case u.state == bbrProbeUp && b.state != bbrProbeUp && b.state != bbrProbeRTT:
		b.startProbeBWRefill()
	}
}

func (b *bbr) saveStateUponLoss() {
	b.saveCwnd()
	b.recovery.isSaved, b.recovery.undoable = true, true
	b.recovery.undo = bbrUndo{bbrNone, b.rate.bwShortterm, b.volume.inflightShortterm, b.volume.inflightLongterm}
}

func (b *bbr) saveCwnd() {
	if !b.recovery.active && b.state != bbrProbeRTT {
		b.recovery.priorCwnd = b.cwnd
	} else {
		b.recovery.priorCwnd = max(b.recovery.priorCwnd, b.cwnd)
	}
}

func (b *bbr) restoreCwnd() { b.cwnd = max(b.cwnd, b.recovery.priorCwnd) }

// setPacingRate is SetPacingRateWithGain. Until the pipe was full once the pace only grows.
func (b *bbr) setPacingRate(gain float64) {
	r := int64(gain * float64(b.rate.bw) * (1 - bbrPacingMargin))
	if r > 0 && (b.full.reached || r > b.pacingRate) {
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
	if grown := b.cwnd + s.NewlyAcked; b.full.reached {
		b.cwnd = int(min(int64(grown), b.volume.maxInflight))
	} else if int64(b.cwnd) < b.volume.maxInflight ||
		b.progress.delivered-b.progress.initialDelivered < uint64(b.initialCwnd()) {
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
		limit = b.volume.inflightLongterm
	}
	limit = max(min(limit, b.volume.inflightShortterm), b.minPipeCwnd())
	b.cwnd = int(min(int64(b.cwnd), limit, math.MaxInt32))
}
