package wire

import "fmt"

// ErrorDetectionMethod is an Error Detection Method Identifier (RFC 9653 section 8.2): what detects
// errors in place of the checksum.
type ErrorDetectionMethod uint32

// Methods of RFC 9653. The number 0 is reserved and never names one.
const (
	ErrorDetectionNone ErrorDetectionMethod = 0
	ErrorDetectionDTLS ErrorDetectionMethod = 1 // SCTP over DTLS, section 6
)

// String returns the name of the method, or the number of an unknown one.
func (m ErrorDetectionMethod) String() string {
	switch m {
	case ErrorDetectionNone:
		return "none"
	case ErrorDetectionDTLS:
		return "SCTP over DTLS"
	}
	return fmt.Sprintf("error detection method %d", uint32(m))
}

// ZeroChecksumMethod returns the Error Detection Method Identifier of a Zero Checksum Acceptable
// parameter (RFC 9653 section 4): the sender of the parameter takes packets with checksum 0 that
// this method protects.
func (p Param) ZeroChecksumMethod() (ErrorDetectionMethod, error) {
	m, err := p.readUint32(ParamZeroChecksum)
	return ErrorDetectionMethod(m), err
}

// AppendZeroChecksumAcceptable appends a Zero Checksum Acceptable parameter. An INIT or INIT ACK
// has one at most.
//
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|         Type = 0x8001         |          Length = 8           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|           Error Detection Method Identifier (EDMID)           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
func AppendZeroChecksumAcceptable(b []byte, m ErrorDetectionMethod) []byte {
	return appendUint32Param(b, ParamZeroChecksum, uint32(m))
}
