package ddpadapt

import "slices"

// turn judges the message whose turn it is in DDP-SSN order: the legal sequences of sections 6.2 to
// 6.4. private is its private data; messages that carry any are the first of their side and never
// wait for an earlier one.
func (s *Session) turn(r *record, private []byte) {
	ssn := s.next
	s.next++
	switch {
	case dead.has(s.state):
		s.lastWord(r)
	case r.fault != 0:
		if s.violate(ssn, r.fault, onFault); s.state == ending {
			s.lastWord(r)
		}
	case finished.has(s.state):
		s.violate(ssn, FaultAfterEnd, onFault)
	case s.state == called:
		s.answered(ssn, r, private)
	case r.fn == 0:
		s.deliver(r)
	case r.fn == terminate:
		s.peerTerminated()
	default:
		s.violate(ssn, FaultControl, onFault)
	}
}

// lastWord takes a message on a session that this side has ended: only what ends the peer's half still
// matters.
func (s *Session) lastWord(r *record) {
	refusal := r.fn.plain() == reject || r.fn == terminate // well formed or not, its side's last message
	h, _ := s.own.(*hearing)
	switch {
	case s.state == canceled:
		if s.opener = nil; refusal {
			s.refused(s.err) // the session is over without a Terminate
		} else {
			s.enter(onAnswered, &hearing{accepted: r.fault == 0 && r.fn.plain() == accept})
		}
	case s.state != ending:
	case h.unanswered && refusal:
		s.allCome(r.fault == 0)
	case r.fn == terminate:
		s.allCome(false)
	default:
		h.unanswered = false
	}
	s.schedule()
}

// allCome takes the peer's last message on a session that this side has ended. A Terminate that has not left is not
// needed where the peer has refused.
func (s *Session) allCome(refusal bool) {
	if refusal && s.bye == due {
		s.bye = unsaid
	}
	s.enter(onPeerTerminate, nil)
}

// answered takes the first message of the passive side.
func (s *Session) answered(ssn uint16, r *record, private []byte) {
	s.opener = nil // whoever answers has the Initiate (section 6.6)
	fn := r.fn.plain()
	var setup *Setup
	switch {
	case fn == initiate || fn == terminate:
	case r.fn.enhanced() != s.enhanced:
		fn = 0 // an Initiate is answered in kind (RFC 6581 section 10)
	case s.enhanced:
		setup, private = splitSetup(private)
	}
	switch fn {
	case accept:
		s.enter(onAccepted, nil)
		s.m.events.push(Event{Kind: EventAccepted, Session: s, Private: slices.Clone(private), Setup: setup})
		if s.bye != unsaid { // its user is done with it already
			s.enter(onFinish, nil)
		}
		s.schedule()
	case reject:
		err := &RejectedError{Private: slices.Clone(private), Setup: setup}
		s.m.events.push(Event{Kind: EventRejected, Session: s, Private: err.Private, Setup: setup, Err: err})
		s.refused(err)
	case terminate:
		err := &TerminatedError{ByPeer: true}
		s.m.events.push(Event{Kind: EventTerminated, Session: s, Err: err})
		s.refused(err)
	case initiate:
		s.violate(ssn, FaultCrossed, onFault)
		s.heard()
	default:
		s.violate(ssn, FaultAnswer, onFault)
		s.heard()
	}
}

// heard notes that the answer has come, though it was none.
func (s *Session) heard() {
	if h, ok := s.own.(*hearing); ok {
		h.unanswered = false
	}
}

// deliver gives a segment to the DDP stream at its turn.
func (s *Session) deliver(r *record) {
	s.ds.Deliver(&r.placed) // after a fault it drops what follows; the upper layer decides what is next
}

// peerTerminated takes the peer's Terminate on a session that it has not answered by it.
func (s *Session) peerTerminated() {
	err := &TerminatedError{ByPeer: true}
	s.m.events.push(Event{Kind: EventTerminated, Session: s, Err: err})
	if s.state == asked {
		// The active side gave up before the upper layer decided; section 6.4 is the way to end it.
		s.kill(err, onFault)
		return
	}
	s.enter(onPeerTerminate, nil)
	if s.ds != nil {
		s.ds.HalfClosed()
	}
}

// violate terminates a session that follows none of the legal sequences (section 6.1). by is onFault, or onLost for a
// message of which it is not known what number it has.
func (s *Session) violate(ssn uint16, f Fault, by trigger) {
	if dead.has(s.state) {
		return
	}
	s.m.stats.Violations++
	s.m.stats.Faults[f]++
	err := &TerminatedError{Cause: &SequenceError{Stream: s.stream, SSN: ssn, Fault: f}}
	s.m.events.push(Event{Kind: EventTerminated, Session: s, Err: err})
	s.kill(err, by)
}
