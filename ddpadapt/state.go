package ddpadapt

import (
	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/invariant"
)

// sessionState is where a session is. The table in the package comment says what leads from
// one to the other; transitions is that table.
type sessionState uint8

const (
	stateNone             sessionState = iota
	stateInitiateQueued                // active: its Initiate waits to be handed over
	stateInitiateSent                  // active: the answer is awaited
	stateInitiateReceived              // passive: the upper layer has not answered yet; owns *initiateReceivedData
	stateOpen                          // both sides send
	stateClosing                       // this side ends: its Terminate follows what it still sends, or was handed over
	statePeerClosed                    // the peer's Terminate has had its turn, this side goes on
	stateBothClosing                   // as peer-closed, and this side ends too
	stateCanceled                      // active: given up; the answer is awaited, for the Terminate to follow it
	stateEnding                        // ended by this side: the peer's last message is awaited; owns *endingData
	stateCounting                      // as ending, but a number is unknown: messages are counted; owns *countingData
	stateDone                          // nothing is awaited but acknowledgements
	stateRejecting                     // as done; the user does not know the session: its only message is a Terminate
	stateReused                        // as done; the peer's next session has begun; owns *nextSessionData
	stateEnded                         // the stream is free

	numStates
)

var stateLabels = [numStates]string{"none", "initiate-queued", "initiate-sent", "initiate-received",
	"open", "closing", "peer-closed", "both-closing", "canceled", "ending", "counting", "done",
	"rejecting", "reused", "ended"}

func (st sessionState) String() string { return stateLabels[st] }

// visibleStates is the state as the user sees it.
var visibleStates = [numStates]State{stateInitiateQueued: Initiating, stateInitiateSent: Initiating,
	stateInitiateReceived: Pending, stateOpen: Open, stateClosing: Closing, statePeerClosed: PeerClosed,
	stateBothClosing: Closing, stateCanceled: Over, stateEnding: Over, stateCounting: Over, stateDone: Over,
	stateRejecting: Over, stateReused: Over, stateEnded: Ended}

type stateSet uint32

// The states by what they have in common.
const (
	// The peer's segments are placed and delivered.
	receivingStates stateSet = 1<<stateOpen | 1<<stateClosing
	// There is a DDP stream on both sides.
	acceptedStates = receivingStates | 1<<statePeerClosed | 1<<stateBothClosing
	// This side has ended the session; the peer has not come to its end.
	ignoringStates stateSet = 1<<stateCanceled | 1<<stateEnding | 1<<stateCounting
	// The session has ended, and nothing of the peer is awaited.
	finalStates stateSet = 1<<stateDone | 1<<stateRejecting | 1<<stateReused
	// Nothing is sent, placed or delivered any more.
	deadStates = ignoringStates | finalStates | 1<<stateEnded
	// The session ends with the last acknowledgement.
	settlingStates = finalStates | 1<<stateBothClosing
	// The peer's last message has had its turn.
	peerFinishedStates stateSet = 1<<statePeerClosed | 1<<stateBothClosing
)

func (set stateSet) has(st sessionState) bool { return set>>st&1 != 0 }

// trigger is what happens to a session.
type trigger uint8

const (
	onInitiateSent  trigger = iota // its Initiate was handed over
	onAccept                       // the upper layer accepts
	onReject                       // the upper layer rejects
	onAccepted                     // the peer's Accept has its turn
	onRefused                      // a Reject or Terminate has its turn in place of an Accept
	onLateAnswer                   // another answer has its turn, when the session was given up
	onFinish                       // this side has no more to send
	onPeerTerminate                // the peer's last message has had its turn, or all that it counts has come
	onAbort                        // the user gives the session up
	onFault                        // the peer has broken the sequence
	onNothingSent                  // either of these, before anything of this side was handed over
	onUnknownSSN                   // a message has come whose number is not known
	onNextSession                  // the first message of the peer's next session has come
	onAllAcked                     // all is acknowledged
	onAssocDown                    // the association is gone

	numTriggers
)

var triggerNames = [numTriggers]string{"initiate sent", "accept", "reject", "accepted", "refused",
	"late answer", "finish", "peer terminate", "abort", "fault", "nothing sent", "unknown SSN",
	"next session", "all acked", "association down"}

func (t trigger) String() string { return triggerNames[t] }

