package ddpadapt

import (
	"unsafe"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/sparse"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Assoc is what a Mux needs of its association.
type Assoc interface {
	// MaxPayload returns the octets of user data that one unfragmented DATA chunk carries, with
	// room left for a SACK in the packet.
	MaxPayload() int
	OutStreams() int
	InStreams() int
	// PeerAdaptation returns the adaptation indication of the peer, if it announced one.
	PeerAdaptation() (indication uint32, ok bool)
	// Incarnation counts the lives of the association: only a restart by the peer changes it.
	Incarnation() uint64
	// Detach copies what unacknowledged messages of a stream still reference inside within (nil: at
	// all) to memory of the association. more says that this was only a part.
	Detach(stream wire.StreamID, within []byte) (more bool)
	// Break ends the association because this package has contradicted itself.
	Break(*assoc.InternalError)
	Receive() (*assoc.Received, bool)
	Release(*assoc.Received)
}

var (
	_ Assoc           = (*assoc.Assoc)(nil)
	_ assoc.RowPlacer = (*Mux)(nil)
	_ assoc.Runner    = (*Mux)(nil)
	_ ddp.LLP         = (*Session)(nil)
)

// Config holds the limits of a Mux. The zero value of each field selects the default.
type Config struct {
	// Initiator says that this side set the association up. It then chooses free streams among the
	// even numbers first, otherwise among the odd. So both sides can open sessions at once.
	Initiator bool
	// MaxPending is the most Initiates that wait for an answer of the upper layer. More are
	// answered by a Terminate (section 6.4). Default 64; a negative value refuses all.
	MaxPending int
	// MaxEarly is the most octets of segments kept for one session before it is accepted. The
	// association keeps at most sixteen times that. More end the session. Default 65536.
	MaxEarly int
	// MaxOutOfOrder is the most messages of the association that wait for an earlier one. More are
	// left to be sent again. A message in fragments is acknowledged by then, so its session ends.
	// Default and maximum 65535.
	MaxOutOfOrder int
}

// DefaultStreams is the number of streams that Configure asks for when the Config names none.
const DefaultStreams = 1024

// Configure makes c fit for DDP. The adaptation indication is 1, announced and required (sections
// 7.1 and 11.1). There are as many inbound as outbound streams (section 8): the larger number if c
// has one, else DefaultStreams. Messages come whole: a segment is short.
func Configure(c *assoc.Config) {
	indication := uint32(AdaptationDDP)
	c.Adaptation, c.RequireAdaptation = &indication, true
	n := max(c.OutStreams, c.InStreams)
	if n == 0 {
		n = DefaultStreams
	}
	c.OutStreams, c.InStreams = n, n
	if c.MaxMessage == 0 {
		c.MaxMessage = maxSegment + 1 // which is too long, for the session to know
		if c.RecvBuffer > 0 {
			c.MaxMessage = min(c.MaxMessage, c.RecvBuffer)
		}
	}
}

const (
	defaultPending = 64
	defaultEarly   = 65536
	earlySessions  = 16 // sessions at their MaxEarly that the association bears at once
	// maxRefusals bounds the refused Initiates whose Terminate is not acknowledged yet.
	maxRefusals = 256
)

// Stats counts what a Mux has seen since its start.
type Stats struct {
	SegmentsIn, SegmentsOut uint64 // DDP Segments
	Requests                uint64 // Initiates of the peer that were given to the upper layer
	OutOfOrder              uint64 // messages that waited for an earlier one

	// What was refused, dropped, or left unacknowledged for the peer to send again.
	Violations   uint64            // sessions terminated because the peer broke the sequence: the sum of Faults
	Faults       [numFaults]uint64 // the same by Fault; Faults[0] stays 0
	Refused      uint64            // Initiates and strays answered by a Terminate of the stack itself
	PendingFull  uint64            // Initiates among them that found Config.MaxPending others waiting
	RefusalsFull uint64            // those not even answered, as 256 Terminates were not acknowledged; sent again
	RecordsFull  uint64            // messages that came early and found Config.MaxOutOfOrder others waiting; sent again
	NextSession  uint64            // messages of a stream's next session, before the last one ended; sent again
	AfterEnd     uint64            // messages of sessions that this side has ended, or the peer
	BadStreams   uint64            // messages on streams without a way back, which end the association (section 8)
	Ignored      uint64            // Terminates of no session, which get no answer
}

// Mux runs the DDP stream sessions of one association. It implements assoc.Placer and assoc.Source.
type Mux struct {
	a   Assoc
	cfg Config

	ddpAgreed        bool   // DDP is agreed
	incarnation      uint64 // the incarnation of the association that it was agreed in
	err              error
	numStreams       int // streams with both directions
	sessions         sparse.Table[*Session]
	numSessions      int // sessions in the table
	lastGen          uint32
	freeSearchPos    [2]int // where the search for a free even or odd stream goes on
	pendingInitiates int    // Initiates without an answer of the upper layer
	unackedRefusals  int    // refusals not acknowledged yet
	earlyOctets      int    // octets of early segments kept

	controlQueue sessionQueue     // sessions with a control message to send
	scheduler    segmentScheduler // of sessions with segments to send
	detachQueue  sessionQueue     // sessions that are over, whose stream ends when all that it has in flight is copied
	deliverQueue sessionQueue     // sessions with messages whose turn has come, and that wait for others
	records      recordStore
	events       eventQueue
	stats        Stats

	currentRecord record      // the message whose turn it is, when it came in order
	fastPlaced    ddp.Placed  // the same on the fast path
	outSegment    ddp.Segment // the segment being handed over
	outRun        *assoc.Run  // several of them; nil until there are
	scratch       []byte      // a message that came in fragments
	workSteps     uint64      // see Steps
}

// NewMux returns a Mux for a. Register it with a.SetUpper(m, m) before the first packet.
func NewMux(a Assoc, cfg Config) *Mux {
	switch {
	case cfg.MaxPending == 0:
		cfg.MaxPending = defaultPending
	case cfg.MaxPending < 0:
		cfg.MaxPending = 0
	}
	if cfg.MaxEarly <= 0 {
		cfg.MaxEarly = defaultEarly
	}
	if cfg.MaxOutOfOrder <= 0 || cfg.MaxOutOfOrder > maxRecords {
		cfg.MaxOutOfOrder = maxRecords
	}
	m := &Mux{a: a, cfg: cfg, freeSearchPos: [2]int{0, 1}}
	m.controlQueue.linkIndex, m.scheduler.newlyReady.linkIndex, m.scheduler.waiting.linkIndex,
		m.detachQueue.linkIndex, m.deliverQueue.linkIndex = 0, 1, 2, 3, 4
	m.records.recordLimit = cfg.MaxOutOfOrder
	return m
}

// Streams returns how many streams can carry sessions: the lower of both directions (section 8).
func (m *Mux) Streams() int { return m.numStreams }

// Sessions returns how many streams are not free: sessions of all states up to EventEnded. With
// none left, and none to come, the owner shuts the association down (RFC 5041 section 3).
func (m *Mux) Sessions() int { return m.numSessions }

// Err returns why the Mux is dead, nil while it is not.
func (m *Mux) Err() error { return m.err }

// Stats returns the counters.
func (m *Mux) Stats() Stats { return m.stats }

// HandleEvent takes in an event of the association. Pass all of them.
func (m *Mux) HandleEvent(_ rawio.Time, e assoc.Event) {
	switch e.Kind {
	case assoc.EventUp, assoc.EventRestart:
		m.ensureAgreed()
	case assoc.EventDown:
		if m.err == nil {
			m.endAll(e.Err)
			m.err = e.Err
		}
	}
}

// ensureAgreed says that the association, as it is now, has DDP on both sides. The packet that
// establishes or restarts it may carry data, ahead of the event.
func (m *Mux) ensureAgreed() bool {
	return m.ddpAgreed && m.incarnation == m.a.Incarnation() || m.startIncarnation()
}

// startIncarnation looks at the peer's adaptation indication before any DDP procedure (section
// 11.1).
func (m *Mux) startIncarnation() bool {
	if m.err != nil {
		return false
	}
	if m.ddpAgreed {
		m.endAll(ErrRestarted)
	}
	if got, ok := m.a.PeerAdaptation(); !ok || got != AdaptationDDP {
		m.err = ErrNotDDP
		m.events.push(Event{Kind: EventDown, Err: m.err})
		return false
	}
	m.ddpAgreed, m.incarnation = true, m.a.Incarnation()
	m.numStreams = min(m.a.OutStreams(), m.a.InStreams())
	m.events.push(Event{Kind: EventUp})
	return true
}

// endAll tells every session that its association is gone (section 11.3).
func (m *Mux) endAll(err error) {
	m.ddpAgreed = false
	for _, s := range m.sessions.All {
		if *s != nil {
			(*s).endWithAssoc(err)
		}
	}
	m.controlQueue.clear()
	m.scheduler.clear()
	m.detachQueue.clear()
	m.deliverQueue.clear()
	m.events.push(Event{Kind: EventDown, Err: err})
}

func (m *Mux) sessionOn(id wire.StreamID) *Session {
	if s := m.sessions.At(uint16(id)); s != nil {
		return *s
	}
	return nil
}

// addSession makes the session that occupies stream id, which must be free.
func (m *Mux) addSession(id wire.StreamID, st sessionState, own any) *Session {
	m.lastGen++
	s := &Session{mux: m, stream: id, gen: m.lastGen, state: st, stateData: own, stopSSN: unknownSSN,
		lastSSN: unknownSSN}
	*m.sessions.Use(uint16(id)) = s
	m.numSessions++
	return s
}

func (m *Mux) removeSession(s *Session) {
	*m.sessions.At(uint16(s.stream)) = nil
	if m.numSessions--; m.numSessions == 0 {
		m.sessions = sparse.Table[*Session]{}
	}
}

// Steps returns how many messages, and places for them, the Mux has looked at. It covers all work
// that the peer can cause.
func (m *Mux) Steps() uint64 { return m.workSteps }

// Held returns the octets of memory that the Mux keeps now, its sessions' included. It costs no
// more than a look at a few fields.
func (m *Mux) Held() int {
	held := 0
	if m.outRun != nil {
		held = int(unsafe.Sizeof(*m.outRun))
	}
	return held + int(unsafe.Sizeof(*m)) + m.sessions.Held() + m.numSessions*int(unsafe.Sizeof(Session{})) +
		m.pendingInitiates*llp.MaxPrivateData +
		m.records.heldOctets() + m.earlyOctets + cap(m.scratch) + cap(m.events.items)*int(unsafe.Sizeof(Event{}))
}

// pickStream returns the stream asked for, or a free one of the own kind, or else any free one.
func (m *Mux) pickStream(stream int) (wire.StreamID, error) {
	if stream >= m.numStreams {
		return 0, ErrInvalidStream
	}
	if stream >= 0 {
		if m.sessionOn(wire.StreamID(stream)) != nil {
			return 0, ErrStreamInUse
		}
		return wire.StreamID(stream), nil
	}
	own := 1
	if m.cfg.Initiator {
		own = 0
	}
	for _, kind := range [2]int{own, 1 - own} {
		for id, n := m.freeSearchPos[kind], 0; n < m.numStreams; id, n = id+2, n+2 {
			if id >= m.numStreams {
				id = kind
			}
			if id < m.numStreams && m.sessionOn(wire.StreamID(id)) == nil {
				m.freeSearchPos[kind] = id + 2
				return wire.StreamID(id), nil
			}
		}
	}
	return 0, ErrNoFreeStream
}
