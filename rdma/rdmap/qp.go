package rdmap

import (
	"errors"

	"github.com/rddp-go/rddp/ddp"
)

// State is the state of a QP. RFC 5040 section 6 speaks of stream initialization and of three ways
// of teardown. Init, RTS and Error are libibverbs' IBV_QPS_INIT, IBV_QPS_RTS and IBV_QPS_ERR.
// Closing and Terminate are those of the iWARP verbs, which libibverbs shows as IBV_QPS_SQD and
// IBV_QPS_SQE.
type State uint8

const (
	StateInit      State = iota // receives may be posted; the peer may send already
	StateRTS                    // ready to send
	StateClosing                // ULP graceful termination: what is posted is finished, nothing new is taken
	StateTerminate              // an error was found; the Terminate goes out behind the message being sent
	StateError                  // the end: everything has been flushed
)

// String returns the name of the state.
func (s State) String() string {
	return [...]string{"Init", "RTS", "Closing", "Terminate", "Error"}[s]
}

// cutKind says what ddp is cutting into segments now. RDMAP hands it one message at a time. So read
// responses take turns with the user's requests, and a Terminate never waits behind a queue.
type cutKind uint8

const (
	cutNothing cutKind = iota
	cutRequest
	cutResponse
)

// QP is one end of an RDMAP stream: send queue, receive queue, read responder and the ddp.ULP that
// serves them. It does no locking. All methods, also those of ddp.ULP, run under the lock of the
// association that carries the stream.
type QP struct {
	cfg    Config
	stream *ddp.Stream
	state  State
	err    *StreamError

	sq              sendQueue
	rq              recvQueue
	resp            responder
	atomicResponses fixedQueue // queue 3: Atomic Responses

	cutNow          cutKind
	lastWasResponse bool // the last message handed to ddp was a Read or Atomic Response
	sendClosed      bool // CloseSend was called
	peerClosed      bool

	term           Terminate // to be sent in StateTerminate
	terminateQueue fixedQueue
	termOut        [1]ddp.Piece
}

var _ ddp.ULP = (*QP)(nil)

// NewQP makes a QP in StateInit. A field of cfg that is out of range gives a *ConfigError.
func NewQP(cfg Config) (*QP, error) {
	if err := cfg.checkFields(); err != nil {
		return nil, err
	}
	q := &QP{cfg: cfg}
	queues := QueueTerminate + 1
	if !cfg.NoAtomics {
		queues = QueueAtomicResponse + 1
		q.atomicResponses.init(cfg.ORD, AtomicResponseLen)
	}
	q.stream = ddp.NewStream(ddp.StreamConfig{
		ID: cfg.Stream, PD: cfg.PD, Table: cfg.Table, ULP: q, Queues: queues,
	})
	q.sq.init(&q.cfg)
	q.rq.init(&q.cfg)
	q.resp.init(&q.cfg)
	q.terminateQueue.init(1, MaxTerminateLen) // section 5.4: placement of one Terminate is guaranteed
	return q, nil
}

// Stream returns the DDP stream of the QP, to be attached to a session of the lower layer.
func (q *QP) Stream() *ddp.Stream { return q.stream }

// State returns the state.
func (q *QP) State() State { return q.state }

// Num returns the QP number.
func (q *QP) Num() uint32 { return q.cfg.QPNum }

// Err returns why the stream failed, a *StreamError, or nil.
func (q *QP) Err() error {
	if q.err == nil {
		return nil
	}
	return q.err
}

// Start makes the QP ready to send (section 6.1): the lower layer carries RDMA messages from now
// on.
func (q *QP) Start() {
	if q.state == StateInit {
		q.state = StateRTS
		q.sendNext()
	}
}

// Close asks for ULP graceful termination (section 6.2). No further request is taken. The stream is
// closed for sending when all posted requests have completed and all requests of the peer are
// answered. Messages of the peer are delivered until it closes too.
func (q *QP) Close() {
	switch q.state {
	case StateInit, StateRTS:
		q.state = StateClosing
		q.sendNext()
	}
}

