package rdmap

import (
	"errors"
	"fmt"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/invariant"
)

// StreamError is why a stream failed (section 7.1).
type StreamError struct {
	// Terminate is the Terminate Message sent or received; nil when the stream was lost without
	// one.
	Terminate *Terminate
	// Remote says that the peer found the error and sent the Terminate.
	Remote bool
	// Cause is the error below, nil if there is none.
	Cause error
}

func (e *StreamError) Error() string {
	switch {
	case e.Terminate == nil:
		return fmt.Sprintf("rdmap: stream lost: %v", e.Cause)
	case e.Remote:
		return "rdmap: the peer terminated the stream: " + e.Terminate.String()
	}
	s := "rdmap: stream terminated: " + e.Terminate.String()
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *StreamError) Unwrap() error { return e.Cause }

// InternalError says that the code has contradicted itself: see Host.Broken.
type InternalError = invariant.Error

// ErrPeerClosed is the cause of a StreamError: the peer closed its half of the stream although it
// still owed Read or Atomic Responses.
var ErrPeerClosed = errors.New("rdmap: the peer closed the stream before it answered all RDMA Reads and atomics")

// fault is an error that RDMAP itself finds in a segment or message (Figure 9). It travels through
// ddp.Error.Cause when it is found at placement.
type fault struct {
	etype EType
	code  uint8
}

func (f *fault) Error() string {
	t := Terminate{Layer: LayerRDMA, EType: f.etype, Code: f.code}
	return t.String()
}

var (
	errVersion     = &fault{RemoteOperation, CodeInvalidVersion}
	errOpcode      = &fault{RemoteOperation, CodeUnexpectedOpcode}
	errUnspecified = &fault{RemoteOperation, CodeUnspecified}
	errInvalidate  = &fault{RemoteProtection, CodeCannotInvalidate}

	errCatastrophic = &fault{RemoteOperation, CodeCatastrophic}
)

// checkControl validates version and opcode of an incoming message (section 7.2 items 2 and 3). The
// opcode must be one that belongs on the queue or buffer model that carries it.
func checkControl(c uint8, allowed uint16) (Opcode, *fault) {
	v, op := SplitControl(c)
	if v != Version {
		return op, errVersion
	}
	if allowed>>op&1 == 0 {
		return op, errOpcode
	}
	return op, nil
}

// Opcodes that are valid where they arrive, as bit sets (Figure 4, RFC 7306 Figure 2).
const (
	taggedOpcodes         = 1<<OpWrite | 1<<OpReadResponse
	terminateQueueOpcodes = 1 << OpTerminate
	atomicQueueOpcodes    = 1 << OpAtomicResponse
)

func (c *Config) sendQueueOpcodes() uint16 {
	const sends = 1<<OpSend | 1<<OpSendInv | 1<<OpSendSE | 1<<OpSendSEInv
	if c.NoImmediate {
		return sends
	}
	return sends | 1<<OpImmediate | 1<<OpImmediateSE
}

func (c *Config) readQueueOpcodes() uint16 {
	if c.NoAtomics {
		return 1 << OpReadRequest
	}
	return 1<<OpReadRequest | 1<<OpAtomicRequest
}

// terminateFor is the Terminate that reports a DDP error (section 7.1 rules 2 and 3). A fault of
// RDMAP rides in the cause of e. One of the lower layer keeps its code (section 4.8).
func terminateFor(e *ddp.Error) Terminate {
	t := Terminate{Layer: LayerDDP, EType: EType(e.Type), Code: e.Code}
	var f *fault
	if e.Type == ddp.TypeLLP {
		return Terminate{Layer: LayerLLP, EType: ETypeMPA, Code: e.Code}
	}
	if errors.As(e.Cause, &f) {
		t.Layer, t.EType, t.Code = LayerRDMA, f.etype, f.code
	}
	if e.Type != ddp.TypeLocal || f != nil {
		t.quoteSegment(e)
	}
	return t
}

// quoteSegment puts segment length and DDP header of e into t (M and D bits) where e has them.
func (t *Terminate) quoteSegment(e *ddp.Error) {
	if e.HeaderLen == 0 {
		return
	}
	t.HasLength, t.HasDDP = true, true
	t.SegLength = uint16(min(e.SegmentLen, 0xFFFF))
	copy(t.DDP[:], e.Header[:e.HeaderLen])
}
