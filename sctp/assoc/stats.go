package assoc

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/internal/counters"
	"github.com/rddp-go/rddp/sctp/internal/tx"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Stats is a snapshot of an association: the STATUS primitive of section 11.1, and its counters.
type Stats struct {
	State                 State
	OutStreams, InStreams int
	Counters

	RecvWindow  int // octets of user data that the peer may still send
	Buffered    int // octets of user data received that the user has not taken
	PeerWindow  int // octets of user data that the peer still takes
	Outstanding int // octets of user data sent and not acknowledged
	Unacked     int // DATA chunks not acknowledged cumulatively
	Queued      int // octets of user data accepted by Send and not yet sent
	Primary     int // index of the primary path

	Trips Histogram // round trip times measured, over all paths

	Keys KeyStats // of Config.Protected
}

// KeyStats is what is known of the keys of an association: which there are, and what they have
// done.
type KeyStats struct {
	Epoch          uint64 // of the keys in use, 3 the first; less: there are none
	Sealed, Opened uint64 // packets
	Failed         uint64 // attempts to open that have failed, of all keys
	Handshakes     uint64 // that have led to keys
	HandshakesLost uint64 // that have not
}

// Histogram counts durations. Count[i] counts those of up to 2^i microseconds that the one before
// does not count. The last counts all that are longer.
type Histogram = counters.Histogram

// Counters count what has happened to an association since its start. Octets of packets count the
// SCTP packet, octets of data the user's octets. Packets that an endpoint drops before they reach
// an association are counted there.
type Counters struct {
	PacketsIn, PacketsOut uint64 // packets; in: with the right ports, whatever their tag
	OctetsIn, OctetsOut   uint64 // octets of these packets
	DataIn, DataOut       uint64 // DATA chunks; out: each transmission
	DataOctetsIn          uint64 // user data of new DATA chunks
	Placed                uint64 // DATA chunks consumed by the Placer
	SacksIn, SacksOut     uint64 // SACK chunks
	Retransmits           uint64 // DATA chunks sent again, for whatever cause
	FastRetransmits       uint64 // entries into fast recovery
	Timeouts              uint64 // T3-rtx expiries
	// DATA chunks sent again because nothing was heard for two round trips (RFC 8985 section 7)
	TailProbes         uint64
	WindowProbes       uint64 // DATA chunks sent into a window that the peer has closed (section 6.1)
	Reneged            uint64 // DATA chunks that the peer had acknowledged in a gap block and then no more
	DuplicatesReported uint64 // DATA chunks that the peer says it has received again
	HeartbeatsIn       uint64 // probes of the peer, answered or not
	HeartbeatsOut      uint64 // HEARTBEATs, without probes of the MTU
	HeartbeatAcksIn    uint64 // answers to HEARTBEATs that were outstanding
	MTUProbesOut       uint64 // probes of path MTUs
	MTUProbesAcked     uint64 // probes of path MTUs that arrived
	// packets that the link found too long when its MTU had fallen, sent again in another form
	PacketsRefused uint64
	MarksIn        uint64 // packets with new DATA that had a congestion mark
	EchoesIn       uint64 // reductions of cwnd because the peer has echoed such a mark
	ErrorsIn       uint64 // ERROR chunks
	ICMPIn         uint64 // ICMP reports that quote a packet of the association

	// What was dropped, and why.
	WrongTag         uint64 // packets dropped by the verification tag rules of section 8.5
	ForeignSource    uint64 // packets with the right tag from where the peer has no address (section 8.4)
	Malformed        uint64 // packets with a chunk that the RFC does not allow
	Unexpected       uint64 // chunks that have no meaning in the state of the association
	UnknownChunks    uint64 // chunks of a type that is not used, skipped or reported as section 3.2 says
	SacksPassedOver  uint64 // SACK chunks with another behind them in their packet
	DuplicatesIn     uint64 // DATA chunks received again
	OutOfWindow      uint64 // DATA chunks dropped for lack of receive window, or too far ahead
	Evicted          uint64 // DATA chunks dropped after a gap block had reported them, for want of room (section 6.2)
	InvalidStream    uint64 // DATA chunks for a stream that does not exist, discarded and reported (section 6.5)
	LeftUnacked      uint64 // DATA chunks that the Placer had no room for, left to be sent again
	BadHeartbeatAcks uint64 // HEARTBEAT ACKs that answer no outstanding HEARTBEAT
	BadCookies       uint64 // COOKIE ECHOs dropped: not signed here, of another peer, or of no row of Table 12
	StaleCookies     uint64 // COOKIE ECHOs answered by ERROR because their life is over
	RepliesDropped   uint64 // control replies beyond one packet each, or beyond the queue
	AnswersDropped   uint64 // packets with tags of their own, such as an INIT ACK, beyond the queue
	ErrorReportsLost uint64 // ERROR chunks whose report found too many others waiting to be polled
	ICMPIgnored      uint64 // ICMP reports that section 10 has no use for
	ICMPContradicted uint64 // reports of an unreachable protocol from a peer that had just been heard
	AddressesIgnored uint64 // addresses of the peer beyond MaxPaths
	// packets, or DATA, in the clear where only a lone DTLS chunk counts, or only key management
	Unprotected uint64
	NotOpened   uint64 // packets whose DTLS chunk did not open: forged, changed, replayed or without a key

	// Rare events.
	InitsIn uint64 // INITs of the peer for the association, which never change it (section 5.2)
	// INITs for the association answered by ABORT: not acceptable, or a restart that adds addresses
	InitsRefused   uint64
	Restarts       uint64 // restarts of the association by the peer
	PathsDown      uint64 // paths that became inactive
	PathsSuspected uint64 // times that new data has left an active path which was silent while another answered
	PathsUp        uint64 // paths that were confirmed or have recovered
	Violations     uint64 // 1 when this side ended the association because of what the peer had sent
	// 1 when this side ended the association because it had contradicted itself: an *InternalError
	Contradictions uint64
}

