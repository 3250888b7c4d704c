package ddpadapt

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/rddp-go/rddp/sctp/wire"
)

var (
	// ErrStreamInUse: a session is running on the stream, or something of an earlier one is
	// outstanding (section 6.6). Take another stream or wait for EventEnded.
	ErrStreamInUse = errors.New("ddpadapt: stream in use, or data of its last session outstanding; choose " +
		"another stream")
	// ErrNoFreeStream: every stream of the association is in use.
	ErrNoFreeStream = errors.New("ddpadapt: all streams of the association are in use; end a session or ask for " +
		"more streams at setup")
	// ErrInvalidStream: the stream number is not below Mux.Streams.
	ErrInvalidStream = errors.New("ddpadapt: stream number beyond the streams negotiated for both directions")
	// ErrNotUp: the association is not established yet; wait for EventUp.
	ErrNotUp = errors.New("ddpadapt: association not established yet")
	// ErrNotDDP: the peer announced no adaptation layer, or another one than DDP. No DDP procedure
	// is possible on the association (section 11.1). It matches syscall.EPROTONOSUPPORT.
	ErrNotDDP error = notDDPError{}
	// ErrRestarted ends the sessions of an association that the peer restarted. New ones can be
	// opened. It matches syscall.ECONNRESET.
	ErrRestarted error = restartedError{}
)

type notDDPError struct{}

func (notDDPError) Error() string {
	return "ddpadapt: the peer did not announce DDP (adaptation indication 1) on this association"
}
func (notDDPError) Is(target error) bool { return target == syscall.EPROTONOSUPPORT }

type restartedError struct{}

func (restartedError) Error() string        { return "ddpadapt: the peer restarted the association" }
func (restartedError) Is(target error) bool { return target == syscall.ECONNRESET }

// SequenceError says how a session left the legal sequences of section 6.
type SequenceError struct {
	Stream wire.StreamID
	SSN    uint16 // DDP-SSN of the message at fault, 0 if it has none
	Fault  Fault
}

func (e *SequenceError) Error() string {
	return fmt.Sprintf("peer broke the session on stream %d at DDP-SSN %d: %s", e.Stream, e.SSN, e.Fault)
}

// Fault is what is wrong with a message of the peer.
type Fault uint8

// The faults. Those of a message's form come first, then those of its place in the session.
const (
	FaultPPID         Fault = iota + 1 // PPID other than 16 and 17
	FaultShort                         // too short for its DDP-SSN or function code
	FaultOrdered                       // sent ordered (U flag 0)
	FaultFunction                      // unknown function code
	FaultPrivateData                   // private data too long, or any in a Terminate
	FaultSetup                         // an enhanced message without its connection data
	FaultTooLong                       // a segment longer than any packet
	FaultStart                         // the session does not begin with an Initiate
	FaultAnswer                        // an Initiate answered by something else than its Accept, Reject, or Terminate
	FaultCrossed                       // both sides initiated a session on the stream at once
	FaultControl                       // a control message that has no place in an open session
	FaultAfterEnd                      // a message numbered after the peer's last one
	FaultDuplicateSSN                  // a DDP-SSN used twice
	FaultWindowSSN                     // a DDP-SSN that the messages in flight cannot explain
	FaultEarlyData                     // more segments before the Accept than this side keeps

	numFaults = FaultEarlyData + 1
)

var faultTexts = [...]string{"no fault",
	FaultPPID:         "payload protocol identifier is neither 16 nor 17",
	FaultShort:        "message too short",
	FaultOrdered:      "message was sent ordered",
	FaultFunction:     "unknown function code",
	FaultPrivateData:  "private data too long, or present in a Terminate",
	FaultSetup:        "enhanced message without connection data",
	FaultTooLong:      "segment longer than any packet",
	FaultStart:        "session does not begin with an Initiate",
	FaultAnswer:       "Initiate not answered by its Accept, Reject or Terminate",
	FaultCrossed:      "both sides initiated a session on this stream at the same time",
	FaultControl:      "control message out of place",
	FaultAfterEnd:     "message after the peer's last one",
	FaultDuplicateSSN: "DDP-SSN used twice",
	FaultWindowSSN:    "DDP-SSN outside the window",
	FaultEarlyData:    "too much data before the session was accepted",
}

// String returns a short sentence.
func (f Fault) String() string {
	if int(f) < len(faultTexts) {
		return faultTexts[f]
	}
	return "unknown fault"
}
