package cc

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// updateModelAndState takes a sample. It returns whether the path is slowed down to measure its
// round trip.
func (b *bbr) updateModelAndState(s *Sample) (limited bool) {
	b.updateLatestDeliverySignals(s)
	b.updateCongestionSignals(s)
	b.updateACKAggregation(s)
	b.checkFullBWReached(s)
	b.checkStartupDone(s)
	b.checkDrainDone()
	b.updateProbeBWCyclePhase(s)
	b.updateMinRTT(s)
	limited = b.checkProbeRTT(s)
	if b.lossRoundStart { // AdvanceLatestDeliverySignals
		b.bwLatest, b.inflightLatest, b.lossEvents = s.Rate, int64(s.Volume), 0
	}
	b.boundBWForModel()
	return limited
}

func (b *bbr) updateLatestDeliverySignals(s *Sample) {
	b.lossRoundStart = false
	b.bwLatest = max(b.bwLatest, s.Rate)
	b.inflightLatest = max(b.inflightLatest, int64(s.Volume))
	if s.Valid && s.PriorDelivered >= b.lossRoundDelivered {
		b.lossRoundDelivered, b.lossRoundStart = b.delivered, true
	}
}

// updateCongestionSignals differs from the draft in one point: single losses do not lower the
// short-term bounds. It takes more than LossThresh of what was in flight, and six packets at least:
// where 1 % are lost, chance alone makes 2 % of a hundred. Where losses are not due to congestion,
// the path delivers what is sent. The pace would then follow itself down with each round trip, by
// the margin and what was lost.
func (b *bbr) updateCongestionSignals(s *Sample) {
	b.updateRound(s)
	if s.Rate > 0 && (s.Rate >= b.maxBw || !s.AppLimited) {
		b.maxBwFilter[1] = max(b.maxBwFilter[1], s.Rate)
		b.maxBw = max(b.maxBwFilter[0], b.maxBwFilter[1])
	}
	if !b.lossRoundStart {
		return
	}
	// AdaptLowerBoundsFromCongestion
	if b.lossInRound && !b.state.isProbingBW() && inflightTooHigh(s.Lost, s.TxInFlight) &&
		s.Lost >= bbrFullLossCnt*b.pmdcs {
		b.initLowerBounds()
		b.bwShortterm = max(b.bwLatest, int64(bbrBeta*float64(b.bwShortterm)))
		b.inflightShortterm = max(b.inflightLatest, int64(bbrBeta*float64(b.inflightShortterm)))
	}
	b.lossInRound = false
}

func (b *bbr) initLowerBounds() {
	if b.bwShortterm == unbounded {
		b.bwShortterm = b.maxBw
	}
	if b.inflightShortterm == unbounded {
		b.inflightShortterm = int64(b.cwnd)
	}
}

func (b *bbr) updateRound(s *Sample) {
	b.roundStart = s.Valid && s.PriorDelivered >= b.nextRoundDelivered
	if b.roundStart {
		b.startRound()
		b.roundCount++
		b.roundsSinceProbeUp++
		b.cwndLimited, b.cwndUsed = b.cwndUsed, false
	}
}

func (b *bbr) startRound() { b.nextRoundDelivered = b.delivered }

func (b *bbr) updateACKAggregation(s *Sample) {
	expected := octetsAtRate(b.bw, b.now.Sub(b.extraAckedStart))
	if b.extraAckedDelivered <= expected {
		b.extraAckedDelivered, b.extraAckedStart, expected = 0, b.now, 0
	}
	b.extraAckedDelivered += int64(s.NewlyAcked)
	rounds := uint64(1)
	if b.fullBwReached {
		rounds = bbrExtraAckedRounds
	}
	extra := min(b.extraAckedDelivered-expected, int64(b.cwnd))
	b.extraAcked = b.extraAckedFilter.update(extra, b.roundCount, rounds)
}

func (b *bbr) updateMinRTT(s *Sample) {
	b.probeRTTExpired = b.now.Sub(b.probeRTTMinStamp) > bbrProbeRTTInterval
	if s.RTT > 0 && (b.probeRTTMinDelay == 0 || s.RTT < b.probeRTTMinDelay || b.probeRTTExpired) {
		b.probeRTTMinDelay, b.probeRTTMinStamp = s.RTT, b.now
	}
	if d := b.probeRTTMinDelay; d > 0 && (b.minRTT == 0 || d < b.minRTT ||
		b.now.Sub(b.minRTTStamp) > bbrMinRTTFilterLen) {
		b.minRTT, b.minRTTStamp = d, b.probeRTTMinStamp
	}
}

