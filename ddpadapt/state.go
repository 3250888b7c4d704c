package ddpadapt

import "github.com/rddp-go/rddp/internal/invariant"

// state is where a session is. The table in the package comment says what leads from one to the other, and table below
// says it to the machine.
type state uint8

const (
	none     state = iota
	calling        // active: its Initiate waits to be handed over
	called         // active: the answer is awaited
	asked          // passive: the upper layer has not answered yet; owns *asking
	open           // both sides send
	closing        // this side ends: its Terminate follows what it still sends, or was handed over
	resting        // the peer's Terminate has had its turn, this side goes on
	closed         // as resting, and this side ends too
	canceled       // active: given up; the answer is awaited, for the Terminate to follow it
	ending         // ended by this side: the peer's last message is awaited; owns *hearing
	counting       // as ending, but the number of a message is not known: those that come are counted; owns *tally
	over           // nothing is awaited but acknowledgements
	refusing       // as over, of a session that the user does not know: its only message is a Terminate
	reopened       // as over, and the first message of the peer's next session has come; owns *successor
	ended          // the stream is free

	numStates
)

var internalNames = [numStates]string{"none", "calling", "called", "asked", "open", "closing", "resting", "closed", "canceled",
	"ending", "counting", "over", "refusing", "reopened", "ended"}

func (st state) String() string { return internalNames[st] }

// visible is the state as the user sees it.
var visible = [numStates]State{calling: Initiating, called: Initiating, asked: Pending, open: Open, closing: Closing, resting: PeerClosed,
	closed: Closing, canceled: Over, ending: Over, counting: Over, over: Over, refusing: Over, reopened: Over, ended: Ended}

type stateSet uint32

// The states by what they have in common.
const (
	flowing  stateSet = 1<<open | 1<<closing                  // segments of the peer are placed and delivered
	accepted          = flowing | 1<<resting | 1<<closed      // there is a DDP stream on both sides
	deaf     stateSet = 1<<canceled | 1<<ending | 1<<counting // ended by this side, and the peer has not come to its end
	final    stateSet = 1<<over | 1<<refusing | 1<<reopened   // ended, and nothing of the peer is awaited
	dead              = deaf | final | 1<<ended               // nothing is sent, placed or delivered any more
	settles           = final | 1<<closed                     // ends with the last acknowledgement
	finished stateSet = 1<<resting | 1<<closed                // the peer's last message has had its turn
)

func (set stateSet) has(st state) bool { return set>>st&1 != 0 }

// trigger is what happens to a session.
type trigger uint8

const (
	onHanded        trigger = iota // its Initiate was handed over
	onAccept                       // the upper layer accepts
	onReject                       // the upper layer rejects
	onAccepted                     // the peer's Accept has its turn
	onRefused                      // a Reject or Terminate has its turn in place of an Accept
	onAnswered                     // another answer has its turn, when the session was given up
	onFinish                       // this side has no more to send
	onPeerTerminate                // the peer's last message has had its turn, or all that it counts has come
	onAbort                        // the user gives the session up
	onFault                        // the peer has broken the sequence
	onWithdraw                     // either of these, before anything of this side was handed over
	onLost                         // a message has come whose number is not known
	onNext                         // the first message of the peer's next session has come
	onSettled                      // all is acknowledged
	onDown                         // the association is gone

	numTriggers
)

var triggerNames = [numTriggers]string{"handed", "accept", "reject", "accepted", "refused", "answered", "finish", "peer terminate",
	"abort", "fault", "withdraw", "lost", "next", "settled", "down"}

func (t trigger) String() string { return triggerNames[t] }

// table is the state machine. What is not in it cannot be.
var table = [numStates][numTriggers]state{
	calling:  {onHanded: called, onWithdraw: over, onDown: ended},
	called:   {onAccepted: open, onRefused: over, onAbort: canceled, onFault: ending, onLost: counting, onDown: ended},
	asked:    {onAccept: open, onReject: over, onWithdraw: over, onDown: ended},
	open:     {onFinish: closing, onPeerTerminate: resting, onAbort: ending, onFault: ending, onWithdraw: over, onLost: counting, onDown: ended},
	closing:  {onPeerTerminate: closed, onAbort: ending, onFault: ending, onWithdraw: over, onLost: counting, onNext: reopened, onDown: ended},
	resting:  {onFinish: closed, onAbort: over, onFault: over, onWithdraw: over, onLost: over, onDown: ended},
	closed:   {onAbort: over, onFault: over, onWithdraw: over, onLost: over, onNext: reopened, onSettled: ended, onDown: ended},
	canceled: {onRefused: over, onAnswered: ending, onLost: counting, onDown: ended},
	ending:   {onPeerTerminate: over, onLost: counting, onNext: reopened, onDown: ended},
	counting: {onPeerTerminate: over, onNext: reopened, onDown: ended},
	over:     {onNext: reopened, onSettled: ended, onDown: ended},
	refusing: {onNext: reopened, onSettled: ended, onDown: ended},
	reopened: {onSettled: ended, onDown: ended},
}

// asking is what exists in state asked only.
type asking struct {
	setup Setup // of an enhanced Initiate
	kept  int   // segments that came ahead of the answer and were copied
	early int   // their octets
}

// hearing is what exists in state ending only.
type hearing struct {
	accepted   bool // the session was, so that the peer may begin the next one without a Terminate
	unanswered bool // the peer has not answered the Initiate: its answer may be its last message
}

// tally is what exists in state counting only.
type tally struct {
	hearing
	come int // messages that have come from the next one on
}

// successor is what exists in state reopened only: the first message of the peer's next session, which came before our
// last acknowledgements.
type successor struct {
	fn      function
	private []byte
	refused bool // it is none, or what followed it is lost: it gets a Terminate
	unknown bool // the user does not know the session that ends
}

// enter is the one place where a session changes its state. It says whether the table has that; if not, this code has
// contradicted itself, and the association ends. own is what the new state owns.
func (s *Session) enter(t trigger, own any) bool {
	to := table[s.state][t]
	if to == none {
		s.m.a.Break(invariant.Broken("ddpadapt.Session.enter", "%q in state %q; stream %d, active %v, next %d, %d wait, %d sent, %d unacknowledged",
			t, s.state, s.stream, s.active, s.next, s.window.n, s.outSSN, s.unacked))
		return false
	}
	switch own := s.own.(type) { // what is left
	case *asking:
		s.m.pending--
		if s.m.early -= own.early; to != open {
			s.window.clear(&s.m.store) // the early segments with it, which are not counted any more
		}
	}
	if s.state == refusing {
		s.m.refused--
	}
	s.state, s.own = to, own
	return true
}
