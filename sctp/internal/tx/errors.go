package tx

import (
	"errors"
	"fmt"

	"github.com/rddp-go/rddp/sctp/wire"
)

// Errors of Enqueue and AddPath.
var (
	ErrSendBufferFull       = errors.New("sctp: send buffer full; wait until earlier messages are acknowledged")
	ErrMessageTooBig        = errors.New("sctp: message longer than the send buffer; raise SendBuffer or send less at a time")
	ErrEmptyMessage         = errors.New("sctp: a message needs at least one octet of user data")
	ErrPath                 = errors.New("sctp: not an address of the peer")
	ErrNoPartialReliability = errors.New("sctp: the peer does not take abandoned messages: partial reliability is not negotiated")
	ErrStream               = errors.New("sctp: no such outgoing stream")
	ErrHeadLen              = fmt.Errorf("sctp: message head longer than %d octets", HeadCap)
	ErrPaths                = fmt.Errorf("sctp: more than %d destination addresses", MaxPaths)
)

// UnsentTSNError reports a SACK or SHUTDOWN that acknowledges a TSN that was never sent. It is
// beyond all that were, or was withheld. The association is to be aborted (RFC 9260 section 12.4).
type UnsentTSNError struct {
	TSN  wire.TSN // what the peer acknowledged
	Next wire.TSN // the first TSN not sent yet
}

func (e *UnsentTSNError) Error() string {
	if e.TSN.Less(e.Next) {
		return fmt.Sprintf("sctp: peer acknowledged TSN %d, which was withheld", e.TSN)
	}
	return fmt.Sprintf("sctp: peer acknowledged TSN %d, the highest sent is %d", e.TSN, e.Next-1)
}
