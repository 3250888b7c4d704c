package reconfig

import (
	"slices"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Request is what a user asks for. Resets, the reset of TSNs and additions do not go together
// (section 3.1).
type Request struct {
	ResetOut, ResetIn bool            // streams that go out, or come in
	Streams           []wire.StreamID // of resets; none: all
	ResetTSNs         bool            // TSNs and SSNs, in both directions
	AddOut, AddIn     int             // streams
}

// ownState is where the own request is.
type ownState uint8

const (
	ownNone     ownState = iota
	ownSettling          // what was given before for its streams is still to be sent
	ownDue               // the chunk is to be sent
	ownWaiting           // it was sent: the Re-configuration Timer runs
	ownCollided          // the peer was busy with a request of its own: this one goes again at timerAt
)

// ownRequest is the own request, in one chunk. There is one at most.
type ownRequest struct {
	state      ownState
	id         RequestID // 0 if the peer has asked for it
	isSent     bool      // the chunk was sent once: a response may come
	hold       Hold      // for it
	isFreezing bool      // Host.FreezeIn was
	answers    bool      // it answers a request of the peer,
	answersSeq uint32
	byPeer     bool // the peer has asked for it
	parts      []ownPart
	streams    []wire.StreamID // of resets; nil: all
	lastTSN    wire.TSN        // Sender's Last Assigned TSN
	chunk      []byte
	expiries   int // of the timer, without an answer
	repeats    int // of what has likely been answered
	collisions int
	recovery   recovery // from a request that the peer has never got
	timerAt    rawio.Time
}

// ownPart is one request parameter of it.
type ownPart struct {
	kind     wire.ParamType
	seq      uint32
	count    int // of streams to be added
	stuck    int // "In progress" answers without a reason
	progress partProgress
}

type partProgress uint8

const (
	partOpen       partProgress = iota
	partInProgress              // so the peer has answered
	partLikely                  // the peer has done what may be the answer, see takeAddOut
	partCollided                // the peer was busy
	partDone
)

// check returns what is wrong with a request, or in its way.
func (m *Machine) check(now rawio.Time, r Request) error {
	out, in := m.host.Streams()
	resets, adds := r.ResetOut || r.ResetIn, r.AddOut > 0 || r.AddIn > 0
	switch {
	case m.isDead:
		return ErrUnanswered
	case r.AddOut < 0 || r.AddIn < 0 || !resets && !adds && !r.ResetTSNs || resets && adds,
		r.ResetTSNs && (resets || adds):
		return ErrRequest
	case m.cfg.Paired && (resets || r.ResetTSNs || r.AddOut != r.AddIn):
		return ErrPaired
	case r.AddOut > MaxStreams-out || r.AddIn > MaxStreams-in:
		return ErrTooManyStreams
	case r.ResetOut && !areBelow(r.Streams, out) || r.ResetIn && !areBelow(r.Streams, in):
		return ErrStream
	case r.ResetTSNs && m.hasAskedTSNs && now.Sub(m.tsnsAskedAt) < segmentLife:
		return ErrTooSoon
	}
	return nil
}

// newOwnRequest returns what a request of the user is, for which hold was begun.
func newOwnRequest(r Request, id RequestID, hold Hold) ownRequest {
	o := ownRequest{id: id, hold: hold, streams: slices.Clone(r.Streams)}
	add := func(wanted bool, kind wire.ParamType, count int) {
		if wanted {
			o.parts = append(o.parts, ownPart{kind: kind, count: count})
		}
	}
	add(r.ResetOut, wire.ParamOutgoingReset, 0)
	add(r.ResetIn, wire.ParamIncomingReset, 0)
	add(r.ResetTSNs, wire.ParamTSNReset, 0)
	add(r.AddOut > 0, wire.ParamAddOutStreams, r.AddOut)
	add(r.AddIn > 0, wire.ParamAddInStreams, r.AddIn)
	if len(o.streams) == 0 {
		o.streams = nil
	}
	return o
}

// begin begins with a request of the user. Its messages are held, or will be.
func (m *Machine) begin(now rawio.Time, r Request, id RequestID, hold Hold) {
	if hold == 0 {
		hold = m.holdFor(r)
	}
	m.beginOwn(now, newOwnRequest(r, id, hold))
}

// areBelow says whether all streams exist.
func areBelow(list []wire.StreamID, count int) bool {
	return !slices.ContainsFunc(list, func(s wire.StreamID) bool { return int(s) >= count })
}

// beginOwn makes o the own request. It goes as soon as what was given before for its streams has
// its TSNs (section 5.1.2, A1 and A3; 5.1.4, C2).
func (m *Machine) beginOwn(now rawio.Time, o ownRequest) {
	m.own = o
	m.own.state, m.own.timerAt = ownSettling, rawio.Never
	m.sendIfSettled(now)
}

// find returns the part of a kind that is not done, or nil.
func (o *ownRequest) find(kind wire.ParamType) *ownPart {
	for i := range o.parts {
		if p := &o.parts[i]; p.kind == kind && p.progress != partDone {
			return p
		}
	}
	return nil
}

// isInFlight says whether an answer may come.
func (o *ownRequest) isInFlight() bool {
	return o.isSent && (o.state == ownWaiting || o.state == ownDue)
}

// needsPeersTurn says whether the peer answers by a request of its own, or by nothing while it has
// one. Two such requests would wait for each other.
func (o *ownRequest) needsPeersTurn() bool {
	return o.find(wire.ParamIncomingReset) != nil || o.find(wire.ParamAddInStreams) != nil ||
		o.find(wire.ParamTSNReset) != nil
}

// sendIfSettled makes the chunk of the own request, when the time for it has come.
func (m *Machine) sendIfSettled(now rawio.Time) {
	o := &m.own
	if o.state != ownSettling || o.hold != 0 && !m.host.HasSettled(o.hold, o.find(wire.ParamTSNReset) != nil) {
		return
	}
	if o.find(wire.ParamTSNReset) != nil {
		m.tsnsAskedAt, m.hasAskedTSNs = now, true
		// The peer may send with new SSNs before its answer is here.
		o.isFreezing = true
		m.host.FreezeIn()
	}
	o.state, o.isSent, o.expiries = ownDue, false, 0
	var with []byte
	if o.answers {
		with = m.answersBeside(o.answersSeq)
	}
	m.makeChunk(with)
	if o.answers {
		m.noteAnsweredByOwn(o.answersSeq, len(with) > 0)
	}
}

// makeChunk numbers the open parts and makes the chunk of them, behind response parameters. It is
// made once: a retransmission has the same octets.
func (m *Machine) makeChunk(with []byte) {
	o := &m.own
	b := append(wire.AppendReconfig(nil), with...)
	for i := range o.parts {
		p := &o.parts[i]
		if p.progress == partDone {
			continue
		}
		p.progress, p.seq, p.stuck = partOpen, m.nextOwn, 0
		m.nextOwn++
		switch p.kind {
		case wire.ParamOutgoingReset:
			o.lastTSN = m.host.NextTSN() - 1
			b = wire.AppendOutgoingReset(b, p.seq, m.responseSeq(), o.lastTSN, o.streams)
		case wire.ParamIncomingReset:
			b = wire.AppendIncomingReset(b, p.seq, o.streams)
		case wire.ParamTSNReset:
			b = wire.AppendTSNReset(b, p.seq)
		default:
			b = wire.AppendAddStreams(b, p.kind, p.seq, uint16(p.count))
		}
	}
	o.chunk = wire.CloseChunk(b, 0)
}

// responseSeq returns the Re-configuration Response Sequence Number of an Outgoing SSN Reset
// Request (section 4.1). Only one that answers an Incoming SSN Reset Request may have the number of
// that. While another such request of the peer is in progress, the number before it is sent.
func (m *Machine) responseSeq() uint32 {
	switch o := &m.own; {
	case o.answers:
		return o.answersSeq
	case m.peer.hasOpen(wire.ParamIncomingReset):
		return m.peer.first - 1
	}
	return m.nextPeer - 1
}

// RequestDue says whether a request is to be sent, for the first time or again.
func (m *Machine) RequestDue() bool { return m.own.state == ownDue }

// AppendRequest appends its chunk.
func (m *Machine) AppendRequest(b []byte) []byte {
	if m.own.recovery == recoveryUnderWay {
		return append(b, m.doubt.chunk...)
	}
	return append(b, m.own.chunk...)
}

// failOwn ends the own request without success.
func (m *Machine) failOwn(why error) {
	for i := range m.own.parts {
		if p := &m.own.parts[i]; p.progress != partDone {
			m.reportOwn(p, why)
		}
	}
	m.endOwn()
}

// endOwn ends the own request.
func (m *Machine) endOwn() {
	m.letGo()
	m.own = ownRequest{timerAt: rawio.Never}
}

// letGo ends what the own request holds.
func (m *Machine) letGo() {
	hold, freezing := m.own.hold, m.own.isFreezing
	m.own.hold, m.own.isFreezing = 0, false
	if freezing {
		m.host.ThawIn()
	}
	m.release(hold)
}

// reportOwn tells the user how a part of the own request has ended.
func (m *Machine) reportOwn(p *ownPart, err error) {
	e := Event{Request: m.own.id, ByPeer: m.own.byPeer, Streams: m.own.streams, Count: p.count, Err: err}
	switch p.kind {
	case wire.ParamOutgoingReset:
		e.Kind = StreamsReset
	case wire.ParamIncomingReset:
		e.Kind, e.Incoming = StreamsReset, true
	case wire.ParamTSNReset:
		e.Kind = TSNsReset
	case wire.ParamAddOutStreams:
		e.Kind = StreamsAdded
	default:
		e.Kind, e.Incoming = StreamsAdded, true
	}
	m.host.Report(e)
}
