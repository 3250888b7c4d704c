package assoc

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"syscall"

	"github.com/rddp-go/rddp/internal/invariant"
	"github.com/rddp-go/rddp/sctp/internal/tx"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Errors that end an association, as Event.Err of EventDown.
var (
	// ErrShutdown is the graceful end: both sides have delivered everything (section 9.2).
	ErrShutdown error = sysError{"sctp: association shut down", syscall.EPIPE}
	// ErrInitTimeout: the peer answered neither INIT nor COOKIE ECHO within Max.Init.Retransmits.
	ErrInitTimeout error = timeoutError("sctp: no answer to the association setup; check the peer's address, " +
		"port and firewall")
	// ErrTimeout: Association.Max.Retrans was exceeded (section 8.1).
	ErrTimeout error = timeoutError("sctp: peer unreachable: retransmission limit exceeded")
	// ErrShutdownTimeout: the peer did not complete the shutdown in 5 * RTO.Max
	// (T5-shutdown-guard).
	ErrShutdownTimeout error = timeoutError("sctp: the peer did not complete the shutdown in time")
	// ErrTSNResetUnanswered: the peer answers, but not a reset of TSNs. So nobody knows whether it
	// has begun anew, and nothing can be sent (RFC 6525 section 5.1.4).
	ErrTSNResetUnanswered error = timeoutError("sctp: the peer does not answer a reset of TSNs; which ones it " +
		"expects is not known")
	// ErrSucceeded: the peer has restarted during the shutdown (section 5.2.4 action A). It sets up
	// an association that succeeds this one. It matches syscall.ECONNRESET.
	ErrSucceeded error = sysError{"sctp: the peer has restarted during the shutdown; what it had not " +
		"acknowledged is lost", syscall.ECONNRESET}
	// ErrOvertaken: another attempt was answered before this one, see Assoc.OnAnswer.
	ErrOvertaken = errors.New("sctp: another attempt to set the association up was answered first")
	// ErrProtoUnreachable: the peer's host answered by ICMP that it has no SCTP.
	ErrProtoUnreachable error = sysError{
		"sctp: nobody speaks SCTP there (ICMP protocol unreachable, or port unreachable over UDP)",
		syscall.ECONNREFUSED}
)

// Errors of Send and Shutdown.
var (
	// ErrNotUp: the association is not established yet; wait for EventUp.
	ErrNotUp error = sysError{"sctp: association not established yet", syscall.ENOTCONN}
	// ErrClosing: a shutdown is under way or the association has ended; no new data is taken.
	ErrClosing error = sysError{"sctp: association is shutting down or closed", syscall.EPIPE}
	// ErrSendBufferFull: Config.SendBuffer octets are queued; wait for acknowledgements.
	ErrSendBufferFull = tx.ErrSendBufferFull
	// ErrMessageTooBig: the message is longer than Config.SendBuffer.
	ErrMessageTooBig = tx.ErrMessageTooBig
	// ErrEmptyMessage: SCTP has no empty messages (section 6.2).
	ErrEmptyMessage = tx.ErrEmptyMessage
	// ErrNeedsFragments: with Config.DisableFragments, the message is longer than MaxPayload.
	ErrNeedsFragments error = sysError{
		"sctp: the message does not fit one packet, and Config.DisableFragments is set", syscall.EMSGSIZE}
	// ErrReservedPPID: under protection messages with PPID 4242 are those of key management.
	ErrReservedPPID error = sysError{"sctp: PPID 4242 is reserved for key management", syscall.EINVAL}
	// ErrInvalidStream: the stream number is not below OutStreams.
	ErrInvalidStream = tx.ErrStream
	// ErrNoPartialReliability: a message has a policy of abandoning, and the peer has not agreed.
	ErrNoPartialReliability = tx.ErrNoPartialReliability
)

// Errors about addresses.
var (
	// ErrNoPath: the address is not one of the peer's.
	ErrNoPath = tx.ErrPath
	// ErrNoSource: no address in Config.LocalAddrs can reach any of the peer's.
	ErrNoSource error = sysError{"sctp: Config.LocalAddrs has no address of a family that the peer has",
		syscall.EADDRNOTAVAIL}
)