// commonCounters are the Counters that nearly every association uses. Most do not use the others,
// which take four times the memory.
type commonCounters struct {
	PacketsOut, OctetsOut, SacksOut                       uint64
	PacketsIn, OctetsIn, DataIn, DataOctetsIn, Placed     uint64
	SacksIn, HeartbeatsIn, HeartbeatsOut, HeartbeatAcksIn uint64
	MTUProbesOut, MTUProbesAcked                          uint64
	rare                                                  *Counters // nil until there are any
}

// rareCounters returns the Counters that are not among the common ones.
func (a *Assoc) rareCounters() *Counters {
	if a.stats.rare == nil {
		a.stats.rare = new(Counters)
	}
	return a.stats.rare
}

// allCounters returns all Counters.
func (u *commonCounters) allCounters() (c Counters) {
	if u.rare != nil {
		c = *u.rare
	}
	c.PacketsIn, c.PacketsOut, c.OctetsIn, c.OctetsOut = u.PacketsIn, u.PacketsOut, u.OctetsIn, u.OctetsOut
	c.DataIn, c.DataOctetsIn, c.Placed, c.SacksIn, c.SacksOut = u.DataIn, u.DataOctetsIn, u.Placed, u.SacksIn,
		u.SacksOut
	c.HeartbeatsIn, c.HeartbeatsOut, c.HeartbeatAcksIn = u.HeartbeatsIn, u.HeartbeatsOut, u.HeartbeatAcksIn
	c.MTUProbesOut, c.MTUProbesAcked = u.MTUProbesOut, u.MTUProbesAcked
	return c
}

// PathState says what is known about a path.
type PathState uint8

// The states of a path (sections 5.4 and 8.2, RFC 7829).
const (
	PathUnconfirmed PathState = iota // not verified yet: carries HEARTBEATs only
	PathActive
	// PathPotentiallyFailed is the potentially failed state: more than
	// PotentiallyFailed.Max.Retrans consecutive errors, and new data goes elsewhere if it can.
	PathPotentiallyFailed
	PathInactive // more than Path.Max.Retrans consecutive errors
)

