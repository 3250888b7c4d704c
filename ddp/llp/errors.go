package llp

import (
	"errors"
	"fmt"
	"syscall"
)

var (
	// ErrPrivateDataTooLong: private data is longer than MaxPrivateData octets, or in an enhanced
	// message than MaxEnhancedPrivateData.
	ErrPrivateDataTooLong = errors.New("ddp: private data is longer than 512 octets (508 in an enhanced session)")
	// ErrDepth: an IRD or ORD of a Setup is neither 0 to MaxDepth nor NotNegotiated.
	ErrDepth = errors.New("ddp: IRD and ORD must be 0 to 16382, or NotNegotiated")
	// ErrState: the call does not fit the state of the session, e.g. Accept on the active side.
	ErrState = errors.New("ddp: call does not fit the state of the session")
)

// Why an initiator does not go on after it was accepted. The upper layer ends the session by a
// Terminate message of its own that says so (RFC 6581 section 8).
var (
	ErrInsufficientIRD = errors.New("ddp: the peer wants more RDMA Reads pending here than the IRD that it was offered")
	ErrNoRTR           = errors.New("ddp: no Ready to Receive indication that both ends support")
)

// RejectedError reports that the peer's upper layer rejected the session (RFC 5043 section 6.3, RFC
// 5044 section 7.1.2). It matches syscall.ECONNREFUSED.
type RejectedError struct {
	Private []byte // the peer's private data, at most MaxPrivateData octets
	Setup   *Setup // enhanced session: what the peer would have agreed to
}

func (e *RejectedError) Error() string {
	if len(e.Private) == 0 {
		return "ddp: session rejected by the peer"
	}
	return fmt.Sprintf("ddp: session rejected by the peer: %q", e.Private)
}

// Is makes the error match syscall.ECONNREFUSED.
func (e *RejectedError) Is(target error) bool { return target == syscall.ECONNREFUSED }

// TerminatedError reports that one side ended a session otherwise than by the end of a DDP stream.
// It matches syscall.ECONNRESET unless this side's upper layer asked for it.
type TerminatedError struct {
	ByPeer bool  // the peer did
	Cause  error // why this side did, such as a fault of the peer; nil for the peer's and the upper layer's
}

func (e *TerminatedError) Error() string {
	switch {
	case e.ByPeer:
		return "ddp: session terminated by the peer"
	case e.Cause != nil:
		return "ddp: session terminated: " + e.Cause.Error()
	}
	return "ddp: session terminated"
}

// Unwrap returns Cause.
func (e *TerminatedError) Unwrap() error { return e.Cause }

// Is makes the error match syscall.ECONNRESET, or syscall.ECONNABORTED for an end of our own.
func (e *TerminatedError) Is(target error) bool {
	if e.ByPeer || e.Cause != nil {
		return target == syscall.ECONNRESET
	}
	return target == syscall.ECONNABORTED
}