// Abort ends the stream at once and without a Terminate; reason is kept for Err.
func (q *QP) Abort(reason error) {
	if q.state == StateError {
		return
	}
	q.failWithoutTerminate(&StreamError{Cause: reason})
}

// Ended says that the lower layer has nothing more to do with the stream. What is still posted is
// flushed. It may be called more than once.
func (q *QP) Ended() {
	q.state = StateError
	q.flushRequests()
}

// failWithoutTerminate ends the stream without a Terminate of our own.
func (q *QP) failWithoutTerminate(err *StreamError) {
	first := q.err == nil
	if first {
		q.err = err
	}
	q.state = StateError
	q.stream.Abort() // the session copies out what is in flight before any memory goes back
	if first {
		q.cfg.Host.Failed(err)
	}
	q.flushRequests()
}

// canSend reports whether messages other than a Terminate may be handed to ddp.
func (q *QP) canSend() bool { return q.state == StateRTS || q.state == StateClosing }

// sendNext hands ddp the next message if it has none to cut. Responses and the user's requests take
// turns, each in its own order (section 5.5 rules 13 and 20). A request that must wait never holds
// up a response. So two ends that read from each other at full depth do not block each other.
func (q *QP) sendNext() {
	for q.cutNow == cutNothing && q.canSend() && !q.sendClosed {
		resp, wr := q.resp.canRespond(), q.sq.canHandOver()
		switch {
		case q.state == StateClosing && q.QueuedReads() == 0 && q.sq.isEmpty():
			q.sendClosed = true
			q.stream.CloseSend()
		case resp && !(wr && q.lastWasResponse):
			q.lastWasResponse = true
			q.sendResponse()
		case wr:
			q.lastWasResponse = false
			q.sendRequest()
		default:
			return
		}
	}
}

// Drained is called by ddp when it has cut the last message it was given.
func (q *QP) Drained() {
	what := q.cutNow
	q.cutNow = cutNothing
	if what == cutResponse {
		q.resp.retireRequest()
	}
	if q.state == StateTerminate {
		q.sendTerminate()
		return
	}
	q.sendNext()
}

// A token tells Completed and Failed what a message was. Its low bits are the kind; for a request
// the rest is its position in the send queue.
const (
	tokenRequest   = iota + 1 // Send or RDMA Write
	tokenRead                 // Read Request or Atomic Request
	tokenResponse             // Read Response or Atomic Response
	tokenTerminate            // Terminate

	tokenBits = 3
	tokenMask = 1<<tokenBits - 1
)

// Completed: every segment of a message has been acknowledged.
func (q *QP) Completed(token uint64) {
	switch token & tokenMask {
	case tokenRequest:
		q.sq.markFinished(token >> tokenBits)
		q.completeRequests()
	case tokenRead:
		q.sq.readHeadersAcked++
	case tokenResponse:
		q.resp.completeOldest()
	}
	q.sendNext()
}

// Failed: ddp could not send a message. Its memory was revoked, a device failed to give the data,
// or the stream has ended. It is the message that is being cut: others do not fail.
func (q *QP) Failed(token uint64, err error) {
	switch {
	case q.state == StateTerminate: // the message that the Terminate waited for
		q.cutNow = cutNothing
		q.sendTerminate()
		return
	case q.state == StateError:
		return
	case errors.Is(err, ddp.ErrClosed):
		q.failWithoutTerminate(&StreamError{Cause: err})
		return
	}
	q.cutNow = cutNothing
	t := Terminate{Layer: LayerRDMA, EType: LocalCatastrophic}
	switch token & tokenMask {
	case tokenRequest: // section 7.1 rule 1: the Terminate goes out instead of the request
		q.sq.markFault(token>>tokenBits, StatusLocProtErr)
	case tokenResponse:
		t = q.failedResponse(uint32(q.stream.Cut()), err)
	}
	q.failStream(t, err)
}

// failStream ends the stream for an error that is not about an incoming message.
func (q *QP) failStream(t Terminate, err error) {
	q.stream.Fail(ddp.TypeLocal, 0, err) // receive nothing more
	q.startTerminate(t, err)
}
