package assoc

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

// set of states as a bit mask
type stateSet uint16

func states(list ...State) stateSet {
	var set stateSet
	for _, s := range list {
		set |= 1 << s
	}
	return set
}

func (set stateSet) has(s State) bool { return set&(1<<s) != 0 }

var (
	// setupStates are those in which the handshake is under way on the initiator's side.
	setupStates = states(CookieWait, CookieEchoed)
	// sendStates are those in which DATA is sent (section 6).
	sendStates = states(Established, ShutdownPending, ShutdownReceived)
	// recvStates are those in which DATA is accepted (section 6).
	recvStates = states(Established, ShutdownPending, ShutdownSent)
	// sackStates are those in which SACK is processed (section 6).
	sackStates = sendStates
	// beatStates are those in which HEARTBEATs are sent (section 8.3).
	beatStates = states(Established, ShutdownPending, ShutdownReceived)
	// answerStates are those in which a HEARTBEAT is answered (section 8.3).
	answerStates = states(CookieEchoed, Established, ShutdownPending, ShutdownReceived)
)
