package reconfig

import (
	"slices"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// NoteRequestSent starts the Re-configuration Timer (section 5.1.1). The request has gone over a
// path with the Host's RTO.
func (m *Machine) NoteRequestSent(now rawio.Time) {
	m.own.state, m.own.isSent = ownWaiting, true
	m.own.timerAt = now.Add(m.host.RTO())
}

// Expiry says what an expiry of the Re-configuration Timer means.
type Expiry uint8

const (
	// NoExpiry: nothing has expired that counts as an error.
	NoExpiry Expiry = iota
	// Unanswered: the request goes again, and error counters count one more (section 5.1.1).
	Unanswered
	// GivenUp: likewise, but it went often enough. The user was told.
	GivenUp
	// TSNsUnknown: likewise, and it was a reset of TSNs. The peer may have performed it, and be
	// with other TSNs. All stays suspended (section 5.1.4, C2): the association has to end.
	TSNsUnknown
)

// HandleTimeout does what is due at now.
func (m *Machine) HandleTimeout(now rawio.Time) Expiry {
	e := m.expire(now)
	if e != TSNsUnknown {
		m.startNext(now)
	}
	return e
}

func (m *Machine) expire(now rawio.Time) Expiry {
	if m.tsnWait.isThere() && now >= m.tsnWait.deniedAt {
		m.answerTSNReset(wire.ReconfigDenied)
	}
	o := &m.own
	if now < o.timerAt || o.timerAt == rawio.Never {
		return NoExpiry
	}
	o.timerAt = rawio.Never
	if o.state == ownCollided {
		o.state = ownSettling
		m.sendIfSettled(now)
		return NoExpiry
	}
	if o.state = ownDue; o.hasAnsweredAll() {
		m.repeatOwn(now)
		return NoExpiry
	}
	if o.expiries++; o.expiries <= m.cfg.MaxTries {
		return Unanswered
	}
	if m.isDead = true; o.find(wire.ParamTSNReset) != nil {
		return TSNsUnknown
	}
	m.failOwn(ErrUnanswered)
	return GivenUp
}

// repeatOwn sends a request again that the peer has answered: "the RE-CONFIG chunk MUST be
// retransmitted but the corresponding error counters MUST NOT be incremented" (section 5.2.7, H2).
// That nobody answers this one is an error again. A peer does not always answer again what it has
// performed.
func (m *Machine) repeatOwn(now rawio.Time) {
	o := &m.own
	o.repeats++
	for i := range o.parts {
		switch p := &o.parts[i]; {
		case p.progress == partInProgress:
			p.progress = partOpen
		case p.progress == partLikely && o.repeats > maxLikelyRepeats:
			if p.progress = partDone; len(o.parts) == 1 { // of two the other was answered, so that both came
				m.doubt = doubtfulRequest{isThere: true, seq: p.seq, count: p.count, chunk: o.chunk}
			}
		}
	}
	m.endIfAnswered(now)
}

// hasAnsweredAll says whether the peer has answered the last chunk: no part waits for a first
// answer to it.
func (o *ownRequest) hasAnsweredAll() bool {
	return !slices.ContainsFunc(o.parts, func(p ownPart) bool { return p.progress == partOpen })
}
