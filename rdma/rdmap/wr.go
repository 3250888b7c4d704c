package rdmap

import (
	"errors"
	"fmt"

	"github.com/rddp-go/rddp/ddp"
)

// WROpcode is the operation of a send work request (section 3.2).
type WROpcode uint8

// Send requests.
const (
	WRSend      WROpcode = iota
	WRSendSE             // with Solicited Event
	WRSendInv            // with Invalidate
	WRSendSEInv          // with Solicited Event and Invalidate
	WRWrite              // RDMA Write
	WRRead               // RDMA Read

	// The operations of RFC 7306.

	WRImm        // Immediate Data: 8 octets that take a receive of the peer and arrive in its completion
	WRImmSE      // Immediate Data with Solicited Event
	WRWriteImm   // RDMA Write, then Immediate Data: two messages and places in the queue, one completion
	WRWriteImmSE // RDMA Write, then Immediate Data with Solicited Event
	WRAtomic     // Atomic Operation: FetchAdd or CmpSwap

	numWROpcodes // their number
)

// wireOpcode is the opcode of the message that starts the operation; of WRWriteImm, of its second
// message.
func (o WROpcode) wireOpcode() Opcode {
	return [...]Opcode{OpSend, OpSendSE, OpSendInv, OpSendSEInv, OpWrite, OpReadRequest,
		OpImmediate, OpImmediateSE, OpImmediate, OpImmediateSE, OpAtomicRequest}[o]
}

func (o WROpcode) invalidates() bool { return o == WRSendInv || o == WRSendSEInv }

// sendsImmediate: it sends Immediate Data.
func (o WROpcode) sendsImmediate() bool { return o >= WRImm && o <= WRWriteImmSE }

// startsWithWrite: it is, or begins with, an RDMA Write.
func (o WROpcode) startsWithWrite() bool { return o == WRWrite || o == WRWriteImm || o == WRWriteImmSE }

// needsResponse: it needs an answer, and counts against ORD.
func (o WROpcode) needsResponse() bool { return o == WRRead || o == WRAtomic }

func (o WROpcode) completionOpcode() WCOpcode {
	switch {
	case o.startsWithWrite():
		return WCWrite
	case o == WRRead:
		return WCRead
	case o.sendsImmediate():
		return WCImm
	case o == WRAtomic:
		return WCAtomic
	}
	return WCSend
}

// Flags of a send work request.
type Flags uint8

const (
	// Unsignaled asks for no completion when the request succeeds. A failed one always completes.
	Unsignaled Flags = 1 << iota
	// Fence holds the request back until all earlier RDMA Reads and atomics have completed (section
	// 5.5 rule 12).
	Fence

	leadsImmediate // an RDMA Write that the Immediate Data behind it completes for
	hiddenRequest  // the stack's own: no completion
)

// AtomicOp is an Atomic Operation; make it with FetchAdd or CmpSwap, or fill in the masks yourself.
type AtomicOp = ddp.AtomicOp

// FetchAdd adds n modulo 2^64 (RFC 7306 section 5.1.1).
func FetchAdd(n uint64) AtomicOp { return ddp.FetchAdd(n) }

// CmpSwap replaces a value that equals compare by swap (RFC 7306 section 5.1.2).
func CmpSwap(compare, swap uint64) AtomicOp { return ddp.CmpSwap(compare, swap) }

// SGE names a piece of registered local memory.
type SGE struct {
	LKey ddp.STag // STag of the region
	Addr uint64   // Tagged Offset of the first octet, counted as the region counts
	Len  uint32   // octets
}

// SendWR is a request for the send queue. PostSend copies it; the memory that SGL names belongs to
// the stack until the request completes.
type SendWR struct {
	ID     uint64
	Op     WROpcode
	Flags  Flags
	SGL    []SGE  // source of a Send or Write; the sink of a Read, exactly one piece (section 5.2.2); else empty
	Inline []byte // source of a Send or Write instead of SGL; copied, at most Config.MaxInline octets

	// Write: data sink. Read: data source. Atomic: the 8 octets, at an address (not Tagged Offset)
	// that is a multiple of 8. Only the peer can check that, and it ends the stream for any other.
	RemoteSTag ddp.STag
	RemoteTO   uint64

	InvalidateSTag ddp.STag // WRSendInv and WRSendSEInv: the peer's STag, not 0
	Immediate      uint64   // Immediate Data; it travels in network byte order
	Atomic         AtomicOp // WRAtomic
}

// RecvWR is a request for the receive queue: a buffer for one Send, or for Immediate Data, which
// takes it without writing to it. Its memory belongs to the stack until it completes.
type RecvWR struct {
	ID  uint64
	SGL []SGE // filled in order; each needs LocalWrite
}

// Reasons why a request is refused when it is posted. Nothing has been queued then. Match them with
// errors.Is; problems with a piece of memory come wrapped in *SGEError.
var (
	ErrQueueFull = errors.New("rdmap: queue is full; wait for completions")
	ErrState     = errors.New("rdmap: the QP state does not allow this request")
	ErrOpcode    = errors.New("rdmap: unknown operation; use one of the WR constants")
	ErrTooLong   = errors.New("rdmap: message longer than 2^32-1 octets; split it")
	ErrInline    = errors.New("rdmap: inline data is longer than Config.MaxInline, comes with an SGL, or with " +
		"an operation that sends none")
	// ErrDisabled: see Config.NoAtomics and NoImmediate.
	ErrDisabled   = errors.New("rdmap: the QP is configured without this operation")
	ErrInvalidate = errors.New("rdmap: Send with Invalidate needs the STag to invalidate")
	// ErrRemoteRange includes a sum of exactly 2^64, as the peer would count it.
	ErrRemoteRange = errors.New("rdmap: RemoteTO and length wrap around 64 bits")
	ErrSGECount    = errors.New("rdmap: too many pieces: at most Config.MaxSGE, one for a Read, none for " +
		"Immediate Data and Atomic")
	ErrNoReads    = errors.New("rdmap: RDMA Read and Atomic need an ORD of at least 1 on this QP")
	ErrSharedRecv = errors.New("rdmap: the QP uses a shared receive queue; post the buffer there")
	ErrLKey       = errors.New("rdmap: no valid region has this STag")
	ErrPD         = errors.New("rdmap: the region belongs to another Protection Domain or stream")
	ErrBounds     = errors.New("rdmap: the piece is not inside its region")
	ErrAccess     = errors.New("rdmap: the region does not allow local writes")
)

// SGEError says which piece of a scatter/gather list was refused and why (ErrLKey, ErrPD, ErrBounds
// or ErrAccess).
type SGEError struct {
	Index  int
	Reason error
}

func (e *SGEError) Error() string { return fmt.Sprintf("%v (piece %d of the list)", e.Reason, e.Index) }

// Unwrap returns the reason.
func (e *SGEError) Unwrap() error { return e.Reason }
