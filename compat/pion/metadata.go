package sctp

import (
	"math"
	"time"

	stack "github.com/rddp-go/rddp/sctp"
)

// BufferedAmount returns the octets that were written and are not acknowledged.
func (a *Association) BufferedAmount() int { return a.conn.Unacked() }

// BytesSent returns the octets of all packets sent.
func (a *Association) BytesSent() uint64 { return a.carrier.sent.Load() }

// BytesReceived returns the octets of all packets received.
func (a *Association) BytesReceived() uint64 { return a.carrier.received.Load() }

// path returns the path to the peer.
func (a *Association) path() stack.PathStats {
	if paths := a.conn.Paths(); len(paths) > 0 {
		return paths[0]
	}
	return stack.PathStats{}
}

// MTU returns the octets of the longest packet.
func (a *Association) MTU() uint32 { return uint32(a.path().MaxPacket) }

// CWND returns the congestion window, in octets.
func (a *Association) CWND() uint32 { return uint32(min(a.path().Cwnd, math.MaxUint32)) }

// RWND returns the window that the peer has left, in octets.
func (a *Association) RWND() uint32 { return uint32(a.conn.Stats().PeerWindow) }

// SRTT returns the smoothed round trip time, in milliseconds.
func (a *Association) SRTT() float64 { return float64(a.path().SRTT) / float64(time.Millisecond) }

// MaxMessageSize returns the longest message to send, in octets.
func (a *Association) MaxMessageSize() uint32 { return a.maxMessageSize.Load() }

// SetMaxMessageSize sets the longest message to send, in octets.
func (a *Association) SetMaxMessageSize(maxMsgSize uint32) { a.maxMessageSize.Store(maxMsgSize) }

// ActiveHeartbeat sends a HEARTBEAT, which measures the round trip time.
func (a *Association) ActiveHeartbeat() { _ = a.conn.RequestHeartbeat(peer.Addr()) }

// Metadata returns what both sides have agreed on, while the association lives.
func (a *Association) Metadata() (AssociationMetadata, bool) {
	if a.hasEnded() {
		return AssociationMetadata{}, false
	}
	e := a.conn.Extensions()
	zeroChecksum := e.Has(stack.ZeroChecksum)
	m := AssociationMetadata{MessageInterleavingEnabled: e.Has(stack.Interleaving),
		ZeroChecksumSendingEnabled: zeroChecksum, ZeroChecksumReceivingEnabled: zeroChecksum}
	switch {
	case e.Has(stack.PartialReliability | stack.Interleaving):
		m.PartialReliabilityMode = PartialReliabilityModeIForwardTSN
	case e.Has(stack.PartialReliability):
		m.PartialReliabilityMode = PartialReliabilityModeForwardTSN
	}
	return m, true
}

// AssociationMetadata is what both sides have agreed on.
type AssociationMetadata struct {
	MessageInterleavingEnabled   bool                   `json:"messageInterleavingEnabled"`
	PartialReliabilityMode       PartialReliabilityMode `json:"partialReliabilityMode"`
	ZeroChecksumSendingEnabled   bool                   `json:"zeroChecksumSendingEnabled"`
	ZeroChecksumReceivingEnabled bool                   `json:"zeroChecksumReceivingEnabled"`
}

// PartialReliabilityMode is by which chunk the peer hears of messages that were given up.
type PartialReliabilityMode int

// Values of PartialReliabilityMode.
const (
	PartialReliabilityModeNone PartialReliabilityMode = iota
	PartialReliabilityModeForwardTSN
	PartialReliabilityModeIForwardTSN
)
