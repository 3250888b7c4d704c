package wire

import (
	"encoding/binary"
	"fmt"
)

// Lengths of re-configuration parameters in octets, without stream numbers.
const (
	outgoingResetLen = 16
	incomingResetLen = 8
	addStreamsLen    = 12
	responseLen      = 12
	responseTSNLen   = 20
)

// OutgoingReset is a view of an Outgoing SSN Reset Request parameter (RFC 6525 section 4.1).
//
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|      Parameter Type = 13      | Parameter Length = 16 + 2 * N |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|           Re-configuration Request Sequence Number            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|           Re-configuration Response Sequence Number           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                   Sender's Last Assigned TSN                  |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Stream Number 1 (optional)   |  Stream Number 2 (optional)   |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type OutgoingReset []byte

// AsOutgoingReset returns p as an Outgoing SSN Reset Request.
func AsOutgoingReset(p Param) (OutgoingReset, error) {
	if err := p.checkType(ParamOutgoingReset, outgoingResetLen, MaxParamLen); err != nil {
		return nil, err
	}
	if len(p)%2 != 0 {
		return nil, ErrParamLength
	}
	return OutgoingReset(p), nil
}

// RequestSeq returns the Re-configuration Request Sequence Number.
func (r OutgoingReset) RequestSeq() uint32 { return binary.BigEndian.Uint32(r[4:]) }

// ResponseSeq returns the Re-configuration Response Sequence Number.
func (r OutgoingReset) ResponseSeq() uint32 { return binary.BigEndian.Uint32(r[8:]) }

// LastTSN returns the Sender's Last Assigned TSN.
func (r OutgoingReset) LastTSN() TSN { return TSN(binary.BigEndian.Uint32(r[12:])) }

// Streams returns the stream numbers to reset. None means all.
func (r OutgoingReset) Streams() Uint16List { return Uint16List(r[outgoingResetLen:]) }

// AppendOutgoingReset appends an Outgoing SSN Reset Request. No streams means all. Streams that
// would take it past MaxParamLen are left out from the end.
func AppendOutgoingReset(b []byte, requestSeq, responseSeq uint32, lastTSN TSN, streams []StreamID) []byte {
	streams = streams[:min(len(streams), (MaxParamLen-outgoingResetLen)/2)]
	start := len(b)
	b = appendTLVHeader(b, uint16(ParamOutgoingReset), outgoingResetLen)
	b = binary.BigEndian.AppendUint32(b, requestSeq)
	b = binary.BigEndian.AppendUint32(b, responseSeq)
	b = binary.BigEndian.AppendUint32(b, uint32(lastTSN))
	return setLength(appendStreams(b, streams), start)
}

// IncomingReset is a view of an Incoming SSN Reset Request parameter (RFC 6525 section 4.2).
//
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|      Parameter Type = 14      | Parameter Length = 8 + 2 * N  |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|           Re-configuration Request Sequence Number            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Stream Number 1 (optional)   |  Stream Number 2 (optional)   |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type IncomingReset []byte

// AsIncomingReset returns p as an Incoming SSN Reset Request.
func AsIncomingReset(p Param) (IncomingReset, error) {
	if err := p.checkType(ParamIncomingReset, incomingResetLen, MaxParamLen); err != nil {
		return nil, err
	}
	if len(p)%2 != 0 {
		return nil, ErrParamLength
	}
	return IncomingReset(p), nil
}

// RequestSeq returns the Re-configuration Request Sequence Number.
func (r IncomingReset) RequestSeq() uint32 { return binary.BigEndian.Uint32(r[4:]) }

// Streams returns the stream numbers to reset. None means all.
func (r IncomingReset) Streams() Uint16List { return Uint16List(r[incomingResetLen:]) }

// AppendIncomingReset appends an Incoming SSN Reset Request. No streams means all. Streams that
// would take it past MaxParamLen are left out from the end.
func AppendIncomingReset(b []byte, requestSeq uint32, streams []StreamID) []byte {
	streams = streams[:min(len(streams), (MaxParamLen-incomingResetLen)/2)]
	start := len(b)
	b = appendUint32Param(b, ParamIncomingReset, requestSeq)
	return setLength(appendStreams(b, streams), start)
}

func appendStreams(b []byte, streams []StreamID) []byte {
	for _, s := range streams {
		b = binary.BigEndian.AppendUint16(b, uint16(s))
	}
	return b
}

// TSNResetSeq returns the Re-configuration Request Sequence Number of an SSN/TSN Reset Request,
// which holds nothing else (RFC 6525 section 4.3).
func (p Param) TSNResetSeq() (uint32, error) { return p.readUint32(ParamTSNReset) }

// AppendTSNReset appends an SSN/TSN Reset Request parameter.
func AppendTSNReset(b []byte, requestSeq uint32) []byte {
	return appendUint32Param(b, ParamTSNReset, requestSeq)
}

// AddStreams is a view of an Add Outgoing Streams or Add Incoming Streams Request parameter (RFC
// 6525 sections 4.5 and 4.6).
//
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|    Parameter Type = 17, 18    |     Parameter Length = 12     |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|           Re-configuration Request Sequence Number            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|     Number of new streams     |           Reserved            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type AddStreams []byte

