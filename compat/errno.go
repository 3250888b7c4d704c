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

// errnos has what the kernel says where the error itself does not match one errno of its own, or another.
var errnos = []struct {
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
	{io.ErrUnexpectedEOF, syscall.ECONNABORTED}, // of reads: an ABORT of this side
	{net.ErrClosed, syscall.EBADF},
	{context.DeadlineExceeded, syscall.ETIMEDOUT},
}

// matched are the errnos that errors of the stack match.
var matched = []syscall.Errno{
	syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ETIMEDOUT, syscall.EADDRINUSE,
	syscall.EADDRNOTAVAIL, syscall.EMSGSIZE, syscall.EPIPE, syscall.ENOMEM, syscall.EACCES, syscall.EPERM,
}

// errnoOf returns the errno that the kernel would for an error of the stack, so that == holds.
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
	for _, e := range errnos {
		if errors.Is(err, e.err) {
			return e.errno
		}
	}
	for _, e := range matched {
		if errors.Is(err, e) {
			return e
		}
	}
	slog.Warn("sctp: an error that has no errno is EIO", "error", err)
	return syscall.EIO
}
