package sctp

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"syscall"
)

// Errors of a Transport and its Conns. Those of the association are in aliases.go.
var (
	// ErrTransportClosed is returned by calls on a closed Transport. It matches net.ErrClosed.
	ErrTransportClosed = fmt.Errorf("sctp: transport closed: %w", net.ErrClosed)
	// ErrCutOff is returned by reads for a message that they have returned a part of already. The
	// rest will not come, because the association has ended, or the peer has restarted or has given
	// the message up. Reading goes on after it.
	ErrCutOff = errors.New("sctp: the rest of the message will not come; drop what was read of it")
	// ErrRestarted ends a StreamConn whose peer has restarted. It matches syscall.ECONNRESET.
	ErrRestarted error = sysError{"sctp: the peer has restarted, and a part of the stream is lost", syscall.ECONNRESET}
	// ErrTruncated is returned by MessageConn.Read beside the first octets of a message whose rest
	// is lost. It matches syscall.EMSGSIZE.
	ErrTruncated error = sysError{"sctp: the message is longer than the buffer of Read, or than Config.RecvBuffer",
		syscall.EMSGSIZE}
	// ErrMessageTooLong is returned by WriteMsg for a message that can never fit the send buffer.
	ErrMessageTooLong = errors.New("sctp: message longer than the send buffer; raise Config.SendBuffer or split it")
)

// LinkError is why associations have ended whose link has failed, or was closed by another than the
// Transport. Dial, Listen and Accept fail with it from then on. It matches syscall.ENETDOWN and the
// link's error. It does not match net.ErrClosed, which says that the program has closed what it
// uses.
type LinkError struct {
	Err error // of ReadBatch or WriteBatch
}

func (e *LinkError) Error() string { return "sctp: the link has ended: " + e.Err.Error() }

// Is says what the error matches.
func (e *LinkError) Is(target error) bool {
	return target == syscall.ENETDOWN || target != net.ErrClosed && errors.Is(e.Err, target)
}

// linkEnded says whether an error of WriteBatch is about the link, not about a packet.
func linkEnded(err error) bool {
	for _, end := range []error{net.ErrClosed, fs.ErrClosed, io.ErrClosedPipe, syscall.EBADF, syscall.ENOTSOCK} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

type sysError struct {
	text  string
	errno syscall.Errno
}

func (e sysError) Error() string        { return e.text }
func (e sysError) Is(target error) bool { return target == e.errno }

// DialError says which association could not be set up, and why.
type DialError struct {
	Remote netip.AddrPort // peer address and SCTP port
	Err    error
}

func (e *DialError) Error() string { return fmt.Sprintf("sctp: dial %v: %v", e.Remote, e.Err) }

// Unwrap returns the reason.
func (e *DialError) Unwrap() error { return e.Err }

// Timeout makes a DialError a net.Error.
func (e *DialError) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.As(e.Err, &t) && t.Timeout()
}

// Temporary is part of net.Error; a failed setup is never called temporary.
func (e *DialError) Temporary() bool { return false }
