package reconfig

import (
	"errors"

	"github.com/rddp-go/rddp/sctp/wire"
)

// Why a request was not performed, or not even sent.
var (
	// ErrUnanswered: the peer has not answered a request, as often as it was sent. It is asked no
	// more.
	ErrUnanswered = errors.New("sctp: the peer does not answer requests for stream reconfiguration")
	// ErrDenied: the peer does not allow it.
	ErrDenied = errors.New("sctp: the peer has denied a stream reconfiguration")
	// ErrRequest: the request asks for nothing, or for what does not go together.
	ErrRequest = errors.New("sctp: a request about streams that asks for nothing, or for what does not go together")
	// ErrNoTSNs: the peer has reset the TSNs, and not said with which ones to go on.
	ErrNoTSNs = errors.New("sctp: the peer has reset TSNs and not named the next ones")
	// ErrStream: a stream does not exist.
	ErrStream = errors.New("sctp: no such stream to reset")
	// ErrTooManyStreams: an association has 65535 streams in each direction at most.
	ErrTooManyStreams = errors.New("sctp: more streams than an association can have")
	// ErrTooSoon: TSNs are reset once in 30 seconds at most (section 5.1.4).
	ErrTooSoon = errors.New("sctp: TSNs were reset less than 30 seconds ago")
	// ErrPaired: the layer above needs streams in pairs that are never reset.
	ErrPaired = errors.New("sctp: streams of this association are not reset, and added in pairs")
)

// ResultError is a result of the peer that is no success. It matches ErrDenied if that is the
// result.
type ResultError struct{ Result wire.ReconfigResult }

func (e *ResultError) Error() string {
	return "sctp: the peer has refused a stream reconfiguration: " + e.Result.String()
}

// Is matches ErrDenied.
func (e *ResultError) Is(target error) bool {
	return target == ErrDenied && e.Result == wire.ReconfigDenied
}

// errorOf returns nil for a success.
func errorOf(r wire.ReconfigResult) error {
	if r == wire.ReconfigPerformed || r == wire.ReconfigNothingToDo {
		return nil
	}
	return &ResultError{r}
}