func (b *bbr) boundBWForModel() { b.bw = min(b.maxBw, b.bwShortterm) }

func (b *bbr) resetShortTermModel() { b.bwShortterm, b.inflightShortterm = unbounded, unbounded }

func (b *bbr) resetCongestionSignals() { b.lossInRound, b.bwLatest, b.inflightLatest = false, 0, 0 }

func (b *bbr) resetFullBW() { b.fullBw, b.fullBwCount, b.fullBwNow = 0, 0, false }

// bdpMultiple is BDPMultiple, at a bandwidth.
func (b *bbr) bdpMultiple(bw int64, gain float64) int64 {
	if b.minRTT == 0 {
		return int64(b.initialCwnd())
	}
	return int64(gain * float64(bw) * b.minRTT.Seconds())
}

// inflightAt is Inflight, at a bandwidth.
func (b *bbr) inflightAt(bw int64, gain float64) int64 {
	return b.quantizationBudget(b.bdpMultiple(bw, gain))
}

func (b *bbr) quantizationBudget(limit int64) int64 {
	limit = max(limit, b.sendQuantum(), b.minPipeCwnd())
	if b.state == bbrProbeUp {
		limit += 2 * int64(b.pmdcs)
	}
	return limit
}

func (b *bbr) updateMaxInflight() {
	b.maxInflight = b.quantizationBudget(b.bdpMultiple(b.bw, bbrGains[b.state].cwnd) + b.extraAcked)
}

// targetInflight is the BDP, unless congestion has cut cwnd.
func (b *bbr) targetInflight() int64 { return min(b.bdpMultiple(b.bw, 1), int64(b.cwnd)) }

func (b *bbr) inflightWithHeadroom() int64 {
	headroom := max(int64(b.pmdcs), int64(bbrHeadroom*float64(b.inflightLongterm)))
	return max(b.inflightLongterm-headroom, b.minPipeCwnd())
}

func (b *bbr) probeRTTCwnd() int64 {
	return max(b.bdpMultiple(b.bw, bbrGains[bbrProbeRTT].cwnd), b.minPipeCwnd())
}

// noteLoss is NoteLoss. What there was is saved once for an episode of losses.
func (b *bbr) noteLoss() {
	if !b.lossInRound {
		b.lossInRound, b.lossRoundDelivered = true, b.delivered
	}
	if !b.undoSaved {
		b.saveStateUponLoss()
	}
}

// OnLost is HandleLostPacket.
func (b *bbr) OnLost(now rawio.Time, l *Lost) {
	b.now, b.delivered = now, l.Delivered
	if b.noteLoss(); !l.Adjacent || b.lossEvents == 0 {
		b.lossEvents++
	}
	if !b.bwProbeSample || !inflightTooHigh(l.Since, l.TxInFlight) {
		return
	}
	b.handleInflightTooHigh(inflightAtLoss(l), l.AppLimited)
}

// inflightTooHigh is IsInflightTooHigh.
func inflightTooHigh(lost, txInFlight int) bool {
	return float64(lost) > bbrLossThresh*float64(txInFlight)
}

// inflightAtLoss is InflightAtLoss: how much was in flight when losses crossed LossThresh, which
// may be inside the chunk.
func inflightAtLoss(l *Lost) int64 {
	inflight, lost := float64(l.TxInFlight-l.Octets), float64(l.Since-l.Octets)
	return int64(inflight + (bbrLossThresh*inflight-lost)/(1-bbrLossThresh))
}

func (b *bbr) handleInflightTooHigh(txInFlight int64, appLimited bool) {
	b.prevProbeTooHigh = true
	b.bwProbeSample = false
	if !appLimited {
		b.inflightLongterm = max(txInFlight, int64(bbrBeta*float64(b.targetInflight())))
	}
	if b.state == bbrProbeUp {
		b.undoState.state = bbrProbeUp
		b.startProbeBWDown()
	}
}

// pickProbeWait is PickProbeWait. Its random bits are from the nanosecond in which it happens.
func (b *bbr) pickProbeWait() {
	x := uint64(b.now) + b.delivered
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	x ^= x >> 31
	b.roundsSinceProbeUp = int64(x & 1)
	b.bwProbeWait = bbrProbeWait + time.Duration(x>>1%uint64(time.Second))
}