// AsAddStreams returns p as an Add Outgoing Streams or Add Incoming Streams Request.
func AsAddStreams(p Param) (AddStreams, error) {
	t := ParamAddOutStreams
	if len(p) >= paramHeaderLen && p.Type() == ParamAddInStreams {
		t = ParamAddInStreams
	}
	if err := p.checkType(t, addStreamsLen, addStreamsLen); err != nil {
		return nil, err
	}
	return AddStreams(p), nil
}

// Type returns ParamAddOutStreams or ParamAddInStreams.
func (a AddStreams) Type() ParamType { return Param(a).Type() }

// RequestSeq returns the Re-configuration Request Sequence Number.
func (a AddStreams) RequestSeq() uint32 { return binary.BigEndian.Uint32(a[4:]) }

// Count returns the Number of new streams.
func (a AddStreams) Count() uint16 { return binary.BigEndian.Uint16(a[8:]) }

// AppendAddStreams appends an Add Outgoing Streams or Add Incoming Streams Request, as t says.
func AppendAddStreams(b []byte, t ParamType, requestSeq uint32, count uint16) []byte {
	b = appendTLVHeader(b, uint16(t), addStreamsLen)
	b = binary.BigEndian.AppendUint32(b, requestSeq)
	b = binary.BigEndian.AppendUint16(b, count)
	return append(b, 0, 0)
}

// ReconfigResult is the Result of a Re-configuration Response (RFC 6525 section 4.4).
type ReconfigResult uint32

// Results of RFC 6525.
const (
	ReconfigNothingToDo       ReconfigResult = 0
	ReconfigPerformed         ReconfigResult = 1
	ReconfigDenied            ReconfigResult = 2
	ReconfigWrongSSN          ReconfigResult = 3
	ReconfigAlreadyInProgress ReconfigResult = 4
	ReconfigBadSeq            ReconfigResult = 5
	ReconfigInProgress        ReconfigResult = 6
)

var reconfigResults = [...]string{
	"Success - Nothing to do", "Success - Performed", "Denied", "Error - Wrong SSN",
	"Error - Request already in progress", "Error - Bad Sequence Number", "In progress",
}

// String returns the description of the RFC, or the number of an unknown result.
func (r ReconfigResult) String() string {
	if uint64(r) < uint64(len(reconfigResults)) {
		return reconfigResults[r]
	}
	return fmt.Sprintf("result %d", uint32(r))
}

// ReconfigResponse is a view of a Re-configuration Response parameter (RFC 6525 section 4.4).
//
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|      Parameter Type = 16      |       Parameter Length        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|           Re-configuration Response Sequence Number           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                            Result                             |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                  Sender's Next TSN (optional)                 |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                 Receiver's Next TSN (optional)                |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type ReconfigResponse []byte

// AsReconfigResponse returns p as a Re-configuration Response with both Next TSN fields or neither.
func AsReconfigResponse(p Param) (ReconfigResponse, error) {
	if err := p.checkType(ParamReconfigResponse, responseLen, responseTSNLen); err != nil {
		return nil, err
	}
	if len(p) != responseLen && len(p) != responseTSNLen {
		return nil, ErrParamLength
	}
	return ReconfigResponse(p), nil
}

// ResponseSeq returns the Re-configuration Response Sequence Number.
func (r ReconfigResponse) ResponseSeq() uint32 { return binary.BigEndian.Uint32(r[4:]) }

// Result returns the Result.
func (r ReconfigResponse) Result() ReconfigResult {
	return ReconfigResult(binary.BigEndian.Uint32(r[8:]))
}

// NextTSNs returns the Sender's and the Receiver's Next TSN, and whether the response has them.
func (r ReconfigResponse) NextTSNs() (sender, receiver TSN, ok bool) {
	if len(r) != responseTSNLen {
		return 0, 0, false
	}
	return TSN(binary.BigEndian.Uint32(r[12:])), TSN(binary.BigEndian.Uint32(r[16:])), true
}

// AppendReconfigResponse appends a Re-configuration Response without Next TSN fields.
func AppendReconfigResponse(b []byte, responseSeq uint32, result ReconfigResult) []byte {
	return appendResponse(b, responseLen, responseSeq, result)
}

// AppendTSNResetResponse appends a Re-configuration Response to an SSN/TSN Reset Request, which has
// both Next TSN fields.
func AppendTSNResetResponse(b []byte, responseSeq uint32, result ReconfigResult, sender, receiver TSN) []byte {
	b = appendResponse(b, responseTSNLen, responseSeq, result)
	b = binary.BigEndian.AppendUint32(b, uint32(sender))
	return binary.BigEndian.AppendUint32(b, uint32(receiver))
}

func appendResponse(b []byte, length int, responseSeq uint32, result ReconfigResult) []byte {
	b = appendTLVHeader(b, uint16(ParamReconfigResponse), length)
	b = binary.BigEndian.AppendUint32(b, responseSeq)
	return binary.BigEndian.AppendUint32(b, uint32(result))
}
