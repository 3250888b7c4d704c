package reconfig

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// handleResponse takes a Re-configuration Response (section 5.2.7).
func (m *Machine) handleResponse(now rawio.Time, r *parameter) {
	o := &m.own
	if !o.isInFlight() {
		return // "If the timer was not running [...], the processing [...] is complete" (H1)
	}
	if o.recovery == recoveryUnderWay && r.seq == m.doubt.seq {
		m.endRecovery(r)
		return
	}
	for i := range o.parts {
		if p := &o.parts[i]; p.seq == r.seq && p.progress != partDone {
			m.takeResult(now, p, r)
			m.endIfAnswered(now)
			return
		}
	}
}

// takeResult does what a response says of a part of the own request.
func (m *Machine) takeResult(now rawio.Time, p *ownPart, r *parameter) {
	switch {
	case r.result == wire.ReconfigInProgress && !m.becomesStuck(p): // H2: the timer starts again
		p.progress = partInProgress
		m.own.expiries = 0
		m.NoteRequestSent(now)
		return
	case r.result == wire.ReconfigBadSeq && m.recoversFrom(p):
		return
	case (r.result == wire.ReconfigAlreadyInProgress || r.result == wire.ReconfigInProgress) && m.mayCollide(p):
		p.progress = partCollided
		return
	case r.result == wire.ReconfigPerformed && p.kind == wire.ParamTSNReset && !r.hasTSNs:
		m.host.Violate(ErrNoTSNs) // section 5.1.7, D3 and D4
		return
	case r.result == wire.ReconfigNothingToDo && p.kind == wire.ParamTSNReset && !r.hasTSNs:
		m.finishPart(p, &ResultError{r.result})
		return
	}
	m.doubt.isThere = m.doubt.isThere && r.result == wire.ReconfigBadSeq
	err := errorOf(r.result)
	if err == nil {
		m.perform(p, r)
	}
	// What the peer does by a request of its own is reported when that comes.
	if err == nil && r.result == wire.ReconfigPerformed {
		switch p.kind {
		case wire.ParamIncomingReset:
			m.askedReset, m.hasAsked = p.seq, true
			p.progress = partDone
			return
		case wire.ParamAddInStreams:
			if p.progress != partLikely { // else it has come
				m.askedAdd = p.count
			}
			p.progress = partDone
			return
		}
	}
	m.finishPart(p, err)
}

// becomesStuck counts an answer "In progress". It says whether a reset of own streams stays in
// progress for no reason of section 5.2.2: all that the peer has to wait for has come. There are
// peers that perform it then, tell of it once, and repeat the old answer for ever if that is lost.
// It is asked for again, with another number.
func (m *Machine) becomesStuck(p *ownPart) bool {
	if p.kind == wire.ParamOutgoingReset && m.host.IsAcked(m.own.lastTSN) {
		p.stuck++
	}
	return p.stuck >= maxStuck
}

// mayCollide says whether a part goes again that met a request of the peer. Those go that the peer
// can perform by itself. Of two that need each other's turn both end.
func (m *Machine) mayCollide(p *ownPart) bool {
	return (p.kind == wire.ParamOutgoingReset || p.kind == wire.ParamAddOutStreams) && m.own.collisions < maxCollisions
}

// perform does what a successful response stands for (H4 to H6).
func (m *Machine) perform(p *ownPart, r *parameter) {
	switch o := &m.own; p.kind {
	case wire.ParamOutgoingReset:
		m.host.ResetOut(o.streams, o.lastTSN)
	case wire.ParamTSNReset:
		m.own.isFreezing = false
		m.host.RestartTSNs(r.expected, r.next)
	case wire.ParamAddOutStreams:
		m.host.AddOut(p.count)
	}
}

// finishPart ends a part of the own request, and reports it. Messages that it has held go on: "The
// assigning of SSNs is allowed again" (H4).
func (m *Machine) finishPart(p *ownPart, err error) {
	p.progress = partDone
	if p.kind == wire.ParamOutgoingReset || p.kind == wire.ParamTSNReset {
		m.letGo()
	}
	m.reportOwn(p, err)
}

// endIfAnswered ends the own request when all of it is answered. What has collided goes again, with
// another number.
func (m *Machine) endIfAnswered(now rawio.Time) {
	o := &m.own
	collided := false
	for i := range o.parts {
		switch o.parts[i].progress {
		case partOpen, partInProgress, partLikely:
			return
		case partCollided:
			collided = true
		}
	}
	if !collided {
		m.endOwn()
		return
	}
	o.collisions++
	o.state, o.timerAt = ownCollided, now.Add(max(m.host.RTO(), time.Millisecond))
}

// doubtfulRequest is the last own request, if it was not answered for sure: one for streams that
// come in, after which such came. If the peer has never got it, all later requests have the wrong
// number for it.
type doubtfulRequest struct {
	isThere bool
	seq     uint32
	count   int
	chunk   []byte
}

// recovery is how far a request has come whose number was wrong, for that reason.
type recovery uint8

const (
	recoveryNone     recovery = iota
	recoveryUnderWay          // the doubtful request goes first
	recoveryDone              // it was answered: a response to its successor that says otherwise is late
)

// recoversFrom says whether a part of the own request that has the wrong number has it because of
// the doubtful request. That is sent again then.
func (m *Machine) recoversFrom(p *ownPart) bool {
	o := &m.own
	if o.recovery == recoveryNone && m.doubt.isThere && o.parts[0].seq == m.doubt.seq+1 {
		o.recovery, o.state = recoveryUnderWay, ownDue
	}
	return o.recovery != recoveryNone
}

// endRecovery goes on with the own request when the doubtful one is answered.
func (m *Machine) endRecovery(r *parameter) {
	m.own.recovery, m.own.state, m.own.expiries = recoveryDone, ownDue, 0
	if m.doubt.isThere = false; r.result == wire.ReconfigPerformed {
		m.askedAdd = m.doubt.count
	}
}
