package sctp

import "github.com/rddp-go/rddp/sctp/assoc"

// Programs need these names of package assoc, the protocol without goroutines and sockets. With
// these aliases they import no other package than this one.

// Stats are the counters of an association: see [Conn.Stats].
//
//	type Stats struct {
//		State                 State
//		OutStreams, InStreams int
//		Counters
//		RecvWindow  int       // octets of user data that the peer may still send
//		Buffered    int       // octets of user data received that the user has not taken
//		PeerWindow  int       // octets of user data that the peer still takes
//		Outstanding int       // octets of user data sent and not acknowledged
//		Unacked     int       // DATA chunks not acknowledged cumulatively
//		Queued      int       // octets of user data accepted by Send and not yet sent
//		Primary     int       // index of the primary path
//		Trips       Histogram // round trip times measured, over all paths
//		Keys        KeyStats  // of Config.Protected
//	}
type Stats = assoc.Stats

// Counters are what [Stats] count, of all associations of a Transport in [Transport.Totals].
//
//	type Counters struct {
//		PacketsIn, PacketsOut uint64 // packets; in: with the right ports, whatever their tag
//		OctetsIn, OctetsOut   uint64 // octets of these packets
//		DataIn, DataOut       uint64 // DATA chunks; out: each transmission
//		DataOctetsIn          uint64 // user data of new DATA chunks
//		Placed                uint64 // DATA chunks consumed by the Placer
//		SacksIn, SacksOut     uint64 // SACK chunks
//		Retransmits           uint64 // DATA chunks sent again, for whatever cause
//		FastRetransmits       uint64 // entries into fast recovery
//		Timeouts              uint64 // T3-rtx expiries
//		// DATA chunks sent again because nothing was heard for two round trips (RFC 8985 section 7)
//		TailProbes uint64
//		// DATA chunks sent into a window that the peer has closed (section 6.1)
//		WindowProbes uint64
//		// DATA chunks that the peer had acknowledged in a gap block and then no more
//		Reneged            uint64
//		DuplicatesReported uint64 // DATA chunks that the peer says it has received again
//		HeartbeatsIn       uint64 // probes of the peer, answered or not
//		HeartbeatsOut      uint64 // HEARTBEATs, without probes of the MTU
//		HeartbeatAcksIn    uint64 // answers to HEARTBEATs that were outstanding
//		MTUProbesOut       uint64 // probes of path MTUs
//		MTUProbesAcked     uint64 // probes of path MTUs that arrived
//		// packets that the link found too long when its MTU had fallen, sent again in another form
//		PacketsRefused uint64
//		MarksIn        uint64 // packets with new DATA that had a congestion mark
//		// reductions of cwnd because the peer has echoed such a mark
//		EchoesIn uint64
//		ErrorsIn uint64 // ERROR chunks
//		ICMPIn   uint64 // ICMP reports that quote a packet of the association
//		// What was dropped, and why.
//		// packets dropped by the verification tag rules of section 8.5
//		WrongTag uint64
//		// packets with the right tag from where the peer has no address (section 8.4)
//		ForeignSource uint64
//		Malformed     uint64 // packets with a chunk that the RFC does not allow
//		// chunks that have no meaning in the state of the association
//		Unexpected uint64
//		// chunks of a type that is not used, skipped or reported as section 3.2 says
//		UnknownChunks   uint64
//		SacksPassedOver uint64 // SACK chunks with another behind them in their packet
//		DuplicatesIn    uint64 // DATA chunks received again
//		// DATA chunks dropped for lack of receive window, or too far ahead
//		OutOfWindow uint64
//		// DATA chunks dropped after a gap block had reported them, for want of room (section
//		// 6.2)
//		Evicted uint64
//		// DATA chunks for a stream that does not exist, discarded and reported (section 6.5)
//		InvalidStream uint64
//		// DATA chunks that the Placer had no room for, left to be sent again
//		LeftUnacked      uint64
//		BadHeartbeatAcks uint64 // HEARTBEAT ACKs that answer no outstanding HEARTBEAT
//		// COOKIE ECHOs dropped: not signed here, of another peer, or of no row of Table 12
//		BadCookies uint64
//		// COOKIE ECHOs answered by ERROR because their life is over
//		StaleCookies uint64
//		// control replies beyond one packet each, or beyond the queue
//		RepliesDropped uint64
//		// packets with tags of their own, such as an INIT ACK, beyond the queue
//		AnswersDropped uint64
//		// ERROR chunks whose report found too many others waiting to be polled
//		ErrorReportsLost uint64
//		ICMPIgnored      uint64 // ICMP reports that section 10 has no use for
//		// reports of an unreachable protocol from a peer that had just been heard
//		ICMPContradicted uint64
//		AddressesIgnored uint64 // addresses of the peer beyond MaxPaths
//		// packets, or DATA, in the clear where only a lone DTLS chunk counts, or only key management
//		Unprotected uint64
//		// packets whose DTLS chunk did not open: forged, changed, replayed or without a key
//		NotOpened uint64
//		// Rare events.
//		// INITs of the peer for the association, which never change it (section 5.2)
//		InitsIn uint64
//		// INITs for the association answered by ABORT: not acceptable, or a restart that adds addresses
//		InitsRefused uint64
//		Restarts     uint64 // restarts of the association by the peer
//		PathsDown    uint64 // paths that became inactive
//		// times that new data has left an active path which was silent while another answered
//		PathsSuspected uint64
//		PathsUp        uint64 // paths that were confirmed or have recovered
//		// 1 when this side ended the association because of what the peer had sent
//		Violations uint64
//		// 1 when this side ended the association because it had contradicted itself: an *InternalError
//		Contradictions uint64
//	}
type Counters = assoc.Counters