type timeoutError string

func (e timeoutError) Error() string      { return string(e) }
func (timeoutError) Timeout() bool        { return true }
func (timeoutError) Is(target error) bool { return target == syscall.ETIMEDOUT }

type sysError struct {
	text  string
	errno syscall.Errno
}

func (e sysError) Error() string        { return e.text }
func (e sysError) Is(target error) bool { return target == e.errno }

// RefusedError ends an association, or a setup, whose packets this host does not let go. It matches
// the system's error, such as syscall.EPERM.
type RefusedError struct {
	Path netip.AddrPort // an address of the peer
	Err  error          // the system's
}

// refusalHints says what may be wrong with this host.
var refusalHints = []struct {
	errno syscall.Errno
	text  string
}{
	{syscall.EPERM, "its firewall forbids it, or its table of connections is full"},
	{syscall.EACCES, "a route or a rule of it prohibits that"},
	{syscall.ENETDOWN, "the interface is down"},
	{syscall.EADDRNOTAVAIL, "it does not have the address to send from"},
	{syscall.EINVAL, "it does not have the address to send from, or there is no way from there"},
	{syscall.ENETUNREACH, "it has no route there"},
	{syscall.EHOSTUNREACH, "it has no route there, or nobody is at that address"},
}

func (e *RefusedError) Error() string {
	text := "look at its firewall, routes and interfaces"
	for _, r := range refusalHints {
		if errors.Is(e.Err, r.errno) {
			text = r.text
			break
		}
	}
	return fmt.Sprintf("sctp: this host does not send to %v (%v): %s", e.Path.Addr(), e.Err, text)
}

// Unwrap returns the system's error.
func (e *RefusedError) Unwrap() error { return e.Err }

// StuckError ends an association whose peer is there, but which a packet does not get through to
// any more. The path MTU has fallen since a chunk got its TSN, and the chunk cannot be cut again
// (section 6.9). The link does not send it in IP fragments, or those do not arrive. It matches
// syscall.ETIMEDOUT and EMSGSIZE.
type StuckError struct {
	Path   netip.AddrPort // an address of the peer
	Packet int            // the shortest SCTP packet with the chunk, in octets
	MTU    int            // the longest that passes
}

func (e *StuckError) Error() string {
	return fmt.Sprintf("sctp: %v answers, but does not get a packet of %d octets: the path carries no more than "+
		"%d, and what is under way cannot be cut; "+
		"lower Config.MTU, or use the raw link", e.Path, e.Packet, e.MTU)
}

// Timeout returns true.
func (e *StuckError) Timeout() bool { return true }

// Is makes the error match syscall.ETIMEDOUT and EMSGSIZE.
func (e *StuckError) Is(target error) bool {
	return target == syscall.ETIMEDOUT || target == syscall.EMSGSIZE
}

// NoRouteError ends a setup because there is no way to any address of the peer. This host knows
// none, or over IPv4 an ICMP message says so. It matches syscall.ENETUNREACH, or EHOSTUNREACH.
type NoRouteError struct{ Err error } // the system's

func (e *NoRouteError) Error() string {
	return fmt.Sprintf("sctp: no way to the peer's address (%v); check the routes of this host", e.Err)
}

// Is makes every such error match syscall.ENETUNREACH or EHOSTUNREACH.
func (e *NoRouteError) Is(target error) bool {
	if errors.Is(e.Err, syscall.EHOSTUNREACH) {
		return target == syscall.EHOSTUNREACH
	}
	return target == syscall.ENETUNREACH
}

// InternalError ends an association whose code, or whose layer above, has contradicted itself.
// Nothing is received or sent any more from the moment that it is noticed. It is a fault of this
// program and no state of the network; its text is worth a report. Counters.Contradictions counts
// it.
type InternalError = invariant.Error

