package assoc

import (
	"net/netip"
	"time"
)

// Stats is a snapshot of an association: the STATUS primitive of section 11.1 and counters since
// its start. Octets of packets count the SCTP packet, octets of data the user's octets.
type Stats struct {
	State                 State
	OutStreams, InStreams int

	PacketsIn, PacketsOut uint64
	OctetsIn, OctetsOut   uint64
	DataIn, DataOut       uint64 // DATA chunks; DataOut counts each transmission
	DataOctetsIn          uint64 // of new DATA chunks
	Placed                uint64 // DATA chunks consumed by the Placer
	SacksIn, SacksOut     uint64
	Retransmits           uint64 // DATA chunks sent again, for whatever cause
	FastRetransmits       uint64 // entries into fast recovery
	Timeouts              uint64 // T3-rtx expiries
	DuplicatesIn          uint64 // DATA chunks received again
	OutOfWindow           uint64 // DATA chunks dropped for lack of receive window
	WrongTag              uint64 // packets dropped by the verification tag rules of section 8.5
	Malformed             uint64 // packets with a chunk that the RFC does not allow
	HeartbeatsOut         uint64
	HeartbeatAcksIn       uint64
	MTUProbesOut          uint64 // probes of path MTUs
	MTUProbesAcked        uint64 // and those that arrived
	MarksIn               uint64 // packets with new DATA that had a congestion mark
	EchoesIn              uint64 // reductions of cwnd because the peer has echoed such a mark
	ICMPContradicted      uint64 // reports of an unreachable protocol from a peer that had just been heard
	RepliesDropped        uint64 // control replies beyond one packet each, or beyond the queue

	RecvWindow  int // octets of user data that the peer may still send
	Buffered    int // octets of user data received that the user has not taken
	PeerWindow  int // octets of user data that the peer still takes
	Outstanding int // octets of user data sent and not acknowledged
	Unacked     int // DATA chunks not acknowledged cumulatively
	Queued      int // octets of user data accepted by Send and not yet sent
	Primary     int // index of the primary path
}

// PathState says what is known about a path.
type PathState uint8

// The states of a path (sections 5.4 and 8.2, RFC 7829).
const (
	PathUnconfirmed PathState = iota // not verified yet: carries HEARTBEATs only
	PathActive
	// PathPotentiallyFailed is the potentially failed state: more than PotentiallyFailed.Max.Retrans
	// consecutive errors, and new data goes elsewhere if it can.
	PathPotentiallyFailed
	PathInactive // more than Path.Max.Retrans consecutive errors
)

// PathStats is a snapshot of one path to the peer.
type PathStats struct {
	Local, Remote     netip.AddrPort
	State             PathState
	Primary           bool
	MTU               int           // largest SCTP packet, octets
	SRTT, RTTVar, RTO time.Duration // SRTT 0 before the first measurement
	Cwnd, Ssthresh    int           // octets
	Flight            int           // octets outstanding
	Errors            int           // consecutive errors
}

// Stats returns a snapshot.
func (a *Assoc) Stats() Stats {
	s := a.stats
	s.State = a.state
	s.OutStreams, s.InStreams = int(a.outStreams), int(a.inStreams)
	t := a.sender.Stats()
	s.DataOut, s.Retransmits, s.FastRetransmits, s.Timeouts = t.Chunks, t.Retransmits, t.FastRetransmits, t.Timeouts
	s.EchoesIn = t.Echoes
	s.PeerWindow, s.Outstanding, s.Queued = a.sender.Rwnd(), a.sender.DataInFlight(), a.sender.Queued()
	s.Unacked = a.sender.Outstanding()
	if a.recv != nil {
		s.RecvWindow, s.Buffered = a.recv.Window(), a.recv.Buffered()
	}
	s.Primary = a.sender.Primary().Index()
	return s
}
