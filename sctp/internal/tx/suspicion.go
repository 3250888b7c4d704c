package tx

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/pack"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Failover long before T3-rtx. A path may be silent for as long as a tail-loss probe waits. Then
// the probe is a copy of the earliest chunk in flight there, over another active path (RFC 9260
// section 6.4.1). If its SACK says that nothing has arrived over the old path since, that path is
// suspected. New data leaves it, and what is overdue there goes again elsewhere. The owner asks the
// path by HEARTBEAT. That counts as an error where nothing answers, the probe does not. A path that
// answers carries data again, paced, with the cwnd that it had.

// suspicionLevel is what is thought of an active path.
type suspicionLevel uint8

const (
	pathTrusted   suspicionLevel = iota
	pathOnHold                   // it answers, but was suspected too often recently: used when others are suspected
	pathSuspected                // it does not answer
)

// A path that is suspected again within flapWindow of its return is held for minHold. Each time
// after that it is twice as long, up to maxHold. A path may let HEARTBEATs pass and no data, or a
// peer may answer as it likes. Holding it keeps data from moving back and forth for ever. No path
// is left within suspectInterval of another. Behind a spike that has met both, answers come in any
// order.
const (
	suspectInterval = 500 * time.Millisecond
	flapWindow      = 10 * time.Second
	minHold         = time.Second
	maxHold         = time.Minute
)

// suspicion is what is known about the silence of a path.
type suspicion struct {
	level        suspicionLevel
	sendBlocked  bool          // nothing leaves this host for there
	holdDuration time.Duration // how long it lasts at least
	holdEndAt    rawio.Time    // and until when that is
	resumedAt    rawio.Time    // when the path carried data again
}

// Suspected reports that new data avoids the path although it is active.
func (p *Path) Suspected() bool { return p.suspicion.level != pathTrusted }

// NeedsHeartbeat reports that a HEARTBEAT is to find out whether the path answers.
func (p *Path) NeedsHeartbeat() bool { return p.suspicion.level == pathSuspected }

// HeldUntil returns when a suspected path that answers may carry data again.
func (p *Path) HeldUntil() rawio.Time { return p.suspicion.holdEndAt }

// ConfirmReachable says that the path is reachable.
func (p *Path) ConfirmReachable(now rawio.Time) {
	d := &p.suspicion
	d.sendBlocked = false
	if d.level == pathSuspected { // what is overdue is no more
		if d.level, p.timers.ptoAt = pathOnHold, rawio.Never; p.flight.octets > 0 {
			p.timers.ptoAt = now.Add(p.silenceTimeout())
		}
	}
	if !now.Before(d.holdEndAt) {
		p.ClearSuspicion(now)
	}
}

// ClearSuspicion ends a suspicion: the path has answered, or its state tells more than that.
func (p *Path) ClearSuspicion(now rawio.Time) {
	if p.suspicion.level != pathTrusted {
		p.suspicion.level, p.suspicion.resumedAt, p.suspicion.sendBlocked = pathTrusted, now, false
		p.reordering.recoveryOver = true // what is lost from now on is another loss
	}
}

// MarkFailed says that the path does not answer, which its state says from now on. A suspected one
// has lost what was in flight there.
func (p *Path) MarkFailed(now rawio.Time) {
	if p.suspicion.level == pathSuspected {
		p.cc.OnTimeout(now)
		p.reordering.mayUndo, p.spuriousTimeout.possible = false, false
	}
	p.ClearSuspicion(now)
}

// isUsable reports whether new data may go to p.
func (p *Path) isUsable() bool { return p.trusted() && !p.suspicion.sendBlocked }

func (p *Path) trusted() bool { return p.State == Active && p.suspicion.level == pathTrusted }

// Sever says that nothing leaves this host for p, until it answers or Mend is called. It carries
// DATA only where all paths are like that.
func (p *Path) Sever() { p.suspicion.sendBlocked = true }

// Mend says that packets can leave for p again.
func (p *Path) Mend() { p.suspicion.sendBlocked = false }

// tailProbePath returns the path that a probe takes when p is silent. It is nil if there is none as
// good, or if no HEARTBEAT would ask p.
func (s *Sender) tailProbePath(p *Path) *Path {
	if len(s.paths) == 1 || !p.HeartbeatsOnSuspicion {
		return nil
	}
	if q := s.bestPath(p, avoidPresent); q != p && q.State == Active && q.suspicion.level != pathSuspected {
		return q
	}
	return nil
}

