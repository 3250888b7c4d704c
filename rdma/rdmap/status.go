package rdmap

import (
	"fmt"

	"github.com/rddp-go/rddp/ddp"
)

// Status is the result of a work request. The values and the texts are those of libibverbs. Only
// the statuses that an RDMAP stream can produce are named.
type Status uint8

// Statuses, with the names that libibverbs has for them.
const (
	StatusSuccess      Status = 0
	StatusLocLenErr    Status = 1  // WC_LOC_LEN_ERR: an incoming Send was longer than the receive buffer
	StatusLocProtErr   Status = 4  // WC_LOC_PROT_ERR: local memory was deregistered under a posted request
	StatusWRFlushErr   Status = 5  // WC_WR_FLUSH_ERR: not executed, or outcome unknown, as the stream ended
	StatusMWBindErr    Status = 6  // WC_MW_BIND_ERR: the peer's Send asked to invalidate an STag it may not
	StatusBadRespErr   Status = 7  // WC_BAD_RESP_ERR: the Read or Atomic Response was not what was asked for
	StatusRemInvReqErr Status = 9  // WC_REM_INV_REQ_ERR: the peer found the request malformed or had no buffer
	StatusRemAccessErr Status = 10 // WC_REM_ACCESS_ERR: the peer refused access to its memory
	StatusRemOpErr     Status = 11 // WC_REM_OP_ERR: the peer failed to carry the request out
)

// String returns libibverbs' text (ibv_wc_status_str).
func (s Status) String() string {
	switch s {
	case StatusSuccess:
		return "success"
	case StatusLocLenErr:
		return "local length error"
	case StatusLocProtErr:
		return "local protection error"
	case StatusWRFlushErr:
		return "Work Request Flushed Error"
	case StatusMWBindErr:
		return "memory management operation error"
	case StatusBadRespErr:
		return "bad response error"
	case StatusRemInvReqErr:
		return "remote invalid request error"
	case StatusRemAccessErr:
		return "remote access error"
	case StatusRemOpErr:
		return "remote operation error"
	}
	return fmt.Sprintf("unknown status %d", uint8(s))
}

// WCOpcode says which kind of request completed.
type WCOpcode uint8

const (
	WCSend    WCOpcode = iota // any Send type
	WCWrite                   // RDMA Write
	WCRead                    // RDMA Read
	WCRecv                    // a receive buffer was filled
	WCRecvImm                 // a receive was taken by Immediate Data
	WCImm                     // Immediate Data; behind an RDMA Write in one request: WCWrite
	WCAtomic                  // Atomic Operation
)

// String returns the name of the operation.
func (o WCOpcode) String() string {
	switch o {
	case WCSend:
		return "Send"
	case WCWrite:
		return "RDMA Write"
	case WCRead:
		return "RDMA Read"
	case WCRecv:
		return "Receive"
	case WCRecvImm:
		return "Receive of Immediate Data"
	case WCImm:
		return "Immediate Data"
	case WCAtomic:
		return "Atomic"
	}
	return fmt.Sprintf("unknown operation %d", uint8(o))
}

// WC is a work completion. With a status other than StatusSuccess only ID, Status, Opcode and QPNum
// are meaningful.
type WC struct {
	ID          uint64 // of the work request
	Status      Status
	Opcode      WCOpcode
	Solicited   bool // WCRecv and WCRecvImm: the peer asked for an Event (Send or Immediate Data with SE)
	Invalidated bool // WCRecv: InvalidatedSTag was invalidated by the Send
	QPNum       uint32
	ByteLen     uint32 // WCRecv and WCRead: octets received
	// InvalidatedSTag can no longer be used by the peer until it is enabled again.
	InvalidatedSTag ddp.STag
	Immediate       uint64 // WCRecvImm: what the peer sent
	Original        uint64 // WCAtomic: the value before the operation
}

// CQ takes completions. Push is called in completion order, under the connection lock. It neither
// blocks nor calls back into the QP. What it does when it is full is its own affair.
type CQ interface{ Push(WC) }

// remoteStatus is what a work request at fault gets when the peer's Terminate names it.
func remoteStatus(t *Terminate) Status {
	switch t.Layer {
	case LayerRDMA:
		switch {
		case t.EType == RemoteProtection, t.EType == RemoteOperation && t.Code == CodeCannotInvalidate:
			return StatusRemAccessErr
		case t.EType == RemoteOperation && (t.Code == CodeInvalidVersion || t.Code == CodeUnexpectedOpcode):
			return StatusRemInvReqErr
		}
	case LayerDDP:
		switch ddp.ErrorType(t.EType) {
		case ddp.TypeTagged:
			if t.Code == ddp.CodeTaggedVersion {
				return StatusRemInvReqErr
			}
			return StatusRemAccessErr
		case ddp.TypeUntagged:
			return StatusRemInvReqErr
		}
	}
	return StatusRemOpErr
}
