package assoc

import "github.com/rddp-go/rddp/internal/invariant"

// State is the state of an association (RFC 9260 section 4).
type State uint8

// The states of section 4. An association that has ended is Closed.
const (
	Closed State = iota
	CookieWait
	CookieEchoed
	Established
	ShutdownPending
	ShutdownSent
	ShutdownReceived
	ShutdownAckSent
)

var stateNames = [...]string{"CLOSED", "COOKIE-WAIT", "COOKIE-ECHOED", "ESTABLISHED",
	"SHUTDOWN-PENDING", "SHUTDOWN-SENT", "SHUTDOWN-RECEIVED", "SHUTDOWN-ACK-SENT"}

// String returns the RFC's name of the state.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "invalid state"
}

// MarshalText makes JSON show the name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// stateSet is a set of states as a bit mask.
type stateSet uint16

func newStateSet(list ...State) stateSet {
	var set stateSet
	for _, s := range list {
		set |= 1 << s
	}
	return set
}

func (set stateSet) has(s State) bool { return set&(1<<s) != 0 }

var (
	// setupStates are those in which the handshake is under way on the initiator's side.
	setupStates = newStateSet(CookieWait, CookieEchoed)
	// sendStates are those in which DATA is sent (section 6).
	sendStates = newStateSet(Established, ShutdownPending, ShutdownReceived)
	// recvStates are those in which DATA is accepted (section 6).
	recvStates = newStateSet(Established, ShutdownPending, ShutdownSent)
	// sackStates are those in which SACK is processed (section 6).
	sackStates = sendStates
	// heartbeatStates are those in which HEARTBEATs are sent (section 8.3).
	heartbeatStates = newStateSet(Established, ShutdownPending, ShutdownReceived)
	// heartbeatAckStates are those in which a HEARTBEAT is answered (section 8.3).
	heartbeatAckStates = newStateSet(CookieEchoed, Established, ShutdownPending, ShutdownReceived)
)

// shutdownStates are those of a shutdown in which a restart of the peer ends the association (see
// endForSuccessor).
var shutdownStates = newStateSet(ShutdownPending, ShutdownSent, ShutdownReceived)

// trigger is what leads from one state to another (section 4, Figure 3).
type trigger uint8

const (
	onInitAck      trigger = iota // the peer's INIT ACK
	onCookieAck                   // its COOKIE ACK, or its own cookie: section 5.2.4 actions B and D
	onStale                       // its ERROR: the cookie was stale (section 5.2.6)
	onRestart                     // its cookie: section 5.2.4 action A
	onShutdown                    // the user shuts down
	onPeerShutdown                // the peer's SHUTDOWN
	onDrained                     // all own data is acknowledged, in a shutdown
	onShutdownAck                 // the peer's SHUTDOWN ACK
	onComplete                    // its SHUTDOWN COMPLETE
	onEnd                         // ABORT from either side, or a limit

	numTriggers
)

var triggerNames = [numTriggers]string{"init ack", "cookie ack", "stale", "restart", "shutdown", "peer shutdown",
	"drained",
	"shutdown ack", "complete", "end"}

func (t trigger) String() string { return triggerNames[t] }

// transitions is the state machine. An association begins in COOKIE-WAIT, or by the peer's cookie
// in ESTABLISHED. A transition that is not in the table cannot be.
var transitions = [...]map[trigger]State{
	Closed:       {},
	CookieWait:   {onInitAck: CookieEchoed, onCookieAck: Established, onEnd: Closed},
	CookieEchoed: {onCookieAck: Established, onStale: CookieWait, onEnd: Closed},
	Established: {onRestart: Established, onShutdown: ShutdownPending, onPeerShutdown: ShutdownReceived,
		onEnd: Closed},
	ShutdownPending:  {onPeerShutdown: ShutdownReceived, onDrained: ShutdownSent, onEnd: Closed},
	ShutdownSent:     {onPeerShutdown: ShutdownAckSent, onShutdownAck: Closed, onEnd: Closed},
	ShutdownReceived: {onDrained: ShutdownAckSent, onEnd: Closed},
	ShutdownAckSent:  {onShutdownAck: Closed, onComplete: Closed, onEnd: Closed},
}

// stateData is what exists in one state only. CLOSED, ESTABLISHED, SHUTDOWN-PENDING and
// SHUTDOWN-RECEIVED have none. It is one of:
//
//	COOKIE-WAIT       *cookieWait       the INIT that waits for its answer
//	COOKIE-ECHOED     *cookieEchoed     the COOKIE ECHO that does, with the peer's cookie
//	SHUTDOWN-SENT     *shutdownSent     the SHUTDOWN that does
//	SHUTDOWN-ACK-SENT *shutdownAckSent  the SHUTDOWN ACK that does
type stateData interface{ state() State }

func (*cookieWait) state() State      { return CookieWait }
func (*cookieEchoed) state() State    { return CookieEchoed }
func (*shutdownSent) state() State    { return ShutdownSent }
func (*shutdownAckSent) state() State { return ShutdownAckSent }

// setup returns what COOKIE-WAIT and COOKIE-ECHOED have in common, nil in other states.
func (l *lifecycle) setup() *setup {
	switch own := l.stateData.(type) {
	case *cookieWait:
		return &own.setup
	case *cookieEchoed:
		return &own.setup
	}
	return nil
}

// shutdownState returns what SHUTDOWN-SENT and SHUTDOWN-ACK-SENT have in common, nil in other
// states.
func (l *lifecycle) shutdownState() *shutdownState {
	switch own := l.stateData.(type) {
	case *shutdownSent:
		return &own.shutdownState
	case *shutdownAckSent:
		return &own.shutdownState
	}
	return nil
}

// dataStates are those that have stateData.
var dataStates = newStateSet(CookieWait, CookieEchoed, ShutdownSent, ShutdownAckSent)

// isDataOf says whether own is what a state has to have.
func isDataOf(s State, own stateData) bool {
	if own == nil {
		return !dataStates.has(s)
	}
	return own.state() == s
}

// changeState is the one place where the state changes, and its data with it. It says whether the
// table has that transition, to the state whose data own is. If not, this code has contradicted
// itself, and the association ends.
func (a *Assoc) changeState(by trigger, own stateData) bool {
	to, ok := transitions[a.state][by]
	if !ok || !isDataOf(to, own) {
		a.Break(invariant.Violation("assoc.changeState", "%q in %v; life %d, tags %#x and %#x", by, a.state,
			a.life.incarnation, a.id.localTag, a.id.peerTag))
		return false
	}
	a.state, a.stateData = to, own
	return true
}
