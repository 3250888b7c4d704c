package tx

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// RACK-TLP (RFC 8985), over the paths whose packets are spread. RACK: a chunk is lost if one sent
// later has arrived, and it left more than a round trip and a little ago. That holds also for one
// that was sent again. TLP: where nothing is heard for longer than round trips take, the last chunk
// in flight is sent again. Its SACK tells what is missing long before T3-rtx.
const (
	// minRACKTimeout is the shortest time that the timer of RACK runs, and maxRACKChunks how many
	// chunks it looks at.
	minRACKTimeout = time.Millisecond
	maxRACKChunks  = maxSliceSteps
	// minPTO keeps a probe from going out because a timer was late.
	minPTO = 10 * time.Millisecond
)

// isFarPath reports whether the round trip of p is long enough for pacing, RACK and TLP: timers are
// finer than it. In strict RFC mode there are only Max.Burst, miss indications and T3-rtx.
func (s *Sender) isFarPath(p *Path) bool {
	return !s.cfg.StrictRFC && p.IsFar()
}

// rackTimeLeft returns how much of its reordering window a loss-eligible chunk still has. known: a
// chunk sent later to the same path has arrived. Other paths do not count, as their round trips
// differ. Reneged chunks are left to miss indications: it is not known when they were in flight.
func (s *Sender) rackTimeLeft(now rawio.Time, t wire.TSN, r *chunkRecord) (left time.Duration, known bool) {
	p := s.paths[r.path]
	if !p.latestDelivered.isAfter(r.sentStamp, t) || !s.isFarPath(p) || s.overRetransmitBudget() ||
		r.state == stateReneged {
		return 0, false
	}
	return p.rackTimeout() - time.Duration(stampOf(now)-r.sentStamp)*time.Microsecond, true
}

// armRACK starts the timer for the first loss-eligible chunk.
func (s *Sender) armRACK(now rawio.Time) {
	s.rackAt = rawio.Never
	if t, ok := s.outstanding.lossEligible.Next(s.outstanding.firstUnacked, s.outstanding.len()); ok {
		if left, known := s.rackTimeLeft(now, t, s.outstanding.recordOf(t)); known {
			s.rackAt = now.Add(max(left, minRACKTimeout))
		}
	}
}

// handleRACKTimeout marks what has been missing for too long.
func (s *Sender) handleRACKTimeout(now rawio.Time) {
	var lost PathSet
	g, next := &s.outstanding, rawio.Never
	t, ok := g.lossEligible.Next(g.firstUnacked, g.len())
	for n := 0; ok && n < maxRACKChunks; n++ {
		*s.steps++
		r := g.recordOf(t)
		switch left, known := s.rackTimeLeft(now, t, r); {
		case !known:
		case left <= 0:
			s.declareLost(now, t, r, &lost)
		default:
			next = min(next, now.Add(max(left, minRACKTimeout)))
		}
		t, ok = g.nextInSet(&g.lossEligible, t)
	}
	if s.rackAt = next; ok {
		s.rackAt = min(next, now.Add(minRACKTimeout))
	}
	s.enterFastRecovery(now, lost)
	for _, p := range s.paths {
		s.updateTimers(p)
	}
}

// armPTO starts the timer of the tail-loss probe when DATA was sent to p (RFC 8985 section 7.2).
// With anew, some was acknowledged. What is sent to a silent path does not put the probe off. There
// is one probe at a time, and then T3-rtx, until a round trip has been measured again (section
// 7.3). It may have become longer. There is none while one packet is all that may be in flight.
// Fast Recovery has a probe too, as in RFC 9002. What was sent again may be lost again, and nothing
// behind it would tell.
func (s *Sender) armPTO(now rawio.Time, p *Path, anew bool) {
	if p.suspicion.level == pathSuspected {
		return // see retransmitOverdue
	}
	far, several := s.isFarPath(p), p.HeartbeatsOnSuspicion && len(s.paths) > 1
	near := several && !s.cfg.StrictRFC && p.minRTTBelow(nearRTT)
	if p.flightSize == 0 || s.tailProbe.unacked || s.zeroWindowProbing || p.onePacketOnly || p.noRTTSinceProbe ||
		!far && !near {
		p.ptoAt = rawio.Never
		return
	}
	pto, from := p.rttEst.probeTimeout(), p.lastSentAt
	if several {
		pto, from = p.silenceTimeout(), now
	}
	if near {
		pto = max(pto, minT3)
	}
	if s.singlePacketInFlight(p) {
		pto += p.sackDelays.longestDelay()
	}
	if at := max(from.Add(pto), now.Add(max(p.rttEst.srtt/2, minPTO))); anew || at < p.ptoAt {
		p.ptoAt = at
	}
}

// probeTimeout is PTO: how long the SACK for DATA usually takes at most. RFC 8985 section 7.2 has
// two round trips, as they may vary. RFC 9002 section 6.2.1 counts how much they do. Where that is
// little a probe can go sooner, but a quarter of a round trip is allowed for in any case.
func (e *rttEstimator) probeTimeout() time.Duration {
	return max(e.srtt+min(max(4*e.rttvar, e.srtt/4), e.srtt), minPTO)
}

