package tx

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// The tail-loss probe (RFC 8985 section 7): where nothing is heard for longer than round trips
// take, the last chunk in flight is sent again. Its SACK tells what is missing long before T3-rtx.

// minPTO keeps a probe from going out because a timer was late.
const minPTO = 10 * time.Millisecond

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
	if p.flight.octets == 0 || s.tailProbe.unacked || s.window.probing || p.onePacketOnly || p.noRTTSinceProbe ||
		!far && !near {
		p.timers.ptoAt = rawio.Never
		return
	}
	pto, from := p.rttEst.probeTimeout(), p.lastSentAt
	if several {
		pto, from = p.silenceTimeout(), now
	}
	if near {
		pto = max(pto, minT3)
	}
	if s.outstanding.isSinglePacket(p) {
		pto += p.sackDelays.longestDelay()
	}
	if at := max(from.Add(pto), now.Add(max(p.rttEst.srtt/2, minPTO))); anew || at < p.timers.ptoAt {
		p.timers.ptoAt = at
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

// handlePTO sends a probe. Over another path, if there is one, it is the earliest chunk in flight
// to p, for which the peer waits. Else it is the last.
func (s *Sender) handlePTO(now rawio.Time, p *Path) {
	if p.suspicion.level == pathSuspected {
		s.retransmitOverdue(now, p)
		return
	}
	p.timers.ptoAt = rawio.Never
	if s.tailProbe.unacked || p.flight.octets == 0 {
		return
	}
	if s.isSpent(now, p.flight.first) {
		return // what tells of it is a SACK, or T3-rtx
	}
	if q := s.tailProbePath(p); q != nil && !q.waitsToFragment(now, s.outstanding.recordOf(p.flight.first)) {
		r := s.outstanding.recordOf(p.flight.first)
		s.tailProbe = tailProbe{tsn: p.flight.first, pending: true, unacked: true, copyPath: q,
			firstStamp: r.sentStamp, othersInFlight: p.flight.octets > r.chunkLen()}
		s.stats.rare().TailProbes++
		return
	}
	if s.outstanding.numToRetransmit > 0 {
		return
	}
	n := min(s.outstanding.len(), p.flight.tsns.Cap()) // what is in flight is among so many
	t, _ := p.flight.tsns.Last(s.outstanding.firstUnacked+wire.TSN(n)-1, n)
	r := s.outstanding.recordOf(t)
	if p.waitsToFragment(now, r) || s.isSpent(now, t) {
		return // T3-rtx comes no later
	}
	s.tailProbe = tailProbe{tsn: t, pending: true, unacked: r.state != stateWithheld}
	if s.outstanding.isSinglePacket(p) {
		s.tailProbe.singlePacketPath, s.tailProbe.probeDelay = p, now.Sub(p.lastSentAt)
	}
	p.noRTTSinceProbe = true
	s.outstanding.markLost(t, r, p)
	r.flags |= flagFastRetransmitted
	s.recovery.bypassCwnd = true
	s.stats.rare().TailProbes++
	s.updateTimers(p)
}

// observe learns whether the probe's chunk is acknowledged. That comes alone.
func (b *tailProbe) observe(now rawio.Time, c ackedChunks) {
	if b.unacked && c.first == b.tsn {
		b.onAcked(now, c.record, c.path)
	}
}

// onAcked handles the acknowledgement of the probe's chunk. The probe has repaired a loss
// if that answers the probe and not what was sent before. The peer must not have had the chunk
// twice (section 7.4).
func (b *tailProbe) onAcked(now rawio.Time, r *chunkRecord, p *Path) {
	by, at, went := p, r.sentStamp, r.flags&flagResent != 0
	if q := b.copyPath; q != nil {
		by, at, went = q, b.copyStamp, !b.pending
	}
	b.unacked, b.pending = false, false
	if went && stampOf(now)-at >= uint32(by.rttEst.minRTT.get().Microseconds()) {
		b.answeredPath, b.repairedLoss = p, !b.duplicate
	}
}

// onDuplicate learns that the peer has had a chunk twice: that of the probe, maybe.
func (b *tailProbe) onDuplicate(t wire.TSN) {
	if t == b.tsn {
		b.duplicate = true
		b.learnLateSack()
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
			s.recovery.recordLoss(s.tailProbe.tsn, p)
		}
		if s.tailProbe.longPacket {
			p.blackHoleTimeouts++
		}
		s.suspectPath(now, p)
		res.Suspected.add(p.Index())
	case s.tailProbe.repairedLoss && !s.recovery.active:
		s.reduceCwnd(now, p)
	}
}
