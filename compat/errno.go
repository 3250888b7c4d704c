package compat

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"syscall"

	"github.com/rddp-go/rddp/sctp"
)

// errnoTable has the kernel's errno for errors that match no errno of their own, or a different
// one.
var errnoTable = []struct {
	err   error
	errno syscall.Errno
}{
	{sctp.ErrEmptyMessage, syscall.EINVAL},
	{sctp.ErrInvalidStream, syscall.EINVAL},
	{sctp.ErrNoPath, syscall.EINVAL},
	{sctp.ErrClosing, syscall.EPIPE},
	{sctp.ErrNotUp, syscall.ENOTCONN},
	{sctp.ErrMessageTooLong, syscall.EMSGSIZE},
	{sctp.ErrNoMarks, syscall.EOPNOTSUPP},
	{sctp.ErrStreamRequest, syscall.EINVAL},
	{sctp.ErrTooManyStreams, syscall.EINVAL},
	{sctp.ErrTSNResetTooSoon, syscall.EAGAIN},
	{sctp.ErrStreamResetUnanswered, syscall.ENOPROTOOPT},
	{io.ErrUnexpectedEOF, syscall.ECONNABORTED}, // of reads: this side sent an ABORT
	{net.ErrClosed, syscall.EBADF},
	{context.DeadlineExceeded, syscall.ETIMEDOUT},
}

// matchableErrnos are the errnos that errors of the stack match.
var matchableErrnos = []syscall.Errno{
	syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.ENETUNREACH, syscall.EHOSTUNREACH,
	syscall.ETIMEDOUT, syscall.EADDRINUSE,
	syscall.EADDRNOTAVAIL, syscall.EMSGSIZE, syscall.EPIPE, syscall.ENOMEM, syscall.EACCES, syscall.EPERM,
}

// errnoOf returns the kernel's errno for an error of the stack, so that == holds.
func errnoOf(err error) error {
	var no syscall.Errno
	switch {
	case err == nil, err == io.EOF, err == os.ErrDeadlineExceeded:
		return err
	case errors.As(err, &no):
		return no
	case errors.As(err, new(*sctp.ConfigError)):
		return syscall.EINVAL
	}
	for _, e := range errnoTable {
		if errors.Is(err, e.err) {
			return e.errno
		}
	}
	for _, e := range matchableErrnos {
		if errors.Is(err, e) {
			return e
		}
	}
	slog.Warn("sctp: an error that has no errno is EIO", "error", err)
	return syscall.EIO
}
