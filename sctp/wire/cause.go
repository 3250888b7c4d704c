package wire

import (
	"encoding/binary"
	"fmt"
)

// CauseCode is the code of an error cause (RFC 9260 section 3.3.10).
type CauseCode uint16

// Cause codes of RFC 9260, then those of its extensions.
const (
	CauseInvalidStream         CauseCode = 1
	CauseMissingParam          CauseCode = 2
	CauseStaleCookie           CauseCode = 3
	CauseOutOfResource         CauseCode = 4
	CauseUnresolvableAddress   CauseCode = 5
	CauseUnrecognizedChunkType CauseCode = 6
	CauseInvalidParam          CauseCode = 7
	CauseUnrecognizedParams    CauseCode = 8
	CauseNoUserData            CauseCode = 9
	CauseCookieWhileShutdown   CauseCode = 10
	CauseRestart               CauseCode = 11
	CauseUserAbort             CauseCode = 12
	CauseProtocolViolation     CauseCode = 13

	CauseNoDTLSSupport     CauseCode = 100 // draft-ietf-tsvwg-sctp-dtls-chunk, to be confirmed by IANA
	CauseNoCommonKeyMethod CauseCode = 101 // the same
	CauseTieBreaker        CauseCode = 102 // the same
	CauseKeyRoles          CauseCode = 103 // the same

	CauseDeleteLastAddr   CauseCode = 0x00a0 // RFC 5061
	CauseResourceShortage CauseCode = 0x00a1 // RFC 5061
	CauseDeleteSourceAddr CauseCode = 0x00a2 // RFC 5061
	CauseIllegalAsconfAck CauseCode = 0x00a3 // RFC 5061
	CauseNoAuthorization  CauseCode = 0x00a4 // RFC 5061
	CauseUnsupportedHMAC  CauseCode = 0x0105 // RFC 4895
)

// String returns the name of the RFC, such as "Stale Cookie", or the number of an unknown code.
func (c CauseCode) String() string {
	switch c {
	case CauseInvalidStream:
		return "Invalid Stream Identifier"
	case CauseMissingParam:
		return "Missing Mandatory Parameter"
	case CauseStaleCookie:
		return "Stale Cookie"
	case CauseOutOfResource:
		return "Out of Resource"
	case CauseUnresolvableAddress:
		return "Unresolvable Address"
	case CauseUnrecognizedChunkType:
		return "Unrecognized Chunk Type"
	case CauseInvalidParam:
		return "Invalid Mandatory Parameter"
	case CauseUnrecognizedParams:
		return "Unrecognized Parameters"
	case CauseNoUserData:
		return "No User Data"
	case CauseCookieWhileShutdown:
		return "Cookie Received While Shutting Down"
	case CauseRestart:
		return "Restart of an Association with New Addresses"
	case CauseUserAbort:
		return "User-Initiated Abort"
	case CauseProtocolViolation:
		return "Protocol Violation"
	case CauseNoDTLSSupport:
		return "Missing DTLS Chunk Support"
	case CauseNoCommonKeyMethod:
		return "No Common DTLS Key Management Method"
	case CauseTieBreaker:
		return "DTLS Key Management Tie Breaker Collision"
	case CauseKeyRoles:
		return "Incompatible DTLS Key Management Roles"
	case CauseDeleteLastAddr:
		return "Request to Delete Last Remaining IP Address"
	case CauseResourceShortage:
		return "Operation Refused Due to Resource Shortage"
	case CauseDeleteSourceAddr:
		return "Request to Delete Source IP Address"
	case CauseIllegalAsconfAck:
		return "Association Aborted Due to Illegal ASCONF-ACK"
	case CauseNoAuthorization:
		return "Request Refused - No Authorization"
	case CauseUnsupportedHMAC:
		return "Unsupported HMAC Identifier"
	}
	return fmt.Sprintf("cause code %d", uint16(c))
}

// Cause is a view of one error cause: header and information without padding (RFC 9260 section
// 3.3.10).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|          Cause Code           |         Cause Length          |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	/                  Cause-Specific Information                   /
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type Cause []byte

// Code returns the Cause Code.
func (c Cause) Code() CauseCode { return CauseCode(binary.BigEndian.Uint16(c)) }

// Info returns the Cause-Specific Information: for CauseUserAbort the Upper Layer Abort Reason, for
// CauseProtocolViolation the Additional Information.
func (c Cause) Info() []byte { return c[paramHeaderLen:] }

// Causes walks error causes. Copying it copies the position.
type Causes struct{ tlvs tlvReader }

// Next returns the next error cause, and false at the end or at a malformed cause; Err tells the
// two apart.
func (cs *Causes) Next() (Cause, bool) {
	c, ok := cs.tlvs.next()
	return c, ok
}

// Err returns nil when Next has reached the proper end, else ErrParamShort or ErrParamPartial.
func (cs *Causes) Err() error { return cs.tlvs.asError() }

// AppendCause appends an error cause with its padding. info is the Cause-Specific Information. It
// is the Chunk for CauseUnrecognizedChunkType, the Param for CauseUnresolvableAddress, and a reason
// in any form for CauseUserAbort. It is nil for causes of length 4. Information longer than
// MaxParamLen-4 octets is cut to that length. For causes that list several parameters see
// CloseParam.
func AppendCause(b []byte, code CauseCode, info []byte) []byte {
	return appendTLV(b, uint16(code), info)
}
