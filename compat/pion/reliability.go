package sctp

import (
	"time"

	stack "github.com/rddp-go/rddp/sctp"
)

// Kinds of reliability, for SetReliabilityParams.
const (
	ReliabilityTypeReliable byte = 0 // until it has arrived
	ReliabilityTypeRexmit   byte = 1 // so many retransmissions
	ReliabilityTypeTimed    byte = 2 // so many milliseconds
)

// reliability is what SetReliabilityParams was told.
type reliability struct {
	unordered bool
	kind      byte
	value     uint32
}

// SetReliabilityParams sets whether messages may overtake each other, and when they are given up:
// of those written from now on. Messages of WebRTC's channel establishment are always ordered and
// reliable.
func (s *Stream) SetReliabilityParams(unordered bool, relType byte, relVal uint32) {
	s.reliability.Store(&reliability{unordered, relType, relVal})
}

// sendInfo is how a message of the stream is to be sent.
func (s *Stream) sendInfo(ppi PayloadProtocolIdentifier) stack.SendInfo {
	info := stack.SendInfo{PPID: uint32(ppi)}
	r := s.reliability.Load()
	if r == nil || ppi == PayloadTypeWebRTCDCEP { // RFC 8832 section 6
		return info
	}
	info.Unordered = r.unordered
	if r.kind == ReliabilityTypeReliable || !s.a.conn.Extensions().Has(stack.PartialReliability) {
		return info
	}
	switch info.Abandon = stack.AbandonResent; {
	case r.kind == ReliabilityTypeTimed && r.value > 0:
		info.Abandon, info.Lifetime = stack.AbandonExpired, time.Duration(r.value)*time.Millisecond
	case r.kind == ReliabilityTypeRexmit: // timed with 0 is to be sent, and not again
		info.Limit = r.value
	}
	return info
}