var pathStateNames = [...]string{"unconfirmed", "active", "potentially failed", "inactive"}

// String returns a name, for people.
func (s PathState) String() string { return pathStateNames[s] }

// MarshalText makes JSON show the name.
func (s PathState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// PathStats is a snapshot of one path to the peer.
type PathStats struct {
	Local, Remote     netip.AddrPort
	State             PathState
	Primary           bool
	Suspected         bool          // active, but recently silent while another path answered: new data avoids it
	MTU               int           // largest IP packet, octets; over a link without IP, as if it had IPv4 or IPv6
	MaxPacket         int           // largest SCTP packet, octets
	SRTT, RTTVar, RTO time.Duration // SRTT 0 before the first measurement
	Cwnd, Ssthresh    int           // octets
	Flight            int           // octets outstanding
	Errors            int           // consecutive errors
	Controller        string        // of congestion: the name of its type
	DataIn            uint64        // packets with DATA that came from there
	Heartbeat         time.Duration // HB.interval, negative without HEARTBEATs
	DSCP              uint8         // see Config
	FlowLabel         uint32        // see Config
}

// String shows the addresses, the state, and what bounds the data of the path, for logs.
func (s PathStats) String() string {
	b := fmt.Appendf(nil, "%v -> %v %v", s.Local.Addr(), s.Remote.Addr(), s.State)
	if s.Primary {
		b = append(b, " primary"...)
	}
	if s.Suspected {
		b = append(b, " suspected"...)
	}
	return string(fmt.Appendf(b, " mtu=%d srtt=%v rto=%v cwnd=%d flight=%d errors=%d",
		s.MTU, s.SRTT, s.RTO, s.Cwnd, s.Flight, s.Errors))
}

// Stats returns a snapshot.
func (a *Assoc) Stats() Stats {
	s := Stats{State: a.state, Counters: a.stats.allCounters(), Trips: a.stats.rttSamples.Histogram()}
	s.OutStreams, s.InStreams = int(a.agreed.outStreams), int(a.agreed.inStreams)
	s.AnswersDropped = a.outbox.Dropped()
	s.Keys = a.keyStats()
	s.Primary = a.primaryPath().Index()
	if a.IsIdle() {
		r := &a.idleState
		s.Counters.addSenderStats(r.sender.Stats())
		s.PeerWindow, s.RecvWindow, s.Evicted = r.sender.Rwnd(), r.receiver.Window(a.cfg.initialWindow()),
			r.receiver.Evicted()
		return s
	}
	t := a.sender()
	s.Counters.addSenderStats(t.Stats())
	s.PeerWindow, s.Outstanding, s.Queued, s.Unacked = t.Rwnd(), t.DataInFlight(), t.Queued(), t.Outstanding()
	if a.recv != nil {
		s.RecvWindow, s.Buffered = a.recv.Window(), a.recv.Buffered()
		s.Evicted = a.recv.Evicted()
	}
	return s
}

// CumTSN returns the cumulative TSN of what has come (RFC 9260 section 6.2). No DATA chunk up to it
// is missing.
func (a *Assoc) CumTSN() wire.TSN {
	if a.recv == nil {
		return a.idleState.receiver.CumTSN()
	}
	return a.recv.CumTSN()
}

// addSenderStats adds what one sending half has counted.
func (c *Counters) addSenderStats(t tx.Stats) {
	c.DataOut += t.Chunks
	c.Retransmits += t.Retransmits
	c.FastRetransmits += t.FastRetransmits
	c.Timeouts += t.Timeouts
	c.TailProbes += t.TailProbes
	c.WindowProbes += t.Probes
	c.Reneged += t.Reneged
	c.DuplicatesReported += t.DupsReported
	c.PathsSuspected += t.PathsSuspected
	c.EchoesIn += t.Echoes
}
