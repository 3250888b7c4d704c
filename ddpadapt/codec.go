package ddpadapt

import (
	"encoding/binary"
	"strconv"
)

// Numbers of RFC 5043. Lengths are in octets.
const (
	// AdaptationDDP is the adaptation layer indication of DDP (section 5.1).
	AdaptationDDP = 1
	// PPIDSegment and PPIDControl are the payload protocol identifiers of DDP Segment Chunks and of
	// DDP Stream Session Control messages (section 5.2).
	PPIDSegment = 16
	PPIDControl = 17
	// MaxPrivateData is the most private data that a control message carries (section 5.2.3).
	MaxPrivateData = 512
	// MinMULPDU is the least that is ever announced to DDP as largest segment (section 9).
	MinMULPDU = 516
	// MaxInFlight is the most messages of one stream that are handed to SCTP and not acknowledged,
	// so that 16-bit DDP-SSNs can be compared (section 10).
	MaxInFlight = 32767

	ssnLen     = 2 // DDP-SSN, ahead of every message
	controlLen = 4 // DDP-SSN and function code
)

// function is the function code of a DDP Stream Session Control message (section 5.2.3, RFC 6581
// section 7).
type function uint16

const (
	initiate  function = 1
	accept    function = 2
	reject    function = 3
	terminate function = 4

	enhancedInitiate function = 5
	enhancedAccept   function = 6
	enhancedReject   function = 7
)

var functionNames = [...]string{initiate: "Initiate", accept: "Accept", reject: "Reject", terminate: "Terminate",
	enhancedInitiate: "EnhancedInitiate", enhancedAccept: "EnhancedAccept", enhancedReject: "EnhancedReject"}

func (f function) String() string {
	if f >= initiate && f <= enhancedReject {
		return functionNames[f]
	}
	return "function " + strconv.Itoa(int(f))
}

// enhanced says that the private data begins with a Setup.
func (f function) enhanced() bool { return f >= enhancedInitiate }

// plain is the function that an enhanced one stands for.
func (f function) plain() function {
	if f.enhanced() {
		return f - enhancedInitiate + initiate
	}
	return f
}

// variant is the enhanced function for f if so asked, else f.
func (f function) variant(enhanced bool) function {
	if enhanced {
		return f - initiate + enhancedInitiate
	}
	return f
}

// message is one received user message, taken apart. payload points into the packet.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------------------------------+-------------------------------+
//	|            DDP-SSN            | PPID 16: DDP Segment ...      |
//	|                               | PPID 17: Function Code        |
//	+-------------------------------+-------------------------------+
//	|                 PPID 17: Private Data ...                     |
//	+---------------------------------------------------------------+
type message struct {
	ssn      uint16
	numbered bool     // ssn is there
	fn       function // of a control message, 0 for a segment
	fault    Fault    // why the message fits no sequence wherever it stands, or 0
	payload  []byte   // the DDP Segment, or the private data
}

// parse takes a user message apart (sections 5.2.1 to 5.2.3). What is malformed but has a DDP-SSN
// keeps it, so that it is judged at its turn.
func parse(ppid uint32, unordered bool, b []byte) message {
	if ppid != PPIDSegment && ppid != PPIDControl {
		return message{fault: FaultPPID}
	}
	if len(b) < ssnLen {
		return message{fault: FaultShort}
	}
	msg := message{ssn: binary.BigEndian.Uint16(b), numbered: true}
	switch {
	case ppid == PPIDSegment:
		msg.payload = b[ssnLen:]
	case len(b) < controlLen:
		msg.fault = FaultShort
	default:
		msg.fn = function(binary.BigEndian.Uint16(b[ssnLen:]))
		msg.payload = b[controlLen:]
		msg.fault = checkControl(msg.fn, len(msg.payload))
	}
	if !unordered {
		msg.fault = FaultOrdered
	}
	return msg
}

func checkControl(fn function, private int) Fault {
	switch {
	case fn < initiate || fn > enhancedReject:
		return FaultFunction
	case private > MaxPrivateData, fn == terminate && private > 0:
		return FaultPrivateData
	case private < setupLen && (fn == enhancedInitiate || fn == enhancedAccept):
		return FaultSetup
	}
	return 0
}

// putControl writes the fixed part of a control message, controlLen octets.
func putControl(b []byte, ssn uint16, fn function) {
	binary.BigEndian.PutUint16(b, ssn)
	binary.BigEndian.PutUint16(b[ssnLen:], uint16(fn))
}
