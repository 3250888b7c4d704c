package asconf

import (
	"errors"
	"net/netip"
	"syscall"

	"github.com/rddp-go/rddp/sctp/wire"
)

// Op is what a request asks for.
type Op uint8

// The requests of section 4.2.
const (
	Add        Op = iota // an address
	Delete               // one
	SetPrimary           // the peer is to send there
)

var params = [...]wire.ParamType{Add: wire.ParamAddIP, Delete: wire.ParamDeleteIP, SetPrimary: wire.ParamSetPrimary}

// Request asks for one thing. An unspecified Addr stands for the source of the packet, or where it
// is deleted for all others.
type Request struct {
	Op   Op
	Addr netip.Addr
}

// maxWaiting bounds the requests that wait for others.
const maxWaiting = 16

// Errors of requests. What the peer refuses is a RefusedError.
var (
	// ErrUnsupported: the peer has said that it does not know such requests.
	ErrUnsupported = errors.New("the peer does not change addresses")
	// ErrBusy: too many requests wait for their turn.
	ErrBusy = errors.New("too many changes of addresses are under way")
	// ErrIllegalAck: the peer acknowledges what was not sent (section 5.3, F0).
	ErrIllegalAck = errors.New("an ASCONF-ACK for what was not sent")
)

// RefusedError is the cause with which the peer refuses a request.
type RefusedError struct{ Cause wire.CauseCode }

func (e *RefusedError) Error() string {
	return "sctp: the peer has refused to change its addresses of this host: " + e.Cause.String()
}

// Is makes the error match syscall.EADDRNOTAVAIL.
func (e *RefusedError) Is(target error) bool { return target == syscall.EADDRNOTAVAIL }

// Requester asks the peer (section 5.1). Each ASCONF has one request.
type Requester struct {
	next    uint32 // the Sequence Number of the next ASCONF
	waiting []Request
	current Request
	chunk   []byte // of current; nil: nothing is under way
	isSent  bool
	unknown [len(params)]bool // the peer has said so (F3)
	isDead  bool              // it does not know ASCONF (A9)
}

// NewRequester returns a Requester of a side that begins with a TSN.
func NewRequester(initial wire.TSN) *Requester { return &Requester{next: uint32(initial)} }

// Ask takes a request.
func (q *Requester) Ask(r Request) error {
	switch {
	case q.isDead || q.unknown[r.Op]:
		return ErrUnsupported
	case len(q.waiting) >= maxWaiting:
		return ErrBusy
	}
	q.waiting = append(q.waiting, r)
	return nil
}

// Waiting returns how many requests of a kind wait.
func (q *Requester) Waiting(op Op) (n int) {
	for _, r := range q.waiting {
		if r.Op == op {
			n++
		}
	}
	return n
}

// Begin makes the next request the one under way, if there is none yet, and says whether there is
// one now. lookup is an own address of the association, for the Address Parameter.
func (q *Requester) Begin(lookup func(r Request) netip.Addr) bool {
	if q.chunk == nil && len(q.waiting) > 0 && !q.isDead {
		q.current, q.isSent = q.waiting[0], false
		q.waiting = q.waiting[1:]
		b := wire.AppendAsconf(nil, q.next, lookup(q.current))
		b = wire.AppendAddrRequest(b, params[q.current.Op], q.next, q.current.Addr)
		q.chunk = wire.CloseChunk(b, 0)
		q.next++
	}
	return q.chunk != nil
}

// Current returns the request under way, and whether it was sent already. ok is false if there is
// none.
func (q *Requester) Current() (r Request, isSent, ok bool) {
	return q.current, q.isSent, q.chunk != nil
}

// Chunk returns the ASCONF of it, the same each time (B4). It counts as sent.
func (q *Requester) Chunk() []byte {
	q.isSent = true
	return q.chunk
}

// HandleAck takes an ASCONF-ACK. done says that it ends the request under way, refused with what
// error. fatal says that the association is to be aborted.
func (q *Requester) HandleAck(c wire.AsconfAck) (done bool, refused, fatal error) {
	switch d := int32(c.Seq() - q.next); {
	case d >= 0: // F0
		return false, nil, ErrIllegalAck
	case d < -1 || q.chunk == nil: // of one that has ended
		return false, nil, nil
	case !q.isSent:
		return false, nil, ErrIllegalAck
	}
	q.chunk = nil
	return true, q.judge(c), nil
}

// judge returns what an answer says of the request under way. Without a word it was performed (A8).
func (q *Requester) judge(c wire.AsconfAck) error {
	ps := c.Params()
	for prm, ok := ps.Next(); ok; prm, ok = ps.Next() {
		r, err := wire.AsAddrResponse(prm)
		if err != nil || r.Success() {
			continue
		}
		why := wire.CauseCode(0)
		causes := r.Causes()
		if cause, ok := causes.Next(); ok {
			why = cause.Code()
		}
		if why == wire.CauseUnrecognizedParams { // F3a, F3b
			q.unknown[q.current.Op] = true
			if q.current.Op != SetPrimary {
				q.unknown[Add], q.unknown[Delete] = true, true
			}
			return ErrUnsupported
		}
		return &RefusedError{why}
	}
	return nil
}

// Unrecognized notes that the peer does not know ASCONF: none is sent any more (A9).
func (q *Requester) Unrecognized() { q.isDead, q.chunk = true, nil }

// Abandon ends all that is under way or waits, and calls report for each.
func (q *Requester) Abandon(report func(Request)) {
	if q.chunk != nil {
		q.chunk = nil
		report(q.current)
	}
	list := q.waiting
	q.waiting = nil
	for _, r := range list {
		report(r)
	}
}
