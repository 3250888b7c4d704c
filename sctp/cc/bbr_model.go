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
	if b.signals.lossRoundStart { // AdvanceLatestDeliverySignals
		b.signals.bwLatest, b.signals.inflightLatest, b.signals.lossEvents = s.Rate, int64(s.Volume), 0
	}
	b.boundBWForModel()
	return limited
}

func (b *bbr) updateLatestDeliverySignals(s *Sample) {
	b.signals.lossRoundStart = false
	b.signals.bwLatest = max(b.signals.bwLatest, s.Rate)
	b.signals.inflightLatest = max(b.signals.inflightLatest, int64(s.Volume))
	if s.Valid && s.PriorDelivered >= b.signals.lossRoundDelivered {
		b.signals.lossRoundDelivered, b.signals.lossRoundStart = b.progress.delivered, true
	}
}

// updateCongestionSignals differs from the draft in one point: single losses do not lower the
// short-term bounds. It takes more than LossThresh of what was in flight, and six packets at least:
// where 1 % are lost, chance alone makes 2 % of a hundred. Where losses are not due to congestion,
// the path delivers what is sent. The pace would then follow itself down with each round trip, by
// the margin and what was lost.
func (b *bbr) updateCongestionSignals(s *Sample) {
	b.updateRound(s)
	if s.Rate > 0 && (s.Rate >= b.rate.maxBw || !s.AppLimited) {
		b.rate.maxBwFilter[1] = max(b.rate.maxBwFilter[1], s.Rate)
		b.rate.maxBw = max(b.rate.maxBwFilter[0], b.rate.maxBwFilter[1])
	}
	if !b.signals.lossRoundStart {
		return
	}
	// AdaptLowerBoundsFromCongestion
	if b.signals.lossInRound && !b.state.isProbingBW() && inflightTooHigh(s.Lost, s.TxInFlight) &&
		s.Lost >= bbrFullLossCnt*b.pmdcs {
		b.initLowerBounds()
		b.rate.bwShortterm = max(b.signals.bwLatest, int64(bbrBeta*float64(b.rate.bwShortterm)))
		b.volume.inflightShortterm = max(b.signals.inflightLatest, int64(bbrBeta*float64(b.volume.inflightShortterm)))
	}
	b.signals.lossInRound = false
}

func (b *bbr) initLowerBounds() {
	if b.rate.bwShortterm == unbounded {
		b.rate.bwShortterm = b.rate.maxBw
	}
	if b.volume.inflightShortterm == unbounded {
		b.volume.inflightShortterm = int64(b.cwnd)
	}
}

func (b *bbr) updateRound(s *Sample) {
	b.round.started = s.Valid && s.PriorDelivered >= b.round.nextDelivered
	if b.round.started {
		b.startRound()
		b.round.count++
		b.cycle.roundsSinceUp++
		b.round.cwndLimited, b.round.cwndUsed = b.round.cwndUsed, false
	}
}

func (b *bbr) startRound() { b.round.nextDelivered = b.progress.delivered }

func (b *bbr) updateACKAggregation(s *Sample) {
	expected := octetsAtRate(b.rate.bw, b.now.Sub(b.aggregation.startedAt))
	if b.aggregation.delivered <= expected {
		b.aggregation.delivered, b.aggregation.startedAt, expected = 0, b.now, 0
	}
	b.aggregation.delivered += int64(s.NewlyAcked)
	rounds := uint64(1)
	if b.full.reached {
		rounds = bbrExtraAckedRounds
	}
	extra := min(b.aggregation.delivered-expected, int64(b.cwnd))
	b.aggregation.extraAcked = b.aggregation.filter.update(extra, b.round.count, rounds)
}

func (b *bbr) updateMinRTT(s *Sample) {
	b.rtt.probeExpired = b.now.Sub(b.rtt.probeMinStamp) > bbrProbeRTTInterval
	if s.RTT > 0 && (b.rtt.probeMin == 0 || s.RTT < b.rtt.probeMin || b.rtt.probeExpired) {
		b.rtt.probeMin, b.rtt.probeMinStamp = s.RTT, b.now
	}
	if d := b.rtt.probeMin; d > 0 && (b.rtt.min == 0 || d < b.rtt.min ||
		b.now.Sub(b.rtt.minStamp) > bbrMinRTTFilterLen) {
		b.rtt.min, b.rtt.minStamp = d, b.rtt.probeMinStamp
	}
}

func (b *bbr) boundBWForModel() { b.rate.bw = min(b.rate.maxBw, b.rate.bwShortterm) }

func (b *bbr) resetShortTermModel() {
	b.rate.bwShortterm, b.volume.inflightShortterm = unbounded, unbounded
}

// bdpMultiple is BDPMultiple, at a bandwidth.
func (b *bbr) bdpMultiple(bw int64, gain float64) int64 {
	if b.rtt.min == 0 {
		return int64(b.initialCwnd())
	}
	return int64(gain * float64(bw) * b.rtt.min.Seconds())
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
	bdp := b.bdpMultiple(b.rate.bw, bbrGains[b.state].cwnd)
	b.volume.maxInflight = b.quantizationBudget(bdp + b.aggregation.extraAcked)
}

// targetInflight is the BDP, unless congestion has cut cwnd.
func (b *bbr) targetInflight() int64 { return min(b.bdpMultiple(b.rate.bw, 1), int64(b.cwnd)) }

func (b *bbr) inflightWithHeadroom() int64 {
	headroom := max(int64(b.pmdcs), int64(bbrHeadroom*float64(b.volume.inflightLongterm)))
	return max(b.volume.inflightLongterm-headroom, b.minPipeCwnd())
}

func (b *bbr) probeRTTCwnd() int64 {
	return max(b.bdpMultiple(b.rate.bw, bbrGains[bbrProbeRTT].cwnd), b.minPipeCwnd())
}

// noteLoss is NoteLoss. What there was is saved once for an episode of losses.
func (b *bbr) noteLoss() {
	if !b.signals.lossInRound {
		b.signals.lossInRound, b.signals.lossRoundDelivered = true, b.progress.delivered
	}
	if !b.recovery.isSaved {
		b.saveStateUponLoss()
	}
}

// OnLost is HandleLostPacket.
func (b *bbr) OnLost(now rawio.Time, l *Lost) {
	b.now, b.progress.delivered = now, l.Delivered
	if b.noteLoss(); !l.Adjacent || b.signals.lossEvents == 0 {
		b.signals.lossEvents++
	}
	if !b.cycle.hasSample || !inflightTooHigh(l.Since, l.TxInFlight) {
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
	b.cycle.prevTooHigh = true
	b.cycle.hasSample = false
	if !appLimited {
		b.volume.inflightLongterm = max(txInFlight, int64(bbrBeta*float64(b.targetInflight())))
	}
	if b.state == bbrProbeUp {
		b.recovery.undo.state = bbrProbeUp
		b.startProbeBWDown()
	}
}

// pickProbeWait is PickProbeWait. Its random bits are from the nanosecond in which it happens.
func (b *bbr) pickProbeWait() {
	x := uint64(b.now) + b.progress.delivered
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	x ^= x >> 31
	b.cycle.roundsSinceUp = int64(x & 1)
	b.cycle.wait = bbrProbeWait + time.Duration(x>>1%uint64(time.Second))
}