// Cause is one error cause of an ABORT or ERROR chunk (section 3.3.10).
type Cause struct {
	Code wire.CauseCode
	Info []byte // cause-specific information, a copy, at most 256 octets of it
}

// AbortError reports that the association was aborted (section 9.1).
type AbortError struct {
	ByPeer bool
	Setup  bool // by the peer, before the association was established: it does not want it, or nobody listens there
	// Missing says that this side has aborted because the peer shut down although some of its DATA
	// has not come.
	Missing bool
	Causes  []Cause
}

// Error names the side that aborted, and why.
func (e *AbortError) Error() string {
	var b strings.Builder
	b.WriteString("sctp: association aborted")
	if e.ByPeer {
		b.WriteString(" by the peer")
	}
	writeCauses(&b, e.Causes)
	if len(e.Causes) > 0 && e.Causes[0].Code == wire.CauseNoDTLSSupport {
		if e.ByPeer {
			b.WriteString("; it takes encrypted associations only: set Config.TLS, with a certificate")
		} else {
			b.WriteString("; Config.TLS is set, and the peer does not encrypt")
		}
	}
	return b.String()
}

// Is makes an abort by the peer match syscall.ECONNREFUSED in the setup, ECONNRESET later. A local
// one matches ECONNABORTED. One with Missing matches io.ErrUnexpectedEOF too.
func (e *AbortError) Is(target error) bool {
	switch {
	case target == io.ErrUnexpectedEOF:
		return e.Missing
	case e.Setup:
		return target == syscall.ECONNREFUSED
	case e.ByPeer:
		return target == syscall.ECONNRESET
	}
	return target == syscall.ECONNABORTED
}

// Reason returns the upper layer's reason of a User-Initiated Abort (cause 12), nil without one.
func (e *AbortError) Reason() []byte {
	for _, c := range e.Causes {
		if c.Code == wire.CauseUserAbort {
			return c.Info
		}
	}
	return nil
}

// MemoryError reports that an association ended, or did not come to be, because memory was short.
// This is memory for what peers make this host hold. The association, or the address of its peer,
// had more than its share.
type MemoryError struct {
	Held  int64 // octets that the association held; 0 when it did not come to be
	Share int64 // octets that are its fair share
}

func (e *MemoryError) Error() string {
	if e.Held == 0 {
		return "sctp: no memory for another association with that address: TransportConfig.MaxMemory is reached"
	}
	return fmt.Sprintf("sctp: association aborted for want of memory: it held %d octets, its share is %d; see "+
		"TransportConfig.MaxMemory", e.Held, e.Share)
}

// Is makes the error match syscall.ENOMEM.
func (e *MemoryError) Is(target error) bool { return target == syscall.ENOMEM }

// PeerError is an ERROR chunk of the peer, reported by EventPeerError.
type PeerError struct{ Causes []Cause }

func (e *PeerError) Error() string {
	var b strings.Builder
	b.WriteString("sctp: the peer reports an error")
	writeCauses(&b, e.Causes)
	return b.String()
}

func writeCauses(b *strings.Builder, causes []Cause) {
	for i, c := range causes {
		b.WriteString([]string{": ", ", "}[min(i, 1)])
		b.WriteString(c.Code.String())
		if len(c.Info) > 0 && (c.Code == wire.CauseUserAbort || c.Code == wire.CauseProtocolViolation) {
			fmt.Fprintf(b, " %q", c.Info)
		}
	}
}

// AdaptationError reports that the peer announced no adaptation layer, or not the one that
// Config.RequireAdaptation requires.
type AdaptationError struct {
	Want, Got uint32
	Absent    bool // the peer announced none; Got is 0
}

func (e *AdaptationError) Error() string {
	if e.Absent {
		return fmt.Sprintf("sctp: the peer announced no adaptation layer, %#x is required", e.Want)
	}
	return fmt.Sprintf("sctp: the peer announced adaptation layer %#x, %#x is required", e.Got, e.Want)
}

// Is makes the error match syscall.ECONNREFUSED.
func (e *AdaptationError) Is(target error) bool { return target == syscall.ECONNREFUSED }