// Histogram is a distribution of times.
type Histogram = assoc.Histogram

// State is that of an association, in [Stats].
type State = assoc.State

// The states of an association (RFC 9260 section 4).
const (
	Closed           = assoc.Closed
	CookieWait       = assoc.CookieWait
	CookieEchoed     = assoc.CookieEchoed
	Established      = assoc.Established
	ShutdownPending  = assoc.ShutdownPending
	ShutdownSent     = assoc.ShutdownSent
	ShutdownReceived = assoc.ShutdownReceived
	ShutdownAckSent  = assoc.ShutdownAckSent
)

// PathState is that of a path, in [PathStats].
type PathState = assoc.PathState

// The states of a path.
const (
	PathUnconfirmed       = assoc.PathUnconfirmed
	PathActive            = assoc.PathActive
	PathPotentiallyFailed = assoc.PathPotentiallyFailed
	PathInactive          = assoc.PathInactive
)

// Errors with particulars, to be found by errors.As.
type (
	// AbortError reports that an ABORT, of this side or the peer, has ended the association.
	//
	//	type AbortError struct {
	//		ByPeer bool
	//		// by the peer, before the association was established: it does not want it, or nobody
	//		// listens there
	//		Setup bool
	//		// Missing says that this side has aborted because the peer shut down although some of its DATA
	//		// has not come.
	//		Missing bool
	//		Causes  []Cause
	//	}
	//
	//	func (e *AbortError) Error() string
	//	func (e *AbortError) Is(target error) bool
	//	func (e *AbortError) Reason() []byte
	AbortError = assoc.AbortError

	// AdaptationError reports that the peer has not announced the adaptation layer that was required.
	//
	//	type AdaptationError struct {
	//		Want, Got uint32
	//		Absent    bool // the peer announced none; Got is 0
	//	}
	//
	//	func (e *AdaptationError) Error() string
	//	func (e *AdaptationError) Is(target error) bool
	AdaptationError = assoc.AdaptationError

	// ConfigError reports an option that cannot be.
	//
	//	type ConfigError struct {
	//		Field string // name of the field in Config
	//		Range string // what it may be
	//	}
	//
	//	func (e *ConfigError) Error() string
	ConfigError = assoc.ConfigError

	// InternalError reports a fault of this stack, which has ended the association.
	InternalError = assoc.InternalError

	// MemoryError reports that the association was given up because memory was short.
	//
	//	type MemoryError struct {
	//		// octets that the association held; 0 when it did not come to be
	//		Held  int64
	//		Share int64 // octets that are its fair share
	//	}
	//
	//	func (e *MemoryError) Error() string
	//	func (e *MemoryError) Is(target error) bool
	MemoryError = assoc.MemoryError

	// NoRouteError reports that there is no way to the peer's address.
	//
	//	type NoRouteError struct {
	//		Err error
	//	}
	//
	//	func (e *NoRouteError) Error() string
	//	func (e *NoRouteError) Is(target error) bool
	NoRouteError = assoc.NoRouteError

	// RefusedError reports that this host lets nothing go to the peer.
	//
	//	type RefusedError struct {
	//		Path netip.AddrPort // an address of the peer
	//		Err  error          // the system's
	//	}
	//
	//	func (e *RefusedError) Error() string
	//	func (e *RefusedError) Unwrap() error
	RefusedError = assoc.RefusedError

	// StuckError reports that the peer answers, but what is under way has become too long for the path.
	//
	//	type StuckError struct {
	//		Path   netip.AddrPort // an address of the peer
	//		Packet int            // the shortest SCTP packet with the chunk, in octets
	//		MTU    int            // the longest that passes
	//	}
	//
	//	func (e *StuckError) Error() string
	//	func (e *StuckError) Is(target error) bool
	//	func (e *StuckError) Timeout() bool
	StuckError = assoc.StuckError

	// PeerError is an error that the peer has reported, in [EventPeerError].
	//
	//	type PeerError struct {
	//		Causes []Cause
	//	}
	//
	//	func (e *PeerError) Error() string
	PeerError = assoc.PeerError

	// Cause is an error cause in an [AbortError] or a [PeerError] (RFC 9260 section 3.3.10).
	//
	//	type Cause struct {
	//		Code wire.CauseCode
	//		// cause-specific information, a copy, at most 256 octets of it
	//		Info []byte
	//	}
	Cause = assoc.Cause

	// StreamResetError is the peer's refusal of a request about streams.
	//
	//	type StreamResetError struct{ Result wire.ReconfigResult }
	//
	//	func (e *StreamResetError) Error() string
	//	func (e *StreamResetError) Is(target error) bool
	StreamResetError = assoc.StreamResetError
)

