package llp

import (
	"errors"
	"io"
	"syscall"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
)

// A program tells by the errors of package syscall how a session came to its end, and reads why.
func TestErrorsMatchThoseOfConnections(t *testing.T) {
	numbers := []syscall.Errno{syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED}
	for _, row := range []struct {
		err     error
		matches syscall.Errno
		text    string
	}{
		{&RejectedError{}, syscall.ECONNREFUSED, "ddp: session rejected by the peer"},
		{&RejectedError{Private: []byte("not\n now")}, syscall.ECONNREFUSED,
			`ddp: session rejected by the peer: "not\n now"`},
		{&TerminatedError{ByPeer: true}, syscall.ECONNRESET, "ddp: session terminated by the peer"},
		{&TerminatedError{Cause: io.ErrShortBuffer}, syscall.ECONNRESET, "ddp: session terminated: short buffer"},
		{&TerminatedError{}, syscall.ECONNABORTED, "ddp: session terminated"},
	} {
		check.Equal(t, "text", row.err.Error(), row.text)
		for _, n := range numbers {
			check.That(t, errors.Is(row.err, n) == (n == row.matches), "%v matches %v: %v", row.err, n, n != row.matches)
		}
	}
	check.That(t, errors.Is(&TerminatedError{Cause: io.ErrShortBuffer}, io.ErrShortBuffer), "the cause is lost")
}
