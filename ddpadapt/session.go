package ddpadapt

import (
	"slices"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddp/llp"
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

// terminateState says how far this side's Terminate has come.
type terminateState uint8

const (
	terminateNone      terminateState = iota
	terminateAfterData                // to follow what the DDP stream still has to send
	terminateDue                      // to be sent as soon as it may be
	terminateSent                     // handed over
)

// firstMessage is this side's Initiate, Accept or Reject, until it is known to have arrived
// (section 6.6).
type firstMessage struct {
	fn         functionCode
	private    []byte
	handedOver bool // over to the association
}

// unknownSSN stands for a DDP-SSN that is not known.
const unknownSSN = -1

// Session is one DDP stream session: one use of a stream pair, between an Initiate and its end.
// It implements ddp.LLP.
type Session struct {
	// Owner is free for the user of the session.
	Owner any

	mux      *Mux
	stream   wire.StreamID
	gen      uint32 // tells the messages of this session from those of others on the stream
	active   bool
	enhanced bool // RFC 6581: the codes of this session are the enhanced ones

	state     sessionState // changed by changeState
	stateData any          // what exists in this state only
	ds        *ddp.Stream  // nil before the session is accepted here, and from its end on
	err       error        // why the session is over, nil for a normal end

	nextSSN    uint16       // DDP-SSN whose turn it is
	outOfOrder recordWindow // messages that wait for their turn
	stopSSN    int          // from there on no segment is placed, as a fault or the end is there; or absent
	lastSSN    int          // DDP-SSN of the peer's last message, once it has arrived; or absent

	firstMessage    *firstMessage
	ourTerminate    terminateState
	nextOutSSN      uint16 // DDP-SSN of the next message handed over
	unackedMessages int    // messages handed over and not acknowledged
	stats           llp.StreamStats

	queueLinks [5]queueLink
}

// Open starts a session on a stream, or on any free one for -1. Its Initiate carries up to
// MaxPrivateData octets of private data. ds is attached at once, since the passive side's segments
// may overtake its Accept. Its own segments leave once the Accept has come. EventAccepted,
// EventRejected or EventTerminated tells the outcome.
//
// Errors: ErrPrivateDataTooLong, ErrInvalidStream, ErrStreamInUse, ErrNoFreeStream, ErrNotUp, or
// Mux.Err.
func (m *Mux) Open(_ rawio.Time, stream int, ds *ddp.Stream, private []byte) (*Session, error) {
	if len(private) > llp.MaxPrivateData {
		return nil, llp.ErrPrivateDataTooLong
	}
	return m.openSession(stream, ds, fnInitiate, private)
}

// OpenEnhanced is Open with negotiation (RFC 6581). setup is what the initiator has and wants.
// private is at most MaxEnhancedPrivateData octets. EventAccepted and EventRejected have the peer's
// Setup; Setup.Conclude says what it means.
//
// A peer that knows only plain sessions terminates the session. Ask it again with Open; the
// programs then agree on depths themselves (section 10). Use OpenEnhanced only when something is to
// be negotiated. Errors as for Open, and ErrDepth.
func (m *Mux) OpenEnhanced(_ rawio.Time, stream int, ds *ddp.Stream, setup llp.Setup, private []byte) (*Session,
	error) {
	if err := llp.CheckSetup(setup, private); err != nil {
		return nil, err
	}
	return m.openSession(stream, ds, fnEnhancedInitiate, llp.JoinSetup(setup, private))
}

func (m *Mux) openSession(stream int, ds *ddp.Stream, fn functionCode, private []byte) (*Session, error) {
	switch {
	case m.err != nil:
		return nil, m.err
	case !m.ddpAgreed:
		return nil, ErrNotUp
	}
	id, err := m.pickStream(stream)
	if err != nil {
		return nil, err
	}
	s := m.addSession(id, stateInitiateQueued, nil)
	s.active, s.enhanced = true, fn.isEnhanced()
	s.queueFirstMessage(fn, private)
	s.ds = ds
	ds.Attach(s)
	return s, nil
}

// Accept answers the peer's Initiate: ds is attached and may send at once. Segments that came
// before are delivered from within the call. An enhanced Initiate gets an enhanced answer that
// leaves all depths to the upper layer.
//
// Errors: ErrPrivateDataTooLong, ErrState, or why the session is over.
func (s *Session) Accept(now rawio.Time, ds *ddp.Stream, private []byte) error {
	if s.enhanced {
		return s.AcceptEnhanced(now, ds, llp.LeftToULP, private)
	}
	return s.acceptSession(ds, private)
}

// AcceptEnhanced is Accept for an enhanced Initiate (RFC 6581): setup is what Setup.Answer makes of
// the peer's. Its PeerToPeer is set as the peer asked; an empty RTR stands for RTRWrite. Errors as
// for Accept, ErrDepth, and ErrState for a plain session.
func (s *Session) AcceptEnhanced(_ rawio.Time, ds *ddp.Stream, setup llp.Setup, private []byte) error {
	private, err := s.enhancedAnswer(setup, private)
	if err != nil {
		return err
	}
	return s.acceptSession(ds, private)
}

func (s *Session) acceptSession(ds *ddp.Stream, private []byte) error {
	if err := s.checkAnswerable(private); err != nil {
		return err
	}
	kept := s.stateData.(*initiateReceivedData).earlySegments
	s.changeState(onAccept, nil)
	s.queueFirstMessage(fnAccept.enhancedIf(s.enhanced), private)
	s.ds = ds
	ds.Attach(s)
	s.placeEarly(kept)
	s.drainInOrder()
	return nil
}

// Reject answers the peer's Initiate; the session is over. Errors as for Accept.
func (s *Session) Reject(now rawio.Time, private []byte) error {
	if s.enhanced {
		return s.RejectEnhanced(now, llp.LeftToULP, private)
	}
	return s.rejectSession(private)
}

// RejectEnhanced is Reject for an enhanced Initiate. setup says what would have been acceptable,
// such as the ORD needed here (RFC 6581 section 9.1). Errors as for AcceptEnhanced.
func (s *Session) RejectEnhanced(_ rawio.Time, setup llp.Setup, private []byte) error {
	private, err := s.enhancedAnswer(setup, private)
	if err != nil {
		return err
	}
	return s.rejectSession(private)
}

func (s *Session) rejectSession(private []byte) error {
	if err := s.checkAnswerable(private); err != nil {
		return err
	}
	s.changeState(onReject, nil)
	s.queueFirstMessage(fnReject.enhancedIf(s.enhanced), private)
	return nil
}

// enhancedAnswer returns the private data of an enhanced answer.
func (s *Session) enhancedAnswer(setup llp.Setup, private []byte) ([]byte, error) {
	if err := llp.CheckSetup(setup, private); err != nil {
		return nil, err
	}
	if !s.enhanced {
		return nil, llp.ErrState
	}
	if a, ok := s.stateData.(*initiateReceivedData); ok { // else it is too late, as checkAnswerable says
		private = llp.JoinSetup(llp.MatchModel(setup, a.setup), private)
	}
	return private, nil
}

func (s *Session) checkAnswerable(private []byte) error {
	switch {
	case s.err != nil:
		return s.err
	case s.state != stateInitiateReceived:
		return llp.ErrState
	case len(private) > llp.MaxPrivateData:
		return llp.ErrPrivateDataTooLong
	}
	return nil
}

func (s *Session) queueFirstMessage(fn functionCode, private []byte) {
	s.firstMessage = &firstMessage{fn: fn, private: slices.Clone(private)}
	s.schedule()
}

// Terminate ends an accepted session gracefully: a Terminate follows everything that the DDP stream
// has accepted for sending. The peer's segments go on being delivered until its own Terminate. It
// returns ErrState before the session is accepted, or why it is over.
func (s *Session) Terminate(rawio.Time) error {
	switch {
	case s.err != nil:
		return s.err
	case deadStates.has(s.state), s.state == stateClosing, s.state == stateBothClosing:
		return nil
	case !acceptedStates.has(s.state):
		return llp.ErrState
	}
	s.changeState(onFinish, nil)
	s.ourTerminate = terminateAfterData
	s.ds.CloseSend()
	s.terminateIfCut()
	return nil
}

// terminateIfCut lets the Terminate follow the last segment: DDP takes no more messages by then.
func (s *Session) terminateIfCut() {
	if s.ourTerminate == terminateAfterData && s.ds != nil && !s.ds.Pending() {
		s.ourTerminate = terminateDue
		s.schedule()
	}
}

// Finish is called by the DDP stream (ddp.LLP): all is sent and acknowledged, and its user wants no
// more. The Terminate follows, behind the peer's Accept if need be.
func (s *Session) Finish() {
	if s.ourTerminate == terminateSent {
		return
	}
	s.ourTerminate = terminateDue
	if s.state == stateOpen || s.state == statePeerClosed {
		s.changeState(onFinish, nil)
	}
	s.schedule()
}

// Abort ends the session abruptly, in whatever state. Nothing more is sent or placed, and the
// user's memory is free when it returns. The peer gets a Terminate; on the active side only after
// it has answered the Initiate. EventEnded follows. The DDP stream asks for an abortive end by it
// too (ddp.LLP).
func (s *Session) Abort() {
	if deadStates.has(s.state) {
		return
	}
	s.endSession(nil, onAbort)
	s.endIfSettled()
}

// Ready says that the DDP stream has segments to send (ddp.LLP).
func (s *Session) Ready() { s.schedule() }

// MULPDU returns the largest DDP segment in octets, header included. It fits an unfragmented DATA
// chunk next to a SACK, but is never less than MinMULPDU (section 9). It follows the path MTU.
func (s *Session) MULPDU() int { return mulpduFor(s.mux.a.MaxPayload()) }

// mulpduFor is the MULPDU where a DATA chunk carries so much.
func mulpduFor(payload int) int { return max(MinMULPDU, payload-ssnLen) }

// Detach copies what unacknowledged segments still reference inside within, so that the caller may
// change that memory. more says that this was only a part. The caller then lets others have the
// association, and calls again.
func (s *Session) Detach(within []byte) (more bool) {
	return s.state != stateEnded && s.mux.a.Detach(s.stream, within)
}

// Stats returns the counters.
func (s *Session) Stats() llp.StreamStats { return s.stats }

// Stream returns the number of the session's stream pair.
func (s *Session) Stream() wire.StreamID { return s.stream }

// Active says that this side sent the Initiate.
func (s *Session) Active() bool { return s.active }

// Err returns why the session is over: a *RejectedError, a *TerminatedError or the association's
// error. It is nil for an end that this side asked for.
func (s *Session) Err() error { return s.err }

// State returns the state.
func (s *Session) State() State {
	if s.state == stateBothClosing && s.ourTerminate == terminateSent {
		return Over
	}
	return visibleStates[s.state]
}

// endSession ends the session from this side, by onAbort, onFault or onUnknownSSN.
func (s *Session) endSession(err error, by trigger) {
	s.err = err
	switch {
	case s.nextOutSSN > 0:
		if s.ourTerminate != terminateSent {
			s.ourTerminate = terminateDue
		}
		var own any
		switch transitions[s.state][by] {
		case stateEnding:
			own = s.peerHalf()
		case stateCounting:
			own = s.startCounting()
		}
		s.changeState(by, own)
	default:
		// Nothing of ours is on the wire. A Terminate as the only message is the sequence of
		// section 6.4, after which the peer owes nothing. What was never said needs none.
		if s.ourTerminate = terminateDue; by == onAbort && s.active {
			s.ourTerminate = terminateNone
		}
		s.firstMessage = nil
		s.changeState(onNothingSent, nil)
	}
	if s.ds != nil && s.unackedMessages > 0 && s.mux.a.Detach(s.stream, nil) {
		s.mux.detachQueue.push(s)
	} else {
		s.closeStream(err)
	}
	s.schedule()
}

// peerHalf returns what is to be known of the peer's half once the session is ended.
func (s *Session) peerHalf() *endingData {
	if h, ok := s.stateData.(*endingData); ok {
		return h
	}
	return &endingData{wasAccepted: acceptedStates.has(s.state), unanswered: s.state == stateInitiateSent ||
		s.state == stateCanceled}
}

// startCounting begins to count the messages of the peer. What waited for its turn will not have
// it.
func (s *Session) startCounting() *countingData {
	t := &countingData{*s.peerHalf(), s.outOfOrder.numRecords}
	s.outOfOrder.clear(&s.mux.records)
	return t
}

// endRefused ends the session on the peer's answer, after which neither side sends anything.
func (s *Session) endRefused(err error) {
	s.changeState(onRefused, nil)
	s.ourTerminate = terminateNone
	if s.err == nil {
		s.err = err
	}
	s.closeStream(err)
}

// endWithAssoc ends the session with its association. There may be thousands: the DDP stream of
// each hears of it when its event is polled.
func (s *Session) endWithAssoc(err error) {
	known := s.isKnownToUser()
	s.changeState(onAssocDown, nil)
	s.err = err
	s.releaseStream()
	if known {
		s.mux.events.push(Event{Kind: EventDown, Session: s, Err: err})
	}
}

// isKnownToUser says that the user has heard of the session.
func (s *Session) isKnownToUser() bool {
	next, ok := s.stateData.(*nextSessionData)
	return s.state != stateRejecting && !(ok && next.userUnaware)
}

// closeStream tells the DDP stream that the LLP stream is gone. Its memory must be free by now.
func (s *Session) closeStream(err error) {
	if ds := s.ds; ds != nil {
		s.ds = nil
		ds.Closed(err)
	}
}

// endIfSettled ends the session when nothing of it can be outstanding in either direction (section
// 6.6). The peer's last message has had its turn then, and all of ours is acknowledged.
func (s *Session) endIfSettled() {
	if !settlingStates.has(s.state) || s.unackedMessages > 0 || !s.hasNothingToSend() {
		return
	}
	next, _ := s.stateData.(*nextSessionData)
	known := s.isKnownToUser()
	s.changeState(onAllAcked, nil)
	s.releaseStream()
	s.closeStream(s.err)
	if known {
		s.mux.events.push(Event{Kind: EventEnded, Session: s})
	}
	switch {
	case next == nil:
	case next.isRefused:
		s.mux.refuseSession(s.stream)
	default:
		s.mux.startPassive(s.stream, next.fn, next.private)
	}
}

// hasNothingToSend says that this side has nothing more to hand over, in a state that leads to the
// end.
func (s *Session) hasNothingToSend() bool {
	if s.firstMessage != nil && !s.firstMessage.handedOver {
		return false
	}
	return s.ourTerminate == terminateSent || s.ourTerminate == terminateNone
}

// releaseStream gives back what the session holds of the Mux.
func (s *Session) releaseStream() {
	s.outOfOrder.clear(&s.mux.records)
	s.firstMessage = nil
	s.mux.removeSession(s)
}
