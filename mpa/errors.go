package mpa

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/rddp-go/rddp/internal/invariant"
)

// Codes of errors (section 8, RFC 6580 section 3.3).
const (
	CodeLost   uint8 = 1 // TCP connection closed, terminated, or lost
	CodeCRC    uint8 = 2 // wrong CRC of an FPDU
	CodeMarker uint8 = 3 // a Marker and the ULPDU Length fields do not agree
	CodeFrame  uint8 = 4 // invalid Request or Reply Frame
)

// Error is an error of section 8. It matches syscall.ECONNRESET where it has no Cause that says
// otherwise.
type Error struct {
	Code  uint8
	Cause error // of CodeLost: that of TCP, or ErrTruncated; of CodeFrame: a *FrameError
}

func (e *Error) Error() string {
	s := "mpa: "
	switch e.Code {
	case CodeLost:
		s += "TCP connection lost"
	case CodeCRC:
		return s + "the CRC of an FPDU is wrong"
	case CodeMarker:
		return s + "a Marker and the ULPDU Length fields do not agree"
	case CodeFrame:
		s += "no MPA connection"
	}
	return fmt.Sprintf("%s: %v", s, e.Cause)
}

// Unwrap returns Cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is makes the errors of what came match syscall.ECONNRESET.
func (e *Error) Is(target error) bool { return target == syscall.ECONNRESET && e.Code != CodeLost }

// FrameFault is what is wrong with a start-up frame.
type FrameFault uint8

// The faults.
const (
	FaultKey         FrameFault = iota + 1 // the octets are not those of MPA
	FaultCrossed                           // both ends were started as initiator, or both as responder
	FaultRevision                          // a revision that is not known here
	FaultPrivateData                       // PD_Length is above 512, or not the length of Private Data
	FaultSetup                             // no room for the connection data that are said to be there
	FaultKind                              // an enhanced Request with a plain Reply, or the reverse

	numFrameFaults = FaultKind + 1
)

var faultTexts = [numFrameFaults]string{"no fault",
	FaultKey:         "the peer does not speak MPA",
	FaultCrossed:     "both ends were started as initiator, or both as responder",
	FaultRevision:    "unknown revision",
	FaultPrivateData: "length and private data do not agree",
	FaultSetup:       "enhanced frame without connection data",
	FaultKind:        "an enhanced request and a plain reply, or the reverse",
}

// String returns a short sentence.
func (f FrameFault) String() string {
	if f < numFrameFaults {
		return faultTexts[f]
	}
	return "unknown fault"
}

// FrameError says what is wrong with the start-up frame of the peer. It matches
// syscall.EPROTONOSUPPORT.
type FrameError struct {
	Fault    FrameFault
	Revision uint8 // of FaultRevision
}

func (e *FrameError) Error() string {
	if e.Fault == FaultRevision {
		return fmt.Sprintf("%v %d of MPA", e.Fault, e.Revision)
	}
	return e.Fault.String()
}

// Is makes the error match syscall.EPROTONOSUPPORT.
func (e *FrameError) Is(target error) bool { return target == syscall.EPROTONOSUPPORT }

type timeoutError string

func (e timeoutError) Error() string { return string(e) }

// Is makes the error match syscall.ETIMEDOUT.
func (e timeoutError) Is(target error) bool { return target == syscall.ETIMEDOUT }

var (
	// ErrStartupTimeout: no Request, or no Reply, came in Config.StartupTimeout. It matches
	// syscall.ETIMEDOUT.
	ErrStartupTimeout error = timeoutError("mpa: the peer did not send its start-up frame in time")
	// ErrLingerTimeout: after an error the peer did not close its half in Config.LingerTimeout. It
	// matches syscall.ETIMEDOUT.
	ErrLingerTimeout error = timeoutError("mpa: the peer did not close its half in time")
	// ErrTruncated: the peer closed its half in the middle of an FPDU or of a start-up frame.
	ErrTruncated = errors.New("mpa: the peer closed the connection in the middle of an FPDU or start-up frame")
	// ErrClosedEarly: the peer closed its half before the connection was set up, or before the FPDU
	// that the responder has to wait for.
	ErrClosedEarly = errors.New("mpa: the peer closed the connection before it was set up")
)

// InternalError says that the code has contradicted itself.
type InternalError = invariant.Error