// fillTailProbe appends a copy of the probe's chunk to a packet that goes over the other path. The
// chunk is in flight where it was, so that T3-rtx and error counters stay as they are.
func (s *Sender) fillTailProbe(now rawio.Time, b *pack.Batch, p *Path) int {
	t := s.tailProbe.tsn
	r := s.outstanding.recordOf(t)
	if r.chunkLen() > b.Room() && !(b.Empty() && r.chunkLen() > p.pmdcs) {
		return 0
	}
	s.tailProbe.pending, s.tailProbe.copyStamp = false, stampOf(now)
	s.cancelRTTMeasurement(t)
	long := r.flags & flagLongPacket
	s.appendChunk(b, t, r, p, r.wireFlags|wire.FlagI)
	r.flags = r.flags&^flagLongPacket | long | flagProbeCopied | flagMultiPath
	if !p.fitsChunk(r) {
		p.noteFragmented(now)
	}
	s.tailProbe.longPacket = long != 0
	if s.withheld.isChunk(t) { // it counts as sent, and the path has not lost it
		s.outstanding.applyEvent(onProbeCopy, t, r, s.paths[r.path])
		s.withheld.markSent()
		s.tailProbe.unacked = false
		return 1
	}
	s.countRetransmit(t, r)
	s.stats.Chunks++
	s.stats.Octets += uint64(r.size)
	return 1
}

// isPathSilent reports whether p is to be left. It is if nothing sent there when the probe's chunk
// was, or later, has arrived. It also is if what is in flight should have arrived long ago. One
// lost chunk is no silence where all that was in flight beside it has arrived. It was the last that
// went, or went again, before cwnd was full, and the SACK of the others was lost too.
func (s *Sender) isPathSilent(now rawio.Time, p *Path) bool {
	if p.State != Active || now.Sub(s.recovery.pathSuspectedAt) < suspectInterval {
		return false
	}
	if s.tailProbe.repairedLoss && !p.latestDelivered.isAfter(s.tailProbe.firstStamp, s.tailProbe.tsn) {
		return p.flight.octets > 0 || !s.tailProbe.othersInFlight
	}
	if p.flight.octets == 0 {
		return false
	}
	s.updateFirstInFlight(p)
	r := s.outstanding.recordOf(p.flight.first)
	at := r.sentStamp
	age := time.Duration(stampOf(now)-at) * time.Microsecond
	return p.flight.octets > r.chunkLen() && age >= p.rackTimeout()+s.tailProbe.copyPath.rttEst.srtt &&
		!p.latestDelivered.isAfter(at, p.flight.first)
}

// suspectPath has new data avoid p, which is silent while another path answers.
func (s *Sender) suspectPath(now rawio.Time, p *Path) {
	d := &p.suspicion
	if d.resumedAt == 0 || now.Sub(d.resumedAt) > flapWindow {
		d.holdDuration = 0
	} else {
		d.holdDuration = min(max(2*d.holdDuration, minHold), maxHold)
	}
	if d.level == pathTrusted {
		s.stats.rare().PathsSuspected++
	}
	d.level, d.holdEndAt, s.recovery.pathSuspectedAt = pathSuspected, now.Add(d.holdDuration), now
	if !s.recovery.active { // else that is one reduction already
		s.reduceCwnd(now, p)
		p.reordering.mayUndo = true
	}
	s.recovery.active, s.recovery.bypassCwnd = false, false
	s.retransmitOverdue(now, p)
}

// LeavePath has new data leave p at once, and what is in flight there go again elsewhere: this host
// cannot send there. It returns false where there is no other path, or p was left before.
func (s *Sender) LeavePath(now rawio.Time, p *Path) bool {
	if !p.trusted() || s.tailProbePath(p) == nil {
		return false
	}
	p.Sever()
	s.suspectPath(now, p)
	return true
}

// retransmitOverdue marks what should have arrived over p, which is suspected, to be sent
// elsewhere. It comes back for the rest. Over a path that is cut that is all: a peer that had it
// cannot say so there.
func (s *Sender) retransmitOverdue(now rawio.Time, p *Path) {
	p.timers.ptoAt = rawio.Never
	for n := 0; p.flight.octets > 0; n++ {
		s.updateFirstInFlight(p)
		r := s.outstanding.recordOf(p.flight.first)
		left := 2*p.rackTimeout() - time.Duration(stampOf(now)-r.sentStamp)*time.Microsecond
		if p.suspicion.sendBlocked {
			left = 0
		}
		if left > 0 || n == maxRACKChunks {
			p.timers.ptoAt = now.Add(max(left, minRACKTimeout))
			return
		}
		s.recovery.recordLoss(p.flight.first, p)
		if p.rateSampler != nil {
			s.rateLost(now, p.flight.first, r, p)
		}
		s.outstanding.markLost(p.flight.first, r, p)
		r.flags |= flagTimedOut
	}
	p.timers.t3At = rawio.Never
}
