package mpa

import "github.com/rddp-go/rddp/internal/invariant"

// State is where a connection is. The table in the package comment says what leads from one to the
// other; transitions is that table.
type State uint8

// The states of a connection.
const (
	stateNone   State = iota
	Requesting        // initiator: the Reply is awaited
	Awaiting          // responder: the Request is awaited
	Pending           // responder: the upper layer has not answered yet
	Rejecting         // responder: a Reply that rejects is on its way
	Open              // FPDUs go both ways
	Closing           // this side has no more to send
	PeerClosed        // the peer has no more to send
	BothClosing       // both
	Left              // MPA was exited; the TCP connection is the upper layer's
	Ended             // the TCP connection is to be closed

	numStates
)

var stateNames = [numStates]string{"none", "requesting", "awaiting", "pending", "rejecting", "open", "closing",
	"peer-closed", "both-closing", "left", "ended"}

// String returns a short name for the state, for traces.
func (s State) String() string {
	if s < numStates {
		return stateNames[s]
	}
	return "unknown"
}

type stateSet uint16

// The states by what they have in common.
const (
	// The peer's FPDUs are placed and delivered.
	receivingStates stateSet = 1<<Open | 1<<Closing
	// There is a DDP stream on both sides.
	fullOperation = receivingStates | 1<<PeerClosed | 1<<BothClosing
	// Start-up frames are awaited, and for how long.
	startingStates stateSet = 1<<Requesting | 1<<Awaiting
	// Nothing more happens.
	finalStates stateSet = 1<<Left | 1<<Ended
)

func (set stateSet) has(s State) bool { return set>>s&1 != 0 }

// trigger is what happens to a connection.
type trigger uint8

const (
	onRequested    trigger = iota // the Request has come
	onAccept                      // the upper layer accepts
	onReject                      // the upper layer rejects
	onAccepted                    // a Reply has come that accepts
	onRejected                    // a Reply has come that rejects
	onAllWritten                  // TCP has taken all that was due
	onFinish                      // this side has no more to send
	onPeerFinished                // the peer has closed its half
	onEnd                         // the connection has ended, for whatever reason

	numTriggers
)

var triggerNames = [numTriggers]string{"requested", "accept", "reject", "accepted", "rejected", "all written", "finish",
	"peer finished", "end"}

func (t trigger) String() string { return triggerNames[t] }

// transitions is the state machine. What is not in it cannot be.
var transitions = [numStates][numTriggers]State{
	Requesting:  {onAccepted: Open, onRejected: Left, onEnd: Ended},
	Awaiting:    {onRequested: Pending, onEnd: Ended},
	Pending:     {onAccept: Open, onReject: Rejecting, onEnd: Ended},
	Rejecting:   {onAllWritten: Left, onEnd: Ended},
	Open:        {onFinish: Closing, onPeerFinished: PeerClosed, onEnd: Ended},
	Closing:     {onPeerFinished: BothClosing, onEnd: Ended},
	PeerClosed:  {onFinish: BothClosing, onEnd: Ended},
	BothClosing: {onEnd: Ended},
}

// changeState is the one place where a connection changes its state. It says whether the table has
// that; if not, this code has contradicted itself, and the connection ends.
func (c *Conn) changeState(t trigger) bool {
	to := transitions[c.state][t]
	if to == stateNone {
		c.Break(invariant.Violation("mpa.Conn.changeState", "%q in state %q; initiator %v, %d FPDUs in, %d out",
			t, c.state, c.initiator, c.stats.FPDUsIn, c.stats.FPDUsOut))
		return false
	}
	c.state = to
	return true
}
