package ddpadapt

import (
	"encoding/binary"
	"strconv"

	"github.com/rddp-go/rddp/ddp/llp"
)

// Numbers of RFC 5043. Lengths are in octets.
const (
	// AdaptationDDP is the adaptation layer indication of DDP (section 5.1).
	AdaptationDDP = 1
	// PPIDSegment and PPIDControl are the payload protocol identifiers of DDP Segment Chunks and of
	// DDP Stream Session Control messages (section 5.2).
	PPIDSegment = 16
	PPIDControl = 17
	// MinMULPDU is the least that is ever announced to DDP as largest segment (section 9).
	MinMULPDU = 516
	// MaxInFlight is the most messages of one stream that are handed to SCTP and not acknowledged.
	// It keeps 16-bit DDP-SSNs comparable (section 10).
	MaxInFlight = 32767

	ssnLen     = 2 // DDP-SSN, ahead of every message
	controlLen = 4 // DDP-SSN and function code
)

// functionCode is the function code of a DDP Stream Session Control message (section 5.2.3, RFC
// 6581 section 7).
type functionCode uint16

const (
	fnInitiate  functionCode = 1
	fnAccept    functionCode = 2
	fnReject    functionCode = 3
	fnTerminate functionCode = 4

	fnEnhancedInitiate functionCode = 5
	fnEnhancedAccept   functionCode = 6
	fnEnhancedReject   functionCode = 7
)

var functionNames = [...]string{fnInitiate: "Initiate", fnAccept: "Accept", fnReject: "Reject",
	fnTerminate:        "Terminate",
	fnEnhancedInitiate: "EnhancedInitiate", fnEnhancedAccept: "EnhancedAccept", fnEnhancedReject: "EnhancedReject"}

func (f functionCode) String() string {
	if f >= fnInitiate && f <= fnEnhancedReject {
		return functionNames[f]
	}
	return "function " + strconv.Itoa(int(f))
}

// isEnhanced says that the private data begins with a Setup.
func (f functionCode) isEnhanced() bool { return f >= fnEnhancedInitiate }

// plainCode is the function that an enhanced one stands for.
func (f functionCode) plainCode() functionCode {
	if f.isEnhanced() {
		return f - fnEnhancedInitiate + fnInitiate
	}
	return f
}

// enhancedIf is the enhanced function for f if so asked, else f.
func (f functionCode) enhancedIf(enhanced bool) functionCode {
	if enhanced {
		return f - fnInitiate + fnEnhancedInitiate
	}
	return f
}

// userMessage is one received user message, taken apart. payload points into the packet.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------------------------------+-------------------------------+
//	|            DDP-SSN            | PPID 16: DDP Segment ...      |
//	|                               | PPID 17: Function Code        |
//	+-------------------------------+-------------------------------+
//	|                 PPID 17: Private Data ...                     |
//	+---------------------------------------------------------------+
type userMessage struct {
	ssn     uint16
	hasSSN  bool         // ssn is there
	fn      functionCode // of a control message, 0 for a segment
	fault   Fault        // why the message fits no sequence wherever it stands, or 0
	payload []byte       // the DDP Segment, or the private data
}

// parseMessage takes a user message apart (sections 5.2.1 to 5.2.3). What is malformed but has a
// DDP-SSN keeps it, so that it is judged at its turn.
func parseMessage(ppid uint32, unordered bool, b []byte) userMessage {
	if ppid != PPIDSegment && ppid != PPIDControl {
		return userMessage{fault: FaultPPID}
	}
	if len(b) < ssnLen {
		return userMessage{fault: FaultShort}
	}
	msg := userMessage{ssn: binary.BigEndian.Uint16(b), hasSSN: true}
	switch {
	case ppid == PPIDSegment:
		msg.payload = b[ssnLen:]
	case len(b) < controlLen:
		msg.fault = FaultShort
	default:
		msg.fn = functionCode(binary.BigEndian.Uint16(b[ssnLen:]))
		msg.payload = b[controlLen:]
		msg.fault = checkControl(msg.fn, len(msg.payload))
	}
	if !unordered {
		msg.fault = FaultOrdered
	}
	return msg
}

func checkControl(fn functionCode, private int) Fault {
	switch {
	case fn < fnInitiate || fn > fnEnhancedReject:
		return FaultFunction
	case private > llp.MaxPrivateData, fn == fnTerminate && private > 0:
		return FaultPrivateData
	case private < llp.SetupLen && (fn == fnEnhancedInitiate || fn == fnEnhancedAccept):
		return FaultSetup
	}
	return 0
}

// putControl writes the fixed part of a control message, controlLen octets.
func putControl(b []byte, ssn uint16, fn functionCode) {
	binary.BigEndian.PutUint16(b, ssn)
	binary.BigEndian.PutUint16(b[ssnLen:], uint16(fn))
}
