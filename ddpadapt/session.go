package ddpadapt

import (
	"slices"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// State is the state of a session as its user sees it.
type State uint8

// The states of a session.
const (
	Initiating State = iota // active: Initiate asked for, no answer yet
	Pending                 // passive: Initiate received, not answered yet
	Open                    // accepted
	PeerClosed              // the peer has terminated, this side may still send
	Closing                 // this side terminates, after what it still has to send
	Over                    // nothing more is sent or received, but not all is acknowledged
	Ended                   // the stream is free again
)

var stateNames = [...]string{"initiating", "pending", "open", "peer closed", "closing", "over", "ended"}

// String returns a short name for the state, for traces.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// farewell says how far this side's Terminate has come.
type farewell uint8

const (
	unsaid farewell = iota
	wanted          // to follow what the DDP stream still has to send
	due             // to be sent as soon as it may be
	said            // handed over
)

// opener is this side's Initiate, Accept or Reject, as long as it is not known to have arrived (section 6.6).
type opener struct {
	fn      function
	private []byte
	handed  bool // over to the association
}

// absent stands for a DDP-SSN that is not known.
const absent = -1

// Session is one DDP stream session: one use of a stream pair, between an Initiate and its end.
// It implements ddp.LLP.
type Session struct {
	// Owner is free for the user of the session.
	Owner any

	m        *Mux
	stream   wire.StreamID
	gen      uint32 // tells the messages of this session from those of others on the stream
	active   bool
	enhanced bool // RFC 6581: the codes of this session are the enhanced ones

	state state       // changed by enter
	own   any         // what exists in this state only
	ds    *ddp.Stream // nil before the session is accepted here, and from its end on
	err   error       // why the session is over, nil for a normal end

	next   uint16 // DDP-SSN whose turn it is
	window window // messages that wait for their turn
	stopAt int    // no segment from there on is placed: a fault or the end is known to stand there; or absent
	last   int    // DDP-SSN of the peer's last message, once it has arrived; or absent

	opener  *opener
	bye     farewell
	outSSN  uint16 // DDP-SSN of the next message handed over
	unacked int    // messages handed over and not acknowledged
	stats   SessionStats

	links [5]link
}

// Open starts a session on a stream, or on any free one for -1, by an Initiate with up to
// MaxPrivateData octets of private data. ds is attached at once, since the passive side's segments
// may overtake its Accept; its own segments leave once the Accept has come. EventAccepted,
// EventRejected or EventTerminated tells the outcome.
//
// Errors: ErrPrivateDataTooLong, ErrInvalidStream, ErrStreamInUse, ErrNoFreeStream, ErrNotUp, or
// Mux.Err.
func (m *Mux) Open(_ rawio.Time, stream int, ds *ddp.Stream, private []byte) (*Session, error) {
	if len(private) > MaxPrivateData {
		return nil, ErrPrivateDataTooLong
	}
	return m.open(stream, ds, initiate, private)
}

// OpenEnhanced is Open with negotiation (RFC 6581): setup is what the initiator has and wants, and at
// most MaxEnhancedPrivateData octets of private data go along. EventAccepted and EventRejected have the
// peer's Setup; Setup.Conclude says what it means. A peer that knows plain sessions only terminates the
// session; it can be asked again with Open, and the programs then agree on depths themselves (section 10). Use
// it only when something is to be negotiated. Errors as for Open, and ErrDepth.
func (m *Mux) OpenEnhanced(_ rawio.Time, stream int, ds *ddp.Stream, setup Setup, private []byte) (*Session, error) {
	if err := setup.checked(private); err != nil {
		return nil, err
	}
	return m.open(stream, ds, enhancedInitiate, setup.prepend(private))
}

func (m *Mux) open(stream int, ds *ddp.Stream, fn function, private []byte) (*Session, error) {
	switch {
	case m.err != nil:
		return nil, m.err
	case !m.up:
		return nil, ErrNotUp
	}
	id, err := m.pick(stream)
	if err != nil {
		return nil, err
	}
	s := m.add(id, calling, nil)
	s.active, s.enhanced = true, fn.enhanced()
	s.begin(fn, private)
	s.ds = ds
	ds.Attach(s)
	return s, nil
}

// Accept answers the peer's Initiate: ds is attached and may send at once. Segments that came before
// are delivered from within the call. An enhanced Initiate gets an enhanced answer that leaves all depths
// to the upper layer.
//
// Errors: ErrPrivateDataTooLong, ErrState, or why the session is over.
func (s *Session) Accept(now rawio.Time, ds *ddp.Stream, private []byte) error {
	if s.enhanced {
		return s.AcceptEnhanced(now, ds, leftToULP, private)
	}
	return s.accept(ds, private)
}

// AcceptEnhanced is Accept for an enhanced Initiate (RFC 6581): setup is what Setup.Answer makes of the
// peer's. Its PeerToPeer is set as the peer asked; an empty RTR stands for RTRWrite. Errors as for Accept,
// ErrDepth, and ErrState for a plain session.
func (s *Session) AcceptEnhanced(_ rawio.Time, ds *ddp.Stream, setup Setup, private []byte) error {
	private, err := s.answer(setup, private)
	if err != nil {
		return err
	}
	return s.accept(ds, private)
}

func (s *Session) accept(ds *ddp.Stream, private []byte) error {
	if err := s.decidable(private); err != nil {
		return err
	}
	kept := s.own.(*asking).kept
	s.enter(onAccept, nil)
	s.begin(accept.variant(s.enhanced), private)
	s.ds = ds
	ds.Attach(s)
	s.placeEarly(kept)
	s.drain()
	return nil
}

// Reject answers the peer's Initiate; the session is over. Errors as for Accept.
func (s *Session) Reject(now rawio.Time, private []byte) error {
	if s.enhanced {
		return s.RejectEnhanced(now, leftToULP, private)
	}
	return s.reject(private)
}

// RejectEnhanced is Reject for an enhanced Initiate: setup says what would have been acceptable, such as
// the ORD that is needed here (RFC 6581 section 9.1). Errors as for AcceptEnhanced.
func (s *Session) RejectEnhanced(_ rawio.Time, setup Setup, private []byte) error {
	private, err := s.answer(setup, private)
	if err != nil {
		return err
	}
	return s.reject(private)
}

func (s *Session) reject(private []byte) error {
	if err := s.decidable(private); err != nil {
		return err
	}
	s.enter(onReject, nil)
	s.begin(reject.variant(s.enhanced), private)
	return nil
}

var leftToULP = Setup{IRD: NotNegotiated, ORD: NotNegotiated}

// answer returns the private data of an enhanced answer.
func (s *Session) answer(setup Setup, private []byte) ([]byte, error) {
	if err := setup.checked(private); err != nil {
		return nil, err
	}
	if !s.enhanced {
		return nil, ErrState
	}
	if a, ok := s.own.(*asking); ok { // else it is too late, as decidable says
		private = setup.matched(a.setup).prepend(private)
	}
	return private, nil
}

func (s *Session) decidable(private []byte) error {
	switch {
	case s.err != nil:
		return s.err
	case s.state != asked:
		return ErrState
	case len(private) > MaxPrivateData:
		return ErrPrivateDataTooLong
	}
	return nil
}

func (s *Session) begin(fn function, private []byte) {
	s.opener = &opener{fn: fn, private: slices.Clone(private)}
	s.schedule()
}

// Terminate ends an accepted session gracefully: a Terminate follows everything that the DDP stream
// has accepted for sending. The peer's segments go on being delivered until its own Terminate. It
// returns ErrState before the session is accepted, or why it is over.
func (s *Session) Terminate(rawio.Time) error {
	switch {
	case s.err != nil:
		return s.err
	case dead.has(s.state), s.state == closing, s.state == closed:
		return nil
	case !accepted.has(s.state):
		return ErrState
	}
	s.enter(onFinish, nil)
	s.bye = wanted
	s.ds.CloseSend()
	s.finishIfCut()
	return nil
}

// finishIfCut lets the Terminate follow the last segment: DDP takes no more messages by then.
func (s *Session) finishIfCut() {
	if s.bye == wanted && s.ds != nil && !s.ds.Pending() {
		s.bye = due
		s.schedule()
	}
}

// Finish is the DDP stream's report that all is sent and acknowledged and its user wants no more
// (ddp.LLP): the Terminate follows, behind the peer's Accept if need be.
func (s *Session) Finish() {
	if s.bye == said {
		return
	}
	s.bye = due
	if s.state == open || s.state == resting {
		s.enter(onFinish, nil)
	}
	s.schedule()
}

// Abort ends the session abruptly, in whatever state: nothing more is sent or placed, and the user's
// memory is free when it returns. The peer gets a Terminate, on the active side not before it has
// answered the Initiate. EventEnded follows. It is also how the DDP stream asks for an abortive end
// (ddp.LLP).
func (s *Session) Abort() {
	if dead.has(s.state) {
		return
	}
	s.kill(nil, onAbort)
	s.settle()
}

// Ready says that the DDP stream has segments to send (ddp.LLP).
func (s *Session) Ready() { s.schedule() }

// MULPDU returns the largest DDP segment in octets, header included: what fits a DATA chunk
// unfragmented next to a SACK, but never less than MinMULPDU (section 9). It follows the path MTU.
func (s *Session) MULPDU() int { return mulpdu(s.m.a.MaxPayload()) }

// mulpdu is the MULPDU where a DATA chunk carries so much.
func mulpdu(payload int) int { return max(MinMULPDU, payload-ssnLen) }

// Detach copies what unacknowledged segments still reference inside within, so that the caller may
// change that memory. more says that there is so much of it that this was only a part: the caller lets others have the association, and calls again.
func (s *Session) Detach(within []byte) (more bool) {
	return s.state != ended && s.m.a.Detach(s.stream, within)
}

// SessionStats counts the messages of one session, segments and control messages, but for the peer's Initiate.
type SessionStats struct {
	In, Out uint64
	// Messages in that took a slower way than others (RFC 5042 section 6.4.4).
	OutOfOrder uint64 // waited for an earlier one
	Fragmented uint64 // came in several DATA chunks and were put together first
	Early      uint64 // came before the session was accepted and were kept
}

// Stats returns the counters.
func (s *Session) Stats() SessionStats { return s.stats }

// Stream returns the number of the session's stream pair.
func (s *Session) Stream() wire.StreamID { return s.stream }

// Active says that this side sent the Initiate.
func (s *Session) Active() bool { return s.active }

// Err returns why the session is over: a *RejectedError, a *TerminatedError or the association's
// error. It is nil for an end that this side asked for.
func (s *Session) Err() error { return s.err }

// State returns the state.
func (s *Session) State() State {
	if s.state == closed && s.bye == said {
		return Over
	}
	return visible[s.state]
}

// kill ends the session from this side, by onAbort, onFault or onLost.
func (s *Session) kill(err error, by trigger) {
	s.err = err
	switch {
	case s.outSSN > 0:
		if s.bye != said {
			s.bye = due
		}
		var own any
		switch table[s.state][by] {
		case ending:
			own = s.hears()
		case counting:
			own = s.recount()
		}
		s.enter(by, own)
	default:
		// Nothing of ours is on the wire: a Terminate as the only message is the sequence of
		// section 6.4, after which the peer owes nothing. What was never said needs none.
		if s.bye = due; by == onAbort && s.active {
			s.bye = unsaid
		}
		s.opener = nil
		s.enter(onWithdraw, nil)
	}
	if s.ds != nil && s.unacked > 0 && s.m.a.Detach(s.stream, nil) {
		s.m.copying.push(s)
	} else {
		s.closeStream(err)
	}
	s.schedule()
}

// hears returns what is to be known of the peer's half once the session is ended.
func (s *Session) hears() *hearing {
	if h, ok := s.own.(*hearing); ok {
		return h
	}
	return &hearing{accepted: accepted.has(s.state), unanswered: s.state == called || s.state == canceled}
}

// recount begins to count the messages of the peer. What waited for its turn will not have it.
func (s *Session) recount() *tally {
	t := &tally{*s.hears(), s.window.n}
	s.window.clear(&s.m.store)
	return t
}

// refused ends the session on the peer's answer, after which neither side sends anything.
func (s *Session) refused(err error) {
	s.enter(onRefused, nil)
	s.bye = unsaid
	if s.err == nil {
		s.err = err
	}
	s.closeStream(err)
}

// lost ends the session with its association. There may be thousands: the DDP stream of each hears of it when its event is polled.
func (s *Session) lost(err error) {
	known := s.known()
	s.enter(onDown, nil)
	s.err = err
	s.release()
	if known {
		s.m.events.push(Event{Kind: EventDown, Session: s, Err: err})
	}
}

// known says that the user has heard of the session.
func (s *Session) known() bool {
	next, ok := s.own.(*successor)
	return s.state != refusing && !(ok && next.unknown)
}

// closeStream tells the DDP stream that the LLP stream is gone. Its memory must be free by now.
func (s *Session) closeStream(err error) {
	if ds := s.ds; ds != nil {
		s.ds = nil
		ds.Closed(err)
	}
}

// settle ends the session when nothing of it can be outstanding in either direction (section 6.6):
// the peer's last message has had its turn, and all of ours is acknowledged.
func (s *Session) settle() {
	if !settles.has(s.state) || s.unacked > 0 || !s.silent() {
		return
	}
	next, _ := s.own.(*successor)
	known := s.known()
	s.enter(onSettled, nil)
	s.release()
	s.closeStream(s.err)
	if known {
		s.m.events.push(Event{Kind: EventEnded, Session: s})
	}
	switch {
	case next == nil:
	case next.refused:
		s.m.refuse(s.stream)
	default:
		s.m.start(s.stream, next.fn, next.private)
	}
}

// silent says that this side has nothing more to hand over, in a state that leads to the end.
func (s *Session) silent() bool {
	if s.opener != nil && !s.opener.handed {
		return false
	}
	return s.bye == said || s.bye == unsaid
}

// release gives back what the session holds of the Mux.
func (s *Session) release() {
	s.window.clear(&s.m.store)
	s.opener = nil
	s.m.remove(s)
}
