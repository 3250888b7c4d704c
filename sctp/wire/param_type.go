package wire

import "fmt"

// ParamType is the type of a parameter (RFC 9260 section 3.2.1). Types are unique across all
// chunks.
type ParamType uint16

// Parameter types of RFC 9260, then those of its extensions.
const (
	ParamHeartbeatInfo      ParamType = 1
	ParamIPv4               ParamType = 5
	ParamIPv6               ParamType = 6
	ParamStateCookie        ParamType = 7
	ParamUnrecognizedParam  ParamType = 8
	ParamCookiePreservative ParamType = 9
	ParamHostName           ParamType = 11
	ParamSupportedAddrTypes ParamType = 12
	ParamECNCapable         ParamType = 0x8000

	ParamOutgoingReset    ParamType = 13 // RFC 6525
	ParamIncomingReset    ParamType = 14 // RFC 6525
	ParamTSNReset         ParamType = 15 // RFC 6525
	ParamReconfigResponse ParamType = 16 // RFC 6525
	ParamAddOutStreams    ParamType = 17 // RFC 6525
	ParamAddInStreams     ParamType = 18 // RFC 6525

	ParamZeroChecksum ParamType = 0x8001 // RFC 9653

	ParamRandom    ParamType = 0x8002 // RFC 4895
	ParamChunkList ParamType = 0x8003 // RFC 4895
	ParamHMACAlgo  ParamType = 0x8004 // RFC 4895

	ParamPadding ParamType = 0x8005 // RFC 4820

	ParamKeyManagement ParamType = 0x8006 // draft-ietf-tsvwg-sctp-dtls-chunk

	ParamSupportedExtensions  ParamType = 0x8008 // RFC 5061
	ParamForwardTSN           ParamType = 0xc000 // RFC 3758
	ParamAddIP                ParamType = 0xc001 // RFC 5061
	ParamDeleteIP             ParamType = 0xc002 // RFC 5061
	ParamErrorCause           ParamType = 0xc003 // RFC 5061
	ParamSetPrimary           ParamType = 0xc004 // RFC 5061
	ParamSuccess              ParamType = 0xc005 // RFC 5061
	ParamAdaptationIndication ParamType = 0xc006 // RFC 5061
)

// UnknownAction says what to do with a parameter of unknown type, from the two high bits of the
// type (RFC 9260 section 3.2.1). stop: ignore this parameter and all after it in the chunk; else
// skip this one only. report: tell the sender as section 3.2.2 says.
func (t ParamType) UnknownAction() (stop, report bool) { return t&0x8000 == 0, t&0x4000 != 0 }

// String returns the name of the RFC, such as "State Cookie", or the number of an unknown type.
func (t ParamType) String() string {
	switch t {
	case ParamHeartbeatInfo:
		return "Heartbeat Info"
	case ParamIPv4:
		return "IPv4 Address"
	case ParamIPv6:
		return "IPv6 Address"
	case ParamStateCookie:
		return "State Cookie"
	case ParamUnrecognizedParam:
		return "Unrecognized Parameter"
	case ParamCookiePreservative:
		return "Cookie Preservative"
	case ParamHostName:
		return "Host Name Address"
	case ParamSupportedAddrTypes:
		return "Supported Address Types"
	case ParamECNCapable:
		return "ECN Capable"
	case ParamOutgoingReset:
		return "Outgoing SSN Reset Request"
	case ParamIncomingReset:
		return "Incoming SSN Reset Request"
	case ParamTSNReset:
		return "SSN/TSN Reset Request"
	case ParamReconfigResponse:
		return "Re-configuration Response"
	case ParamAddOutStreams:
		return "Add Outgoing Streams Request"
	case ParamAddInStreams:
		return "Add Incoming Streams Request"
	case ParamZeroChecksum:
		return "Zero Checksum Acceptable"
	case ParamRandom:
		return "RANDOM"
	case ParamChunkList:
		return "CHUNKS"
	case ParamHMACAlgo:
		return "HMAC-ALGO"
	case ParamPadding:
		return "PAD"
	case ParamKeyManagement:
		return "DTLS Key Management"
	case ParamSupportedExtensions:
		return "Supported Extensions"
	case ParamForwardTSN:
		return "Forward-TSN-Supported"
	case ParamAddIP:
		return "Add IP Address"
	case ParamDeleteIP:
		return "Delete IP Address"
	case ParamErrorCause:
		return "Error Cause Indication"
	case ParamSetPrimary:
		return "Set Primary Address"
	case ParamSuccess:
		return "Success Indication"
	case ParamAdaptationIndication:
		return "Adaptation Layer Indication"
	}
	return fmt.Sprintf("parameter type %#04x", uint16(t))
}
