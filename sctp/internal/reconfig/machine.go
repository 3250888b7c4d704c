package reconfig

import (
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/bucket"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Allowed says what the peer may ask for. All else is denied (RFC 6525 section 6.3.1).
type Allowed uint8

const (
	// Streams: the peer may reset the streams on which it sends, and ask to reset the others.
	Streams Allowed = 1 << iota
	// TSNs: it may reset all TSNs and SSNs.
	TSNs
	// Adding: it may add streams, in both directions.
	Adding
)

// Config is what a Machine is made with.
type Config struct {
	LocalTSN, PeerTSN wire.TSN // the Initial TSNs: requests are numbered from them on
	Allowed           Allowed
	MaxOut, MaxIn     int  // how many streams the peer may bring about
	Paired            bool // streams are never reset, and added in pairs
	MaxTries          int  // how often a request is sent again that the peer does not answer
}

// MaxStreams is how many streams there can be in a direction.
const MaxStreams = 65535

// peerRate is how often requests of the peer are let through. The others are in progress: the peer
// asks again (section 5.2.7, H2).
var peerRate = bucket.Rate{Burst: 64, Interval: time.Second / 64}

// Bounds of what a peer's requests cause.
const (
	segmentLife      = 30 * time.Second  // the maximum segment lifetime of section 5.1.4
	longestHold      = 10 * time.Second  // that messages are held for it before it is denied
	maxCollisions    = 8                 // how often a request that met the peer's is sent again
	maxStuck         = 8                 // how often one is in progress though the peer has all DATA
	maxLikelyRepeats = 2                 // how often one is that has likely been answered
	tsnJump          = wire.TSN(1) << 31 // of section 5.1.7, D4
)

// Machine is the reconfiguration of one association.
type Machine struct {
	cfg  Config
	host Host

	nextOwn  uint32 // sequence number of the next own request
	nextPeer uint32 // of the peer's next
	own      ownRequest
	lastID   RequestID
	waiting  []waitingRequest // in the order in which they were asked for
	isDead   bool             // the peer did not answer
	// The last own requests that the peer fulfils by a request of its own.
	askedReset uint32 // of an Incoming SSN Reset Request
	hasAsked   bool   // askedReset is set
	askedAdd   int    // streams that an Add Incoming Streams Request was granted for
	doubt      doubtfulRequest

	peer     peerRequests
	deferred deferredReset
	limit    bucket.Bucket // of peerRate
	answer   []byte        // RE-CONFIG chunks to be sent back
	tsnWait  waitingTSNReset

	tsnsAskedAt, tsnsResetAt rawio.Time // when TSNs were last reset, by a request of either side
	hasAskedTSNs, hasReset   bool
}

// New returns a Machine of an association that has just been set up.
func New(cfg Config, host Host) *Machine {
	m := &Machine{cfg: cfg, host: host, nextOwn: uint32(cfg.LocalTSN), nextPeer: uint32(cfg.PeerTSN)}
	m.own.timerAt, m.tsnWait.deniedAt = rawio.Never, rawio.Never
	return m
}

// SetAllowed changes Config.Allowed and the limits of streams.
func (m *Machine) SetAllowed(a Allowed, maxOut, maxIn int) {
	m.cfg.Allowed, m.cfg.MaxOut, m.cfg.MaxIn = a, maxOut, maxIn
}

// IsIdle says whether nothing is under way.
func (m *Machine) IsIdle() bool {
	return !m.IsBusy() && !m.deferred.isActive && len(m.answer) == 0
}

// IsBusy says whether another request would have to wait.
func (m *Machine) IsBusy() bool {
	return m.own.state != ownNone || m.tsnWait.isThere() || len(m.waiting) > 0
}

// IsFreezing says whether DATA that comes is held for an own request, see Host.FreezeIn.
func (m *Machine) IsFreezing() bool { return m.own.isFreezing }

// StopAsking ends the own requests, and makes no other. Those of the peer are still answered.
func (m *Machine) StopAsking(why error) {
	m.failOwn(why)
	m.failAllWaiting(why)
	m.isDead = true
}

// Held returns the octets of memory behind it.
func (m *Machine) Held() int {
	streams := cap(m.own.streams) + cap(m.deferred.streams)
	for _, w := range m.waiting {
		streams += cap(w.request.Streams)
	}
	return int(unsafe.Sizeof(*m)) + cap(m.answer) + cap(m.own.chunk) + cap(m.peer.ownChunk) + cap(m.doubt.chunk) +
		cap(m.own.parts)*int(unsafe.Sizeof(ownPart{})) + cap(m.waiting)*int(unsafe.Sizeof(waitingRequest{})) +
		streams*int(unsafe.Sizeof(wire.StreamID(0)))
}

// NextTimeout returns when HandleTimeout has something to do.
func (m *Machine) NextTimeout() rawio.Time { return min(m.own.timerAt, m.tsnWait.deniedAt) }

// Poll goes on with what waits for the association: for messages to be sent, or for DATA to come.
func (m *Machine) Poll(now rawio.Time) {
	m.endDeferral()
	m.endTSNWait(now)
	m.startNext(now)
	m.sendIfSettled(now)
}

// HandleChunk takes a RE-CONFIG chunk of the peer. It returns the error of the first parameter that
// is malformed. Nothing of the chunk is processed then.
func (m *Machine) HandleChunk(now rawio.Time, c wire.Reconfig) error {
	var list [2]parameter
	n := 0
	params := c.Params()
	for p, ok := params.Next(); ok; p, ok = params.Next() {
		q, err := parseParameter(p)
		if err != nil {
			return err
		}
		list[n] = q
		n++
	}
	requests := list[:0]
	for _, p := range list[:n] { // responses come first, where both are allowed
		if p.kind == wire.ParamReconfigResponse {
			m.handleResponse(now, &p)
			continue
		}
		requests = append(requests, p)
	}
	if len(requests) > 0 {
		m.handleRequests(now, requests)
	}
	m.Poll(now)
	return nil
}

// HasAnswer says whether TakeAnswer has something to send.
func (m *Machine) HasAnswer() bool { return len(m.answer) > 0 }

// AppendAnswer appends the RE-CONFIG chunks to be sent back, at most room octets of them. They are
// gone then.
func (m *Machine) AppendAnswer(b []byte, room int) []byte {
	if len(m.answer) <= room {
		b = append(b, m.answer...)
	}
	m.answer = m.answer[:0]
	return b
}

// Abandon ends all that is under way, when the association or its incarnation ends.
func (m *Machine) Abandon(why error) {
	m.failOwn(why)
	m.failAllWaiting(why)
	m.cancelDeferral()
	m.dropTSNWait()
	m.answer = m.answer[:0]
}

// parameter is one parameter of a RE-CONFIG chunk, a request or a response.
type parameter struct {
	kind           wire.ParamType
	seq            uint32 // its own; of a response that of the request
	responseSeq    uint32 // Outgoing SSN Reset Request
	lastTSN        wire.TSN
	streams        wire.Uint16List // of resets
	count          int             // of streams to be added
	result         wire.ReconfigResult
	next, expected wire.TSN // of a response, if hasTSNs
	hasTSNs        bool
}

// parseParameter reads any of the six.
func parseParameter(p wire.Param) (q parameter, err error) {
	switch q.kind = p.Type(); q.kind {
	case wire.ParamOutgoingReset:
		r, err := wire.AsOutgoingReset(p)
		if err != nil {
			return q, err
		}
		q.seq, q.responseSeq, q.lastTSN, q.streams = r.RequestSeq(), r.ResponseSeq(), r.LastTSN(), r.Streams()
	case wire.ParamIncomingReset:
		r, err := wire.AsIncomingReset(p)
		if err != nil {
			return q, err
		}
		q.seq, q.streams = r.RequestSeq(), r.Streams()
	case wire.ParamTSNReset:
		q.seq, err = p.TSNResetSeq()
	case wire.ParamReconfigResponse:
		r, err := wire.AsReconfigResponse(p)
		if err != nil {
			return q, err
		}
		q.seq, q.result = r.ResponseSeq(), r.Result()
		q.next, q.expected, q.hasTSNs = r.NextTSNs()
	default:
		r, err := wire.AsAddStreams(p)
		if err != nil {
			return q, err
		}
		q.seq, q.count = r.RequestSeq(), int(r.Count())
	}
	return q, err
}
