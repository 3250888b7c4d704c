package ddpadapt

import (
	"encoding/binary"
	"slices"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// maxSegment bounds a segment that came in fragments, in octets of user message. No packet carries
// a longer one, so no peer has a reason to announce a larger MULPDU.
const maxSegment = 65535

// Place takes in one new DATA chunk (assoc.Placer). A DDP segment goes straight from the packet to
// its place. The association puts fragments together, see HandleReceived.
func (m *Mux) Place(_ rawio.Time, d wire.Data, _ *rawio.Buf) assoc.Verdict {
	if !m.ensureAgreed() {
		return assoc.Queue // not DDP, or at its end
	}
	if !d.B() || !d.E() {
		return assoc.Queue
	}
	return m.receiveMessage(d.Stream(), d.PPID(), d.U(), d.Payload())
}

// PlaceRow takes in segments of one session in their turn (assoc.RowPlacer). It does what Place
// does for each, as long as each is only placed.
func (m *Mux) PlaceRow(_ rawio.Time, row assoc.Row) int {
	d, ok := row.At(0)
	if !ok || d.PPID() != PPIDSegment || !m.ensureAgreed() {
		return 0
	}
	s := m.sessionOn(d.Stream())
	if !m.takesFastPath(s) || s.outOfOrder.numRecords > 0 {
		return 0
	}
	var segs [assoc.RowMost][]byte
	n := 0
	for ; n < min(row.Len(), len(segs)); n++ {
		d, ok := row.At(n)
		if !ok || len(d.Payload()) <= ssnLen || binary.BigEndian.Uint16(d.Payload()) != s.nextSSN+uint16(n) {
			break
		}
		if segs[n] = d.Payload()[ssnLen:]; ddp.Control(segs[n][0]).Last() {
			break // something comes of that one
		}
	}
	n = s.ds.PlaceRow(segs[:n])
	m.workSteps += uint64(n)
	m.stats.SegmentsIn += uint64(n)
	s.stats.In += uint64(n)
	s.nextSSN += uint16(n)
	return n
}

// takesFastPath says whether a segment of s, which may be nil, is placed at once if it comes in its
// turn.
func (m *Mux) takesFastPath(s *Session) bool {
	return s != nil && receivingStates.has(s.state) && s.stopSSN == unknownSSN && !m.deliverQueue.has(s)
}

// messagesPerCall bounds how many messages of a session have their turn before others are served.
// It also bounds how many in fragments are taken in.
const messagesPerCall = 512

// HandleReceived goes on with the work of one packet that was too much to do at once. It also takes
// in messages that came in fragments, which section 9 allows where the path MTU is small. Call it
// after each packet, and again while it reports more; others may have the association in between.
func (m *Mux) HandleReceived(rawio.Time) (more bool) {
	if !m.ddpAgreed || !m.ensureAgreed() {
		return false
	}
	if s := m.detachQueue.pop(); s != nil && s.ds != nil {
		if m.a.Detach(s.stream, nil) {
			m.detachQueue.push(s)
		} else {
			s.closeStream(s.err)
		}
	}
	if s := m.deliverQueue.pop(); s != nil {
		s.drainInOrder()
	}
	if m.detachQueue.head != nil || m.deliverQueue.head != nil {
		return true // a message in fragments cannot be asked for again: those before it come first
	}
	for range messagesPerCall {
		r, ok := m.a.Receive()
		if !ok {
			return false
		}
		m.workSteps++
		m.receiveFragmented(r)
		m.a.Release(r)
		if m.deliverQueue.head != nil {
			break
		}
	}
	return true
}

func (m *Mux) receiveFragmented(r *assoc.Received) {
	n := min(r.Size, maxSegment+1)
	if cap(m.scratch) < n {
		m.scratch = make([]byte, n)
	}
	b := m.scratch[:n]
	r.CopyTo(b, 0)
	if s := m.sessionOn(r.Stream); s != nil {
		s.stats.Fragmented++
	}
	if m.receiveMessage(r.Stream, r.PPID, r.Unordered, b) != assoc.DropUnacked {
		return
	}
	// The message is acknowledged and cannot be asked for again.
	if s := m.sessionOn(r.Stream); s != nil {
		if next, ok := s.stateData.(*nextSessionData); ok {
			next.isRefused = true // it was one of the session to come
			return
		}
		s.receiveUnknownSSN(FaultWindowSSN)
	}
}

// receiveUnknownSSN takes a message whose DDP-SSN is not known, or which was not kept. The turn of
// those behind it never comes, so the session is dead. From now on its messages are only counted,
// until all have arrived. All that a stream carries has a DDP-SSN (section 5.2.1), so this one
// counts too. The Terminate may overtake others, which must not come when the stream is free.
func (s *Session) receiveUnknownSSN(f Fault) {
	s.terminateForFault(0, f, onUnknownSSN)
	if s.state == stateCanceled || s.state == stateEnding {
		if s.state == stateCanceled {
			s.firstMessage = nil // a peer that sends something has the Initiate
		}
		s.changeState(onUnknownSSN, s.startCounting())
	}
	s.countMessage(false)
	s.endIfSettled()
}

// countMessage takes one more message in state counting.
func (s *Session) countMessage(refusal bool) {
	t, ok := s.stateData.(*countingData)
	if !ok {
		return
	}
	if t.receivedMessages++; s.lastSSN != unknownSSN && t.receivedMessages > int(uint16(s.lastSSN)-s.nextSSN) {
		s.peerFinished(refusal && t.unanswered)
	}
	s.schedule()
}

// receiveMessage takes in one whole user message.
func (m *Mux) receiveMessage(id wire.StreamID, ppid uint32, unordered bool, b []byte) assoc.Verdict {
	m.workSteps++
	s := m.sessionOn(id)
	if m.takesFastPath(s) && ppid == PPIDSegment && unordered &&
		len(b) >= ssnLen && len(b) <= maxSegment && binary.BigEndian.Uint16(b) == s.nextSSN {
		// The fast path: a segment in its turn.
		m.stats.SegmentsIn++
		s.stats.In++
		s.nextSSN++
		s.ds.Place(b[ssnLen:], &m.fastPlaced)
		s.ds.Deliver(&m.fastPlaced)
		if s.outOfOrder.numRecords > 0 {
			s.drainInOrder()
		}
		return assoc.Consumed
	}
	if int(id) >= m.numStreams {
		m.stats.BadStreams++
		return assoc.AbortAssoc // there is no stream back (section 8)
	}
	msg := parseMessage(ppid, unordered, b)
	switch {
	case s == nil:
		return m.receiveFirst(id, msg)
	case s.state == stateInitiateQueued:
		s.receiveBeforeInitiate(msg)
		return assoc.Consumed
	case s.state == stateReused, m.deliverQueue.has(s) && msg.isBeyondWindow(s.nextSSN):
		m.stats.NextSession++
		return assoc.DropUnacked // of the next session; ours ends with the next acknowledgement
	case msg.ssn == 0 && s.startsNextSession(msg):
		return s.keepNextSession(msg)
	case !msg.hasSSN:
		s.receiveUnknownSSN(msg.fault)
		return assoc.Consumed
	}
	return s.receiveNumbered(msg)
}

// receiveFirst takes in a message on a free stream. Nothing but an Initiate may come before the
// Initiate has arrived (section 6.6), so it waits for no earlier message. A Terminate is never
// answered: two sides must not go on terminating what neither knows.
func (m *Mux) receiveFirst(id wire.StreamID, msg userMessage) assoc.Verdict {
	switch {
	case msg.fn == fnTerminate:
		m.stats.Ignored++
		return assoc.Consumed
	case msg.fn.plainCode() == fnInitiate && msg.fault == 0 && msg.ssn == 0 && m.pendingInitiates < m.cfg.MaxPending:
		m.startPassive(id, msg.fn, msg.payload)
		return assoc.Consumed
	case m.unackedRefusals >= maxRefusals:
		m.stats.RefusalsFull++
		return assoc.DropUnacked
	case msg.fn.plainCode() == fnInitiate && msg.fault == 0 && msg.ssn == 0:
		m.stats.PendingFull++
	}
	m.refuseSession(id)
	return assoc.Consumed
}

// receiveBeforeInitiate takes in a message on a session whose Initiate has not left yet. The
// message answers nothing, and the stream is as good as free.
func (s *Session) receiveBeforeInitiate(msg userMessage) {
	switch msg.fn.plainCode() {
	case fnTerminate:
		s.mux.stats.Ignored++
		return
	case fnInitiate:
		s.terminateForFault(msg.ssn, FaultCrossed, onFault)
	default:
		s.terminateForFault(msg.ssn, FaultStart, onFault)
	}
}

// startPassive makes a passive session of an Initiate, or refuses it beyond the limit of section
// 6.4.
func (m *Mux) startPassive(id wire.StreamID, fn functionCode, private []byte) {
	if m.pendingInitiates >= m.cfg.MaxPending {
		m.stats.PendingFull++
		m.refuseSession(id)
		return
	}
	a := new(initiateReceivedData)
	s := m.addSession(id, stateInitiateReceived, a)
	s.nextSSN = 1
	m.pendingInitiates++
	m.stats.Requests++
	ev := Event{Kind: EventInitiate, Session: s}
	if fn.isEnhanced() {
		ev.Setup, private = llp.SplitSetup(private)
		s.enhanced, a.setup = true, *ev.Setup
	}
	ev.Private = slices.Clone(private)
	m.events.push(ev)
}

// refuseSession answers on a free stream by a Terminate (section 6.4).
func (m *Mux) refuseSession(id wire.StreamID) {
	m.stats.Refused++
	m.unackedRefusals++
	s := m.addSession(id, stateRejecting, nil)
	s.ourTerminate = terminateDue
	s.schedule()
}

// startsNextSession tells whether msg is of the peer's next session on the stream. The peer may
// begin that as soon as nothing is outstanding in its own eyes. It may have all our messages while
// we lack the acknowledgements, and need not have sent a Terminate after ours.
//
// If nothing more of this session is awaited, any message with the number of a first message starts
// one. An Initiate does so also before our last message has left, but it comes too early then.
func (s *Session) startsNextSession(msg userMessage) bool {
	begins := msg.fn.plainCode() == fnInitiate
	switch {
	case !msg.hasSSN || msg.fn == fnTerminate:
		return false
	case !s.hasNothingToSend():
		return begins && s.state == stateDone
	case finalStates.has(s.state):
		return true
	}
	switch own := s.stateData.(type) {
	case *endingData:
		return begins && own.wasAccepted && s.outOfOrder.numRecords == 0
	case *countingData:
		return begins && own.wasAccepted
	}
	return begins && (s.state == stateBothClosing || s.state == stateClosing && s.ourTerminate == terminateSent &&
		s.outOfOrder.numRecords == 0)
}

// keepNextSession keeps the first message of the peer's next session until this one has ended. It
// is then refused if it is no Initiate, not well formed, or came before the peer could have all of
// this session.
func (s *Session) keepNextSession(msg userMessage) assoc.Verdict {
	next := &nextSessionData{fn: msg.fn, isRefused: msg.fault != 0 || msg.fn.plainCode() != fnInitiate ||
		!s.hasNothingToSend(), userUnaware: s.state == stateRejecting}
	if next.isRefused && s.mux.unackedRefusals >= maxRefusals {
		s.mux.stats.RefusalsFull++
		return assoc.DropUnacked
	}
	if !next.isRefused {
		next.private = slices.Clip(append([]byte{}, msg.payload...))
	}
	s.changeState(onNextSession, next)
	s.endIfSettled()
	return assoc.Consumed
}

// receiveNumbered takes in a numbered message of the session. It checks the DDP-SSN (section 10),
// places the message, and judges it when its turn has come.
func (s *Session) receiveNumbered(msg userMessage) assoc.Verdict {
	m := s.mux
	last := msg.fn == fnTerminate || msg.fn.plainCode() == fnReject
	if deadStates.has(s.state) {
		m.stats.AfterEnd++
		if finalStates.has(s.state) {
			return assoc.Consumed
		}
	}
	if last {
		s.lastSSN = int(msg.ssn)
	}
	if s.state == stateCounting {
		s.countMessage(last)
		s.endIfSettled()
		return assoc.Consumed
	}
	ahead := msg.ssn - s.nextSSN
	switch {
	case ahead > MaxInFlight, s.outOfOrder.get(msg.ssn) != 0:
		s.terminateForFault(msg.ssn, FaultDuplicateSSN, onFault)
	case ahead == MaxInFlight:
		s.terminateForFault(msg.ssn, FaultWindowSSN, onFault)
	case ahead == 0 && !(s.state == stateInitiateReceived && msg.fn == 0 && msg.fault == 0):
		r := &m.currentRecord
		*r = record{}
		s.fillRecord(r, msg)
		s.processInOrder(r, msg.payload)
	default:
		r := s.outOfOrder.addRecord(&m.records, msg.ssn)
		if r == nil {
			m.stats.RecordsFull++
			return assoc.DropUnacked
		}
		if ahead > 0 {
			m.stats.OutOfOrder++
			s.stats.OutOfOrder++
		}
		s.fillRecord(r, msg)
		if !r.isSegment() || r.placed.Err != nil {
			s.stopPlacing(msg.ssn)
		}
	}
	s.stats.In++
	s.drainInOrder()
	return assoc.Consumed
}

// fillRecord fills the record of a message that has arrived. It places the segment if nothing is
// known that forbids it.
func (s *Session) fillRecord(r *record, msg userMessage) {
	r.fn, r.fault = msg.fn, msg.fault
	switch {
	case !r.isSegment():
		return
	case len(msg.payload) > maxSegment-ssnLen:
		r.fault = FaultTooLong
		return
	}
	s.mux.stats.SegmentsIn++
	if s.stopSSN != unknownSSN && msg.ssn-s.nextSSN >= uint16(s.stopSSN)-s.nextSSN {
		return
	}
	switch {
	case s.state == stateInitiateReceived:
		s.keepEarly(r, msg)
	case s.state == stateInitiateSent && msg.ssn == s.nextSSN: // in place of the answer: a fault
	case s.state == stateInitiateSent || receivingStates.has(s.state):
		s.ds.Place(msg.payload, &r.placed)
	}
}

// stopPlacing notes that no segment from ssn on is placed. What waits there for its turn is a
// fault, or the peer's last message.
func (s *Session) stopPlacing(ssn uint16) {
	if s.stopSSN == unknownSSN || ssn-s.nextSSN < uint16(s.stopSSN)-s.nextSSN {
		s.stopSSN = int(ssn)
	}
}

// keepEarly copies a segment that came before the session was accepted.
func (s *Session) keepEarly(r *record, msg userMessage) {
	a := s.stateData.(*initiateReceivedData)
	n, limit := len(msg.payload), s.mux.cfg.MaxEarly
	if n > limit-a.earlyOctets || n > earlySessions*limit-s.mux.earlyOctets {
		s.terminateForFault(msg.ssn, FaultEarlyData, onFault)
		return
	}
	r.earlyPayload = append(make([]byte, 0, n), msg.payload...)
	a.earlySegments++
	a.earlyOctets += n
	s.stats.Early++
	s.mux.earlyOctets += n
}

// placeEarly places the n segments that keepEarly has copied.
func (s *Session) placeEarly(n int) {
	st := &s.mux.records
	for ssn, end := s.nextSSN, s.nextSSN+MaxInFlight; n > 0 && ssn != end; ssn++ {
		s.mux.workSteps++
		s.outOfOrder.skipEmptyPage(&ssn, end)
		i := s.outOfOrder.get(ssn)
		if i == 0 || st.slab[i].earlyPayload == nil {
			continue
		}
		n--
		r := &st.slab[i]
		if early := r.earlyPayload; s.stopSSN == unknownSSN || ssn-s.nextSSN < uint16(s.stopSSN)-s.nextSSN {
			if s.ds.Place(early, &r.placed); r.placed.Err != nil {
				s.stopPlacing(ssn)
			}
		}
		r.earlyPayload = nil
	}
}

// isBeyondWindow says whether the peer may have sent the message only after an acknowledgement of
// those that wait for their turn. Such a message is of the next session, or beyond the window that
// begins at next.
func (m *userMessage) isBeyondWindow(next uint16) bool {
	return m.hasSSN && (m.ssn-next >= MaxInFlight || m.ssn == 0 && m.fn.plainCode() == fnInitiate)
}

// drainInOrder gives the messages that wait their turn, as far as there is no gap. Of many, others
// are served in between.
func (s *Session) drainInOrder() {
	if s.mux.deliverQueue.has(s) {
		return
	}
	st := &s.mux.records
	for n := 0; s.outOfOrder.numRecords > 0; n++ {
		if n == messagesPerCall {
			s.mux.deliverQueue.push(s)
			return
		}
		s.mux.workSteps++
		i := s.outOfOrder.get(s.nextSSN)
		if i == 0 || s.state == stateInitiateReceived && st.slab[i].isSegment() {
			break
		}
		s.outOfOrder.removeRecord(st, s.nextSSN)
		s.processInOrder(&st.slab[i], nil)
		st.freeRecord(i)
	}
	s.endIfSettled()
}
