package ddpadapt

import (
	"slices"

	"github.com/rddp-go/rddp/ddp/llp"
)

// processInOrder judges the message whose turn it is in DDP-SSN order, by the legal sequences of
// sections 6.2 to 6.4. private is its private data. Messages that carry any are the first of their
// side and never wait for an earlier one.
func (s *Session) processInOrder(r *record, private []byte) {
	ssn := s.nextSSN
	s.nextSSN++
	switch {
	case deadStates.has(s.state):
		s.receiveAfterEnd(r)
	case r.fault != 0:
		if s.terminateForFault(ssn, r.fault, onFault); s.state == stateEnding {
			s.receiveAfterEnd(r)
		}
	case peerFinishedStates.has(s.state):
		s.terminateForFault(ssn, FaultAfterEnd, onFault)
	case s.state == stateInitiateSent:
		s.receiveAnswer(ssn, r, private)
	case r.fn == 0:
		s.deliverSegment(r)
	case r.fn == fnTerminate:
		s.receiveTerminate()
	default:
		s.terminateForFault(ssn, FaultControl, onFault)
	}
}

// receiveAfterEnd takes a message on a session that this side has ended. Only what ends the peer's
// half still matters.
func (s *Session) receiveAfterEnd(r *record) {
	refusal := r.fn.plainCode() == fnReject || r.fn == fnTerminate // well formed or not, its side's last message
	h, _ := s.stateData.(*endingData)
	switch {
	case s.state == stateCanceled:
		if s.firstMessage = nil; refusal {
			s.endRefused(s.err) // the session is over without a Terminate
		} else {
			s.changeState(onLateAnswer, &endingData{wasAccepted: r.fault == 0 && r.fn.plainCode() == fnAccept})
		}
	case s.state != stateEnding:
	case h.unanswered && refusal:
		s.peerFinished(r.fault == 0)
	case r.fn == fnTerminate:
		s.peerFinished(false)
	default:
		h.unanswered = false
	}
	s.schedule()
}

// peerFinished takes the peer's last message on a session that this side has ended. A Terminate
// that has not left is not needed where the peer has refused.
func (s *Session) peerFinished(refusal bool) {
	if refusal && s.ourTerminate == terminateDue {
		s.ourTerminate = terminateNone
	}
	s.changeState(onPeerTerminate, nil)
}

// receiveAnswer takes the first message of the passive side.
func (s *Session) receiveAnswer(ssn uint16, r *record, private []byte) {
	s.firstMessage = nil // a peer that answers has the Initiate (section 6.6)
	fn := r.fn.plainCode()
	var setup *llp.Setup
	switch {
	case fn == fnInitiate || fn == fnTerminate:
	case r.fn.isEnhanced() != s.enhanced:
		fn = 0 // an Initiate is answered in kind (RFC 6581 section 10)
	case s.enhanced:
		setup, private = llp.SplitSetup(private)
	}
	switch fn {
	case fnAccept:
		s.changeState(onAccepted, nil)
		s.mux.events.push(Event{Kind: EventAccepted, Session: s, Private: slices.Clone(private), Setup: setup})
		if s.ourTerminate != terminateNone { // its user is done with it already
			s.changeState(onFinish, nil)
		}
		s.schedule()
	case fnReject:
		err := &llp.RejectedError{Private: slices.Clone(private), Setup: setup}
		s.mux.events.push(Event{Kind: EventRejected, Session: s, Private: err.Private, Setup: setup, Err: err})
		s.endRefused(err)
	case fnTerminate:
		err := &llp.TerminatedError{ByPeer: true}
		s.mux.events.push(Event{Kind: EventTerminated, Session: s, Err: err})
		s.endRefused(err)
	case fnInitiate:
		s.terminateForFault(ssn, FaultCrossed, onFault)
		s.noteAnswered()
	default:
		s.terminateForFault(ssn, FaultAnswer, onFault)
		s.noteAnswered()
	}
}

// noteAnswered notes that the answer has come, though it was none.
func (s *Session) noteAnswered() {
	if h, ok := s.stateData.(*endingData); ok {
		h.unanswered = false
	}
}

// deliverSegment gives a segment to the DDP stream at its turn.
func (s *Session) deliverSegment(r *record) {
	s.ds.Deliver(&r.placed) // after a fault it drops what follows; the upper layer decides what is next
}

// receiveTerminate takes the peer's Terminate on a session that it has not answered by it.
func (s *Session) receiveTerminate() {
	err := &llp.TerminatedError{ByPeer: true}
	s.mux.events.push(Event{Kind: EventTerminated, Session: s, Err: err})
	if s.state == stateInitiateReceived {
		// The active side gave up before the upper layer decided; section 6.4 is the way to end it.
		s.endSession(err, onFault)
		return
	}
	s.changeState(onPeerTerminate, nil)
	if s.ds != nil {
		s.ds.HalfClosed()
	}
}

// terminateForFault terminates a session that follows none of the legal sequences (section 6.1). by
// is onFault, or onUnknownSSN for a message whose number is not known.
func (s *Session) terminateForFault(ssn uint16, f Fault, by trigger) {
	if deadStates.has(s.state) {
		return
	}
	s.mux.stats.Violations++
	s.mux.stats.Faults[f]++
	err := &llp.TerminatedError{Cause: &SequenceError{Stream: s.stream, SSN: ssn, Fault: f}}
	s.mux.events.push(Event{Kind: EventTerminated, Session: s, Err: err})
	s.endSession(err, by)
}