// transitions is the state machine. What is not in it cannot be.
var transitions = [numStates][numTriggers]sessionState{
	stateInitiateQueued: {onInitiateSent: stateInitiateSent, onNothingSent: stateDone, onAssocDown: stateEnded},
	stateInitiateSent: {onAccepted: stateOpen, onRefused: stateDone, onAbort: stateCanceled, onFault: stateEnding,
		onUnknownSSN: stateCounting, onAssocDown: stateEnded},
	stateInitiateReceived: {onAccept: stateOpen, onReject: stateDone, onNothingSent: stateDone,
		onAssocDown: stateEnded},
	stateOpen: {onFinish: stateClosing, onPeerTerminate: statePeerClosed, onAbort: stateEnding,
		onFault: stateEnding, onNothingSent: stateDone, onUnknownSSN: stateCounting, onAssocDown: stateEnded},
	stateClosing: {onPeerTerminate: stateBothClosing, onAbort: stateEnding, onFault: stateEnding,
		onNothingSent: stateDone, onUnknownSSN: stateCounting, onNextSession: stateReused, onAssocDown: stateEnded},
	statePeerClosed: {onFinish: stateBothClosing, onAbort: stateDone, onFault: stateDone,
		onNothingSent: stateDone, onUnknownSSN: stateDone, onAssocDown: stateEnded},
	stateBothClosing: {onAbort: stateDone, onFault: stateDone, onNothingSent: stateDone, onUnknownSSN: stateDone,
		onNextSession: stateReused, onAllAcked: stateEnded, onAssocDown: stateEnded},
	stateCanceled: {onRefused: stateDone, onLateAnswer: stateEnding, onUnknownSSN: stateCounting,
		onAssocDown: stateEnded},
	stateEnding: {onPeerTerminate: stateDone, onUnknownSSN: stateCounting, onNextSession: stateReused,
		onAssocDown: stateEnded},
	stateCounting:  {onPeerTerminate: stateDone, onNextSession: stateReused, onAssocDown: stateEnded},
	stateDone:      {onNextSession: stateReused, onAllAcked: stateEnded, onAssocDown: stateEnded},
	stateRejecting: {onNextSession: stateReused, onAllAcked: stateEnded, onAssocDown: stateEnded},
	stateReused:    {onAllAcked: stateEnded, onAssocDown: stateEnded},
}

// initiateReceivedData is what exists in state initiate-received only.
type initiateReceivedData struct {
	setup         llp.Setup // of an enhanced Initiate
	earlySegments int       // segments that came ahead of the answer and were copied
	earlyOctets   int       // their octets
}

// endingData is what exists in state ending only.
type endingData struct {
	wasAccepted bool // the session was, so that the peer may begin the next one without a Terminate
	unanswered  bool // the peer has not answered the Initiate: its answer may be its last message
}

// countingData is what exists in state counting only.
type countingData struct {
	endingData
	receivedMessages int // messages that have come from the next one on
}

// nextSessionData is what exists in state reused only: the first message of the peer's next
// session. It came before our last acknowledgements.
type nextSessionData struct {
	fn          functionCode
	private     []byte
	isRefused   bool // it is none, or what followed it is lost: it gets a Terminate
	userUnaware bool // the user does not know the session that ends
}

// changeState is the one place where a session changes its state. It says whether the table has
// that; if not, this code has contradicted itself, and the association ends. own is what the new
// state owns.
func (s *Session) changeState(t trigger, own any) bool {
	to := transitions[s.state][t]
	if to == stateNone {
		s.mux.a.Break(invariant.Violation("ddpadapt.Session.changeState",
			"%q in state %q; stream %d, active %v, next %d, %d wait, %d sent, %d unacknowledged",
			t, s.state, s.stream, s.active, s.nextSSN, s.outOfOrder.numRecords, s.nextOutSSN, s.unackedMessages))
		return false
	}
	switch own := s.stateData.(type) { // what is left
	case *initiateReceivedData:
		s.mux.pendingInitiates--
		if s.mux.earlyOctets -= own.earlyOctets; to != stateOpen {
			s.outOfOrder.clear(&s.mux.records) // the early segments with it, which are not counted any more
		}
	}
	if s.state == stateRejecting {
		s.mux.unackedRefusals--
	}
	s.state, s.stateData = to, own
	return true
}
