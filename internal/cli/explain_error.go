package cli

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"

	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/mpa"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// Explain turns an error of the library into a plain sentence of one line that says what to do. A
// terminal shows the peer's text in it and does not obey it.
func Explain(err error) string {
	return Printable(strings.ReplaceAll(explainError(err), "\n", "; "))
}

// SessionError is the end of a session that was established. Its cause is no reason to suspect the
// server's address or link.
type SessionError struct{ Err error }

func (e *SessionError) Error() string {
	if why := explainTLS(e.Err); why != "" {
		return "the session has ended: " + why
	}
	var aborted *assoc.AbortError
	switch {
	case errors.Is(e.Err, assoc.ErrProtoUnreachable):
		return "the session has ended: the other side's program is gone, its host says that nothing listens " +
			"there any more"
	case errors.As(e.Err, &aborted) && aborted.ByPeer:
		return "the session has ended: the other side has aborted it, or its program is gone (" + aborted.Error() + ")"
	}
	return "the session has ended: " + e.Err.Error()
}

func explainError(err error) string {
	var (
		perm     *rawio.PermissionError
		unsup    *rawio.UnsupportedError
		mtu      *rawio.MTUError
		usage    *UsageError
		adapt    *assoc.AdaptationError
		rejected *llp.RejectedError
		aborted  *assoc.AbortError
		session  *SessionError
		local    *assoc.RefusedError
		frame    *mpa.FrameError
	)
	tls := explainTLS(err)
	switch {
	case errors.As(err, &session):
		return err.Error()
	case errors.As(err, &usage):
		return usage.Text
	case tls != "":
		return tls
	case errors.As(err, &local):
		return strings.TrimPrefix(local.Error(), "sctp: ")
	case errors.As(err, &perm):
		return perm.Error() + " (--link udp)"
	case errors.As(err, &unsup):
		return unsup.Error() + " (--link udp)"
	case errors.As(err, &mtu):
		return mtu.Error()
	case errors.Is(err, rawio.ErrPortInUse):
		return "the SCTP port is in use by another program on this host: stop it or choose another with --port"
	case errors.Is(err, syscall.EADDRINUSE) && isOfTCP(err):
		return "the TCP port is in use by another program on this host: stop it or choose another with --port"
	case errors.Is(err, syscall.EADDRINUSE):
		return "the UDP port is in use by another program on this host, perhaps another server: take --udp-port " +
			"9900 here, and --encap-port 9900 for its clients"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this host does not have the address that --local or -I names"
	case errors.As(err, &adapt):
		return adapt.Error() + ": is something else than this tool listening there?"
	case errors.As(err, &rejected):
		return "the server refused: " + string(rejected.Private)
	case errors.Is(err, syscall.ECONNREFUSED) && isOfTCP(err):
		return "the host is up but nothing listens there: is the server running with the same --link and --port?"
	case errors.As(err, &frame), errors.Is(err, mpa.ErrClosedEarly):
		return err.Error() + ": is something else than this tool listening there, or does it take encrypted " +
			"sessions only?"
	case errors.Is(err, assoc.ErrProtoUnreachable):
		return "the host is up but nothing there speaks SCTP over this link: start the server, with the same --link"
	case errors.As(err, &aborted) && aborted.ByPeer:
		return "the host is up but refused the association: is the server running on that --port? (" +
			aborted.Error() + ")"
	case errors.Is(err, syscall.EHOSTUNREACH):
		return "no answer: check the address, at which this host or a router finds nobody"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, assoc.ErrInitTimeout),
		errors.Is(err, mpa.ErrStartupTimeout):
		return "no answer: check the address, that the server runs with the same --link and --port, and " +
			"firewalls in between"
	}
	return err.Error()
}

// isOfTCP reports whether an error is one of TCP's sockets.
func isOfTCP(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && strings.HasPrefix(op.Net, "tcp")
}
