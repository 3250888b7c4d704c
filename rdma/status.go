package rdma

import "github.com/rddp-go/rddp/rdma/rdmap"

// What package rdmap defines and users of QPs meet, with the names and values of libibverbs.
type (
	State    = rdmap.State    // of a QP
	Status   = rdmap.Status   // of a work completion
	WCOpcode = rdmap.WCOpcode // kind of a work completion
)

// States of a QP.
const (
	StateInit      = rdmap.StateInit      // IBV_QPS_INIT: receives may be posted
	StateRTS       = rdmap.StateRTS       // IBV_QPS_RTS: connected
	StateClosing   = rdmap.StateClosing   // IBV_QPS_SQD: what is posted is finished, nothing new is taken
	StateTerminate = rdmap.StateTerminate // IBV_QPS_SQE: an error was found, the Terminate is on its way out
	StateError     = rdmap.StateError     // IBV_QPS_ERR: the end; everything is flushed
)

// Statuses of work completions.
const (
	StatusSuccess      = rdmap.StatusSuccess
	StatusLocLenErr    = rdmap.StatusLocLenErr
	StatusLocProtErr   = rdmap.StatusLocProtErr
	StatusWRFlushErr   = rdmap.StatusWRFlushErr
	StatusMWBindErr    = rdmap.StatusMWBindErr
	StatusBadRespErr   = rdmap.StatusBadRespErr
	StatusRemInvReqErr = rdmap.StatusRemInvReqErr
	StatusRemAccessErr = rdmap.StatusRemAccessErr
	StatusRemOpErr     = rdmap.StatusRemOpErr
)

// Kinds of work completions.
const (
	WCSend    = rdmap.WCSend
	WCWrite   = rdmap.WCWrite
	WCRead    = rdmap.WCRead
	WCRecv    = rdmap.WCRecv
	WCRecvImm = rdmap.WCRecvImm
	WCImm     = rdmap.WCImm
	WCAtomic  = rdmap.WCAtomic
)