// silenceTimeout is how long a silence lasts before a probe where a path may be left. It is two
// round trips, or longer where they vary, as behind a spike.
func (p *Path) silenceTimeout() time.Duration {
	return max(2*p.rttEst.srtt, p.rttEst.srtt+4*p.rttEst.rttvar, minPTO)
}

// singlePacketInFlight reports whether all that is in flight to p is one packet, whose SACK may be
// delayed.
func (s *Sender) singlePacketInFlight(p *Path) bool {
	return p.flightSize <= p.pmdcs && stampOf(p.lastSentAt) == s.outstanding.recordOf(p.firstInFlight).sentStamp
}

// tailProbe is the tail-loss probe.
type tailProbe struct {
	tsn          wire.TSN
	pending      bool  // it goes whatever cwnd is; over the same path it is marked
	unacked      bool  // it has been sent, or is about to be, and is not acknowledged
	duplicate    bool  // the SACK in processing lists it as duplicate
	repairedLoss bool  // it has repaired a loss
	answeredPath *Path // it was about this one, and is answered by the SACK in processing

	copyPath              *Path  // the other path that a copy takes, or nil
	firstStamp, copyStamp uint32 // then: stamps of the chunk and of its copy

	singlePacketPath *Path         // else, if it was about a lone packet, where that went,
	probeDelay       time.Duration // and how long before the probe
	longPacket       bool          // with copyPath: the chunk was in a packet longer than Path.BasePMTU
	othersInFlight   bool          // and more than the chunk was in flight
}

// handlePTO sends a probe. Over another path, if there is one, it is the earliest chunk in flight
// to p, for which the peer waits. Else it is the last.
func (s *Sender) handlePTO(now rawio.Time, p *Path) {
	if p.suspicion.level == pathSuspected {
		s.retransmitOverdue(now, p)
		return
	}
	p.ptoAt = rawio.Never
	if s.tailProbe.unacked || p.flightSize == 0 {
		return
	}
	if q := s.tailProbePath(p); q != nil && !q.waitsToFragment(now, s.outstanding.recordOf(p.firstInFlight)) {
		r := s.outstanding.recordOf(p.firstInFlight)
		s.tailProbe = tailProbe{tsn: p.firstInFlight, pending: true, unacked: true, copyPath: q,
			firstStamp: r.sentStamp, othersInFlight: p.flightSize > r.chunkLen()}
		s.rareStats().TailProbes++
		return
	}
	if s.outstanding.numToRetransmit > 0 {
		return
	}
	n := min(s.outstanding.len(), p.inFlightTSNs.Cap()) // what is in flight is among so many
	t, _ := p.inFlightTSNs.Last(s.outstanding.firstUnacked+wire.TSN(n)-1, n)
	r := s.outstanding.recordOf(t)
	if p.waitsToFragment(now, r) {
		return // T3-rtx comes no later
	}
	s.tailProbe = tailProbe{tsn: t, pending: true, unacked: r.state != stateWithheld}
	if s.singlePacketInFlight(p) {
		s.tailProbe.singlePacketPath, s.tailProbe.probeDelay = p, now.Sub(p.lastSentAt)
	}
	p.noRTTSinceProbe = true
	s.outstanding.markLost(t, r, p)
	r.flags |= flagFastRetransmitted
	s.bypassCwnd = true
	s.rareStats().TailProbes++
	s.updateTimers(p)
}

// onTailProbeAcked handles the acknowledgement of the probe's chunk. The probe has repaired a loss
// if that answers the probe and not what was sent before. The peer must not have had the chunk
// twice (section 7.4).
func (s *Sender) onTailProbeAcked(now rawio.Time, t wire.TSN, r *chunkRecord, p *Path) {
	if !s.tailProbe.unacked || t != s.tailProbe.tsn {
		return
	}
	by, at, went := p, r.sentStamp, r.flags&flagResent != 0
	if q := s.tailProbe.copyPath; q != nil {
		by, at, went = q, s.tailProbe.copyStamp, !s.tailProbe.pending
	}
	s.tailProbe.unacked, s.tailProbe.pending = false, false
	if went && stampOf(now)-at >= uint32(by.rttEst.minRTT.get().Microseconds()) {
		s.tailProbe.answeredPath, s.tailProbe.repairedLoss = p, !s.tailProbe.duplicate
	}
}

// onProbeRepair reacts to a loss that only the probe has shown, as to any other. A path that is
// silent although another answers is left.
func (s *Sender) onProbeRepair(now rawio.Time, res *Result) {
	p := s.tailProbe.answeredPath
	s.tailProbe.answeredPath = nil
	switch {
	case p == nil:
	case s.tailProbe.copyPath != nil && s.isPathSilent(now, p):
		if s.tailProbe.repairedLoss {
			s.recordLoss(s.tailProbe.tsn, p)
		}
		if s.tailProbe.longPacket {
			p.blackHoleTimeouts++
		}
		s.suspectPath(now, p)
		res.Suspected.add(p.Index())
	case s.tailProbe.repairedLoss && !s.inRecovery:
		s.reduceCwnd(now, p)
	}
}
