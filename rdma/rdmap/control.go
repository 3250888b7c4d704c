package rdmap

import (
	"encoding/binary"
	"fmt"

	"github.com/rddp-go/rddp/ddp"
)

// The RDMAP Control Field is the first octet that DDP reserves for its ULP (section 4.1, Figure 3).
// It is the second octet of every DDP header.
//
//	 0 1 2 3 4 5 6 7
//	+---+---+-------+
//	| RV|Rsv| Opcode|
//	+---+---+-------+
const (
	// Version is the RDMAP version (RV) of RFC 5040. Over SCTP nothing negotiates another one.
	Version = 1

	versionShift = 6
	opcodeMask   = 0x0F
)

// Opcode is the RDMA Message opcode of Figure 4, and of Figure 2 of RFC 7306.
type Opcode uint8

const (
	OpWrite        Opcode = 0 // tagged
	OpReadRequest  Opcode = 1 // untagged, queue 1
	OpReadResponse Opcode = 2 // tagged
	OpSend         Opcode = 3 // untagged, queue 0
	OpSendInv      Opcode = 4 // untagged, queue 0
	OpSendSE       Opcode = 5 // untagged, queue 0
	OpSendSEInv    Opcode = 6 // untagged, queue 0
	OpTerminate    Opcode = 7 // untagged, queue 2

	OpImmediate      Opcode = 8  // untagged, queue 0
	OpImmediateSE    Opcode = 9  // untagged, queue 0
	OpAtomicRequest  Opcode = 10 // untagged, queue 1
	OpAtomicResponse Opcode = 11 // untagged, queue 3
)

var opcodeNames = [...]string{
	"RDMA Write", "RDMA Read Request", "RDMA Read Response", "Send",
	"Send with Invalidate", "Send with SE", "Send with SE and Invalidate", "Terminate",
	"Immediate Data", "Immediate Data with SE", "Atomic Request", "Atomic Response",
}

// String returns the name of the message in the RFC.
func (o Opcode) String() string {
	if int(o) < len(opcodeNames) {
		return opcodeNames[o]
	}
	return fmt.Sprintf("reserved opcode %d", uint8(o))
}

// Untagged queues that RDMAP uses (section 3.1, RFC 7306 section 4.1).
const (
	QueueSend           = 0 // and Immediate Data
	QueueReadRequest    = 1 // and Atomic Requests
	QueueTerminate      = 2
	QueueAtomicResponse = 3
)

// Control returns the RDMAP Control Field of a message; the Rsv bits are zero.
func Control(op Opcode) uint8 { return Version<<versionShift | uint8(op)&opcodeMask }

// SplitControl returns the version and the opcode of a received Control Field. The Rsv bits are
// ignored, as section 4.1 asks.
func SplitControl(c uint8) (version uint8, op Opcode) {
	return c >> versionShift, Opcode(c & opcodeMask)
}

// untaggedRsvd is the RsvdULP field of an untagged message: Control Field and Invalidate STag. The
// STag is zero unless the opcode is one of the two with Invalidate.
func untaggedRsvd(op Opcode, inv ddp.STag) (r [5]byte) {
	r[0] = Control(op)
	binary.BigEndian.PutUint32(r[1:], uint32(inv))
	return r
}
