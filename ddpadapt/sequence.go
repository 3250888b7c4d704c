package ddpadapt

import "slices"

// turn judges the message whose turn it is in DDP-SSN order: the legal sequences of sections 6.2 to
// 6.4. private is its private data; messages that carry any are the first of their side and never
// wait for an earlier one.
func (s *Session) turn(r *record, private []byte) {
	ssn := s.next
	s.next++
	switch {
	case s.dead:
		s.lastWord(r)
	case r.fault != 0:
		s.violate(ssn, r.fault)
	case s.in == done:
		s.violate(ssn, FaultAfterEnd)
	case s.in == answering:
		s.answered(ssn, r, private)
	case r.fn == 0:
		s.deliver(r)
	case r.fn == terminate:
		s.peerTerminated()
	default:
		s.violate(ssn, FaultControl)
	}
}

// lastWord takes a message on a session that this side has ended: only what ends the peer's half still
// matters.
func (s *Session) lastWord(r *record) {
	answer := s.in == answering
	if answer {
		s.in, s.out = deaf, confirmed
	}
	switch {
	case r.fault != 0:
	case answer && (r.fn.plain() == reject || r.fn == terminate):
		s.in, s.finish = done, false // refused: the session is over without a Terminate
	case r.fn == terminate:
		s.in = done
	}
	s.schedule()
}

// answered takes the first message of the passive side.
func (s *Session) answered(ssn uint16, r *record, private []byte) {
	s.out, s.private = confirmed, nil // whoever answers has the Initiate (section 6.6)
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
		s.in, s.established = flowing, true
		s.event(Event{Kind: EventAccepted, Session: s, Private: slices.Clone(private), Setup: setup})
		s.schedule()
	case reject:
		err := &RejectedError{Private: slices.Clone(private), Setup: setup}
		s.event(Event{Kind: EventRejected, Session: s, Private: err.Private, Setup: setup, Err: err})
		s.over(err)
	case terminate:
		err := &TerminatedError{ByPeer: true}
		s.event(Event{Kind: EventTerminated, Session: s, Err: err})
		s.over(err)
	case initiate:
		s.violate(ssn, FaultCrossed)
	default:
		s.violate(ssn, FaultAnswer)
	}
}

// deliver gives a segment to the DDP stream at its turn.
func (s *Session) deliver(r *record) {
	if r.early != nil {
		s.ds.Place(r.early, &r.placed)
		s.early -= len(r.early)
		s.m.early -= len(r.early)
		r.early = nil
	}
	s.ds.Deliver(&r.placed) // after a fault it drops what follows; the upper layer decides what is next
}

// peerTerminated takes the peer's Terminate on a session that it has not answered by it.
func (s *Session) peerTerminated() {
	err := &TerminatedError{ByPeer: true}
	s.event(Event{Kind: EventTerminated, Session: s, Err: err})
	if s.in == deciding {
		// The active side gave up before the upper layer decided; section 6.4 is the way to end it.
		s.kill(err, true)
		return
	}
	s.in = done
	if s.ds != nil {
		s.ds.HalfClosed()
	}
}

// violate terminates a session that follows none of the legal sequences (section 6.1).
func (s *Session) violate(ssn uint16, f Fault) {
	if s.dead {
		return
	}
	s.m.stats.Violations++
	s.m.stats.Faults[f]++
	err := &TerminatedError{Cause: &SequenceError{Stream: s.stream, SSN: ssn, Fault: f}}
	s.event(Event{Kind: EventTerminated, Session: s, Err: err})
	s.kill(err, true)
}

func (s *Session) event(e Event) {
	if !s.quiet {
		s.m.events.push(e)
	}
}