// StreamReset says what of stream reconfiguration (RFC 6525) Config offers, and what it allows.
type StreamReset = assoc.StreamReset

// What Config.StreamReset may have. Whatever is allowed is offered too.
const (
	OfferStreamReset = assoc.OfferStreamReset // this side may ask; what the peer asks for is denied
	AllowStreamReset = assoc.AllowStreamReset // the peer may reset streams, of both sides
	AllowTSNReset    = assoc.AllowTSNReset    // it may reset all streams and TSNs
	AllowAddStreams  = assoc.AllowAddStreams  // it may add streams, of both sides
)

// StreamChange is what an [Event] about streams says.
//
//	type StreamChange struct {
//		Request StreamRequestID // of StartInTurn; 0 if the peer has asked for it
//		ByPeer  bool            // the peer has asked for it
//		// it is about streams that come in, else about those that go out
//		Incoming bool
//		Streams  []uint16 // EventStreamsReset: none stands for all
//		Added    int      // EventStreamsAdded: how many
//		// OutStreams and InStreams are how many streams there are now, NextTSN and PeerTSN are the TSNs
//		// that both sides send next.
//		OutStreams, InStreams int
//		NextTSN, PeerTSN      wire.TSN
//	}
type StreamChange = assoc.StreamChange

// How an association ends, besides.
var (
	ErrShutdown           = assoc.ErrShutdown           // both sides have delivered everything; reads return io.EOF
	ErrInitTimeout        = assoc.ErrInitTimeout        // the setup got no answer
	ErrTimeout            = assoc.ErrTimeout            // the peer answers no more
	ErrShutdownTimeout    = assoc.ErrShutdownTimeout    // nor to the shutdown
	ErrTSNResetUnanswered = assoc.ErrTSNResetUnanswered // nor to a reset of TSNs
	ErrSucceeded          = assoc.ErrSucceeded          // the peer has restarted during the shutdown
	ErrProtoUnreachable   = assoc.ErrProtoUnreachable   // the peer's host has no SCTP, or no program at its UDP port
)

// Errors of single calls.
var (
	ErrNotUp          = assoc.ErrNotUp          // the association is not established yet
	ErrClosing        = assoc.ErrClosing        // it is shutting down or has ended
	ErrEmptyMessage   = assoc.ErrEmptyMessage   // SCTP has none
	ErrNeedsFragments = assoc.ErrNeedsFragments // the message does not fit a packet, and Config.DisableFragments is set
	ErrInvalidStream  = assoc.ErrInvalidStream  // there is no such stream
	ErrNoPath         = assoc.ErrNoPath         // that is no address of the peer
	ErrNoSource       = assoc.ErrNoSource       // no address in Config.LocalAddrs can reach the peer
	ErrNoMarks        = assoc.ErrNoMarks        // the link marks no packets
)

// Errors of requests about streams, and of the events about them.
var (
	ErrStreamResetUnsupported = assoc.ErrStreamResetUnsupported // one of the sides does not offer it
	ErrStreamResetUnanswered  = assoc.ErrStreamResetUnanswered  // the peer does not answer
	ErrStreamResetDenied      = assoc.ErrStreamResetDenied      // it does not allow it
	ErrStreamRequest          = assoc.ErrStreamRequest          // it asks for nothing
	ErrTooManyStreams         = assoc.ErrTooManyStreams         // there are 65535 in each direction at most
	ErrTSNResetTooSoon        = assoc.ErrTSNResetTooSoon        // TSNs are reset once in 30 seconds
	ErrStreamsPaired          = assoc.ErrStreamsPaired          // the protocol above needs streams in pairs
	ErrPeerRestarted          = assoc.ErrPeerRestarted          // the peer has restarted meanwhile
)
