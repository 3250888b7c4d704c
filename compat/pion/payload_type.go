package sctp

import (
	"fmt"

	"github.com/rddp-go/rddp/sctp/wire"
)

// PayloadProtocolIdentifier is what a message is, for the program.
type PayloadProtocolIdentifier uint32

// Payload types of WebRTC (RFC 8831 section 8, RFC 8832 section 8.1).
const (
	PayloadTypeUnknown           PayloadProtocolIdentifier = 0
	PayloadTypeWebRTCDCEP        PayloadProtocolIdentifier = 50
	PayloadTypeWebRTCString      PayloadProtocolIdentifier = 51
	PayloadTypeWebRTCBinary      PayloadProtocolIdentifier = 53
	PayloadTypeWebRTCStringEmpty PayloadProtocolIdentifier = 56
	PayloadTypeWebRTCBinaryEmpty PayloadProtocolIdentifier = 57
)

func (p PayloadProtocolIdentifier) String() string {
	switch p {
	case PayloadTypeWebRTCDCEP:
		return "WebRTC DCEP"
	case PayloadTypeWebRTCString:
		return "WebRTC String"
	case PayloadTypeWebRTCBinary:
		return "WebRTC Binary"
	case PayloadTypeWebRTCStringEmpty:
		return "WebRTC String (Empty)"
	case PayloadTypeWebRTCBinaryEmpty:
		return "WebRTC Binary (Empty)"
	}
	return fmt.Sprintf("Unknown Payload Protocol Identifier: %d", uint32(p))
}

// TryMarshalUnmarshal is for fuzzers of the original. It returns 1 for a packet whose chunks can be
// told apart, and 0 for any other.
func TryMarshalUnmarshal(msg []byte) int {
	p, err := wire.ParsePacket(msg)
	if err != nil {
		return 0
	}
	cs := p.Chunks()
	for _, ok := cs.Next(); ok; _, ok = cs.Next() {
	}
	if cs.Err() != nil {
		return 0
	}
	return 1
}
