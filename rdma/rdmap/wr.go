package rdmap

import (
	"errors"
	"fmt"

	"github.com/rddp-go/rddp/ddp"
)

// WROpcode is the operation of a send work request (section 3.2).
type WROpcode uint8

const (
	WRSend      WROpcode = iota
	WRSendSE             // with Solicited Event
	WRSendInv            // with Invalidate
	WRSendSEInv          // with Solicited Event and Invalidate
	WRWrite              // RDMA Write
	WRRead               // RDMA Read
)

// wire is the opcode of the message that starts the operation.
func (o WROpcode) wire() Opcode {
	return [...]Opcode{OpSend, OpSendSE, OpSendInv, OpSendSEInv, OpWrite, OpReadRequest}[o]
}

func (o WROpcode) invalidates() bool { return o == WRSendInv || o == WRSendSEInv }

func (o WROpcode) completion() WCOpcode {
	switch o {
	case WRWrite:
		return WCWrite
	case WRRead:
		return WCRead
	}
	return WCSend
}

// Flags of a send work request.
type Flags uint8

const (
	// Unsignaled asks for no completion when the request succeeds. A failed one always completes.
	Unsignaled Flags = 1 << iota
	// Fence holds the request back until all earlier RDMA Reads have completed (section 5.5 rule 12).
	Fence
)

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
	SGL    []SGE  // source of a Send or Write; the sink of a Read, exactly one piece (section 5.2.2)
	Inline []byte // source of a Send or Write instead of SGL; copied, at most Config.MaxInline octets

	RemoteSTag     ddp.STag // Write: data sink; Read: data source
	RemoteTO       uint64
	InvalidateSTag ddp.STag // WRSendInv and WRSendSEInv: the peer's STag, not 0
}

// RecvWR is a request for the receive queue: a buffer for one Send. Its memory belongs to the stack
// until it completes.
type RecvWR struct {
	ID  uint64
	SGL []SGE // filled in order; each needs LocalWrite
}

// Reasons why a request is refused when it is posted. Nothing has been queued then. Match them with
// errors.Is; problems with a piece of memory come wrapped in *SGEError.
var (
	ErrQueueFull  = errors.New("rdmap: queue is full; wait for completions")
	ErrState      = errors.New("rdmap: the QP state does not allow this request")
	ErrOpcode     = errors.New("rdmap: unknown operation; use one of the WR constants")
	ErrTooLong    = errors.New("rdmap: message longer than 2^32-1 octets; split it")
	ErrInline     = errors.New("rdmap: inline data is longer than Config.MaxInline, comes with an SGL, or is used with a Read")
	ErrInvalidate = errors.New("rdmap: Send with Invalidate needs the STag to invalidate")
	// ErrRemoteRange includes a sum of exactly 2^64, as the peer would count it.
	ErrRemoteRange = errors.New("rdmap: RemoteTO and length wrap around 64 bits")
	ErrSGECount    = errors.New("rdmap: too many pieces (Config.MaxSGE), or not exactly one for a Read")
	ErrNoReads     = errors.New("rdmap: RDMA Read needs an ORD of at least 1 on this QP")
	ErrSharedRecv  = errors.New("rdmap: the QP uses a shared receive queue; post the buffer there")
	ErrLKey        = errors.New("rdmap: no valid region has this STag")
	ErrPD          = errors.New("rdmap: the region belongs to another Protection Domain or stream")
	ErrBounds      = errors.New("rdmap: the piece is not inside its region")
	ErrAccess      = errors.New("rdmap: the region does not allow local writes")
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
