package asconf

import (
	"errors"
	"net/netip"
	"slices"
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

const (
	maxWaiting = 16 // requests that wait for others
	// maxBundled is the most requests of an ASCONF. With as many it and its answer fit the packets of
	// any path (section 5.1.1, C5).
	maxBundled = 8
)

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

// Outcome is what has become of a request: nil, or why it was not performed.
type Outcome struct {
	Request
	Err error
}

// Requester asks the peer (section 5.1). What waits goes together, in one ASCONF.
type Requester struct {
	next    uint32 // the Sequence Number of the next ASCONF
	nextID  uint32 // the Correlation ID of the next request
	waiting []Request
	current []Request // of the ASCONF under way
	firstID uint32    // of current
	chunk   []byte    // of current; nil: nothing is under way
	isSent  bool
	unknown [len(params)]bool // the peer has said so (F3)
	isDead  bool              // it does not know ASCONF (A9)
}

// NewRequester returns a Requester of a side that begins with a TSN.
func NewRequester(initial wire.TSN) *Requester {
	return &Requester{next: uint32(initial), nextID: uint32(initial)}
}

// Ask takes requests, all or none.
func (q *Requester) Ask(list ...Request) error {
	for _, r := range list {
		if q.isDead || q.unknown[r.Op] {
			return ErrUnsupported
		}
	}
	if len(q.waiting)+len(list) > maxWaiting {
		return ErrBusy
	}
	q.waiting = append(q.waiting, list...)
	return nil
}

// IsBusy says whether requests are under way, or wait.
func (q *Requester) IsBusy() bool { return q.chunk != nil || len(q.waiting) > 0 }

// Waiting returns how many requests of a kind wait.
func (q *Requester) Waiting(op Op) (n int) {
	for _, r := range q.waiting {
		if r.Op == op {
			n++
		}
	}
	return n
}

// Begin makes the requests that wait those under way, if there are none yet, and says whether there
// are some now. lookup is an own address of the association that none of them deletes, for the
// Address Parameter.
func (q *Requester) Begin(lookup func(list []Request) netip.Addr) bool {
	if q.chunk == nil && len(q.waiting) > 0 && !q.isDead {
		n := min(len(q.waiting), maxBundled)
		q.current, q.waiting = q.waiting[:n:n], q.waiting[n:]
		q.isSent, q.firstID = false, q.nextID
		b := wire.AppendAsconf(nil, q.next, lookup(q.current))
		for _, r := range q.current {
			b = wire.AppendAddrRequest(b, params[r.Op], q.nextID, r.Addr)
			q.nextID++
		}
		q.chunk = wire.CloseChunk(b, 0)
		q.next++
	}
	return q.chunk != nil
}

// Current returns the requests under way, none if there are none, and whether they were sent
// already.
func (q *Requester) Current() (list []Request, isSent bool) {
	if q.chunk == nil {
		return nil, false
	}
	return q.current, q.isSent
}

// Chunk returns the ASCONF of them, the same each time (B4). It counts as sent.
func (q *Requester) Chunk() []byte {
	q.isSent = true
	return q.chunk
}

// HandleAck takes an ASCONF-ACK. done says that it ends the requests under way, with these outcomes.
// Those without one are asked for once more. fatal says that the association is to be aborted.
func (q *Requester) HandleAck(c wire.AsconfAck) (done bool, outcomes []Outcome, fatal error) {
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

// verdict is what an answer says of a request.
type verdict struct {
	isThere, success bool
	why              wire.CauseCode
}

// judge returns what an answer says of the requests under way. Without a word they were performed
// (A8), but for those behind a failure (A7). The peer fails these because of that one (F11). They
// are independent of each other here, and so they wait again, in front.
func (q *Requester) judge(c wire.AsconfAck) (list []Outcome) {
	verdicts := q.verdicts(c)
	var again []Request
	hasFailed := false
	for i, r := range q.current {
		v := verdicts[i]
		switch {
		case v.success, !v.isThere && !hasFailed:
			list = append(list, Outcome{Request: r})
		case v.why == wire.CauseUnrecognizedParams: // F3a, F3b
			if q.unknown[r.Op] = true; r.Op != SetPrimary {
				q.unknown[Add], q.unknown[Delete] = true, true
			}
			list = append(list, Outcome{r, ErrUnsupported})
			hasFailed = true
		case hasFailed && (!v.isThere || v.why == wire.CauseResourceShortage):
			again = append(again, r)
		default:
			list = append(list, Outcome{r, &RefusedError{v.why}})
			hasFailed = true
		}
	}
	again = slices.DeleteFunc(again, func(r Request) bool {
		if q.unknown[r.Op] {
			list = append(list, Outcome{r, ErrUnsupported})
		}
		return q.unknown[r.Op]
	})
	q.waiting = slices.Concat(again, q.waiting)
	return list
}

// verdicts returns what the answer says of each request under way. A failure of no request is
// that of the first without a word.
func (q *Requester) verdicts(c wire.AsconfAck) (list [maxBundled]verdict) {
	ps := c.Params()
	for prm, ok := ps.Next(); ok; prm, ok = ps.Next() {
		r, err := wire.AsAddrResponse(prm)
		if err != nil {
			continue
		}
		v := verdict{isThere: true, success: r.Success()}
		causes := r.Causes()
		if cause, ok := causes.Next(); ok {
			v.why = cause.Code()
		}
		at := int(r.CorrelationID() - q.firstID)
		if at < 0 || at >= len(q.current) {
			if v.success {
				continue
			}
			at = slices.IndexFunc(list[:len(q.current)], func(v verdict) bool { return !v.isThere })
		}
		if at >= 0 && (!list[at].isThere || list[at].success) { // the first failure counts
			list[at] = v
		}
	}
	return list
}

// Unrecognized notes that the peer does not know ASCONF: none is sent any more (A9).
func (q *Requester) Unrecognized() { q.isDead, q.chunk = true, nil }

// Abandon ends all that is under way or waits, and returns it.
func (q *Requester) Abandon() (list []Request) {
	list = q.waiting
	if q.chunk != nil {
		list = slices.Concat(q.current, list)
	}
	q.chunk, q.waiting = nil, nil
	return list
}
