package sctp

import "github.com/rddp-go/rddp/sctp/assoc"

// Programs need these names of package assoc, the protocol without goroutines and sockets. With
// these aliases they import no other package than this one.

// Stats are the counters of an association: see [Conn.Stats].
type Stats = assoc.Stats

// Counters are what [Stats] count, of all associations of a Transport in [Transport.Totals];
// Histogram is of times.
type (
	Counters  = assoc.Counters
	Histogram = assoc.Histogram
)

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
	AbortError      = assoc.AbortError      // an ABORT, of this side or the peer, has ended the association
	AdaptationError = assoc.AdaptationError // the peer has not announced the adaptation layer that was required
	ConfigError     = assoc.ConfigError     // an option cannot be
	InternalError   = assoc.InternalError   // a fault of this stack has ended the association
	MemoryError     = assoc.MemoryError     // the association was given up because memory was short
	NoRouteError    = assoc.NoRouteError    // there is no way to the peer's address
	RefusedError    = assoc.RefusedError    // this host lets nothing go to the peer
	StuckError      = assoc.StuckError      // the peer answers, but what is under way has become too long for the path
	PeerError       = assoc.PeerError       // the peer has reported an error, in [EventPeerError]
	Cause           = assoc.Cause           // an error cause in some of them
)

// How an association ends, besides.
var (
	ErrShutdown         = assoc.ErrShutdown         // both sides have delivered everything; reads return io.EOF
	ErrInitTimeout      = assoc.ErrInitTimeout      // the setup got no answer
	ErrTimeout          = assoc.ErrTimeout          // the peer answers no more
	ErrShutdownTimeout  = assoc.ErrShutdownTimeout  // nor to the shutdown
	ErrSucceeded        = assoc.ErrSucceeded        // the peer has restarted during the shutdown
	ErrProtoUnreachable = assoc.ErrProtoUnreachable // the peer's host has no SCTP, or no program at its UDP port
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
