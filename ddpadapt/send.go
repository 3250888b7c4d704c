package ddpadapt

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// The low bits of a message's token; the others are the session's generation.
const (
	tokenSegment = iota
	tokenFirstMessage
	tokenTerminate
	tokenBits = 2
)

// nextControl returns the control message that may leave now, 0 if none. The Terminate waits until
// the opener is known to have arrived, so that it cannot overtake it (section 6.6). On the active
// side it also waits for an answer.
func (s *Session) nextControl() functionCode {
	switch {
	case s.state == stateEnded || s.unackedMessages >= MaxInFlight:
	case s.firstMessage != nil:
		if !s.firstMessage.handedOver {
			return s.firstMessage.fn
		}
	case s.ourTerminate == terminateDue && s.state != stateInitiateSent && s.state != stateCanceled:
		return fnTerminate
	}
	return 0
}

// maySendSegments says whether segments may leave: on the active side once the Accept has come, on
// the passive side behind its own Accept.
func (s *Session) maySendSegments() bool {
	return acceptedStates.has(s.state) && (s.firstMessage == nil || s.firstMessage.handedOver) &&
		s.ourTerminate < terminateDue && s.unackedMessages < MaxInFlight
}

// schedule queues the session for what it has to send.
func (s *Session) schedule() {
	switch {
	case s.nextControl() != 0:
		s.mux.controlQueue.push(s)
	case s.hasSegments():
		s.mux.scheduler.push(s)
	}
}

// hasSegments reports whether it has segments that may leave.
func (s *Session) hasSegments() bool { return s.maySendSegments() && s.ds != nil && s.ds.Pending() }

// Next hands over the next message (assoc.Source): control messages first, then segments of the
// sessions by turns. Its DDP-SSN is assigned here, so there is never a gap.
func (m *Mux) Next(_ rawio.Time, room int, msg *assoc.Message) bool {
	if !m.ddpAgreed || !m.ensureAgreed() {
		return false
	}
	for s := m.controlQueue.pop(); s != nil; s = m.controlQueue.pop() {
		if fn := s.nextControl(); fn != 0 {
			s.sendControl(fn, msg)
			s.schedule()
			return true
		}
	}
	for s := m.scheduler.nextSession(); s != nil; s = m.scheduler.nextSession() {
		if s.maySendSegments() && s.sendSegment(room, msg) {
			m.scheduler.chargeTurn(1, s.hasSegments())
			s.schedule()
			return true
		}
		m.scheduler.endTurn()
	}
	return false
}

// Idle says that Next has nothing (assoc.Source).
func (m *Mux) Idle() bool {
	return m.controlQueue.head == nil && m.scheduler.isIdle() && (!m.ddpAgreed || m.incarnation == m.a.Incarnation())
}

func (s *Session) sendControl(fn functionCode, msg *assoc.Message) {
	kind := uint64(tokenFirstMessage)
	if fn == fnTerminate {
		kind, s.ourTerminate = tokenTerminate, terminateSent
	} else if s.firstMessage.handedOver = true; s.state == stateInitiateQueued {
		s.changeState(onInitiateSent, nil)
	}
	ssn := s.numberMessage(msg, kind)
	msg.PPID = PPIDControl
	// The session waits for the acknowledgement: have it sent at once.
	msg.SackNow = true
	putControl(msg.Head[:], ssn, fn)
	msg.HeadLen = controlLen
	if fn != fnTerminate {
		msg.Body[0] = s.firstMessage.private
	}
}

// sendSegment cuts a segment that fits room octets: a DATA chunk, or what is left of a packet. If
// the path is too narrow for MinMULPDU, the association fragments the segment (section 9). What is
// no longer than MinMULPDU stays in one piece. So do messages that RDMAP expects whole.
func (s *Session) sendSegment(room int, msg *assoc.Message) bool {
	seg := &s.mux.outSegment
	most := s.mux.a.MaxPayload()
	limit := min(mulpduFor(most), room-ssnLen)
	if room >= most || s.ds.Rest()+ddp.MaxHeaderLen <= MinMULPDU {
		limit = max(MinMULPDU, limit)
	}
	if !s.ds.NextSegment(limit, seg) || deadStates.has(s.state) {
		return false
	}
	s.mux.stats.SegmentsOut++
	ssn := s.numberMessage(msg, tokenSegment)
	msg.PPID = PPIDSegment
	binary.BigEndian.PutUint16(msg.Head[:], ssn)
	msg.HeadLen = uint8(ssnLen + copy(msg.Head[ssnLen:], seg.Header[:seg.HeaderLen]))
	msg.Body = seg.Body
	s.terminateIfCut()
	return true
}

// NextRun hands over segments of one message of a session, within its turn (assoc.Runner). It does
// what Next does for each, as long as nothing else is due.
func (m *Mux) NextRun(_ rawio.Time, size, n int) *assoc.Run {
	if !m.ddpAgreed || m.incarnation != m.a.Incarnation() || m.controlQueue.head != nil || size < ssnLen+MinMULPDU {
		return nil
	}
	s := m.scheduler.nextSession()
	if s == nil || !s.maySendSegments() || s.ds == nil {
		return nil
	}
	segs := &ddp.Run{}
	if n = s.ds.NextRun(size-ssnLen, min(n, assoc.RunMost, m.scheduler.segmentsLeft, MaxInFlight-s.unackedMessages),
		segs); n == 0 {
		return nil
	}
	if m.outRun == nil {
		m.outRun = new(assoc.Run)
	}
	r := m.outRun
	r.Stream, r.PPID, r.Token, r.N = s.stream, PPIDSegment, s.messageToken(tokenSegment), n
	r.HeadLen = uint8(ssnLen + segs.HeaderLen())
	r.Body, r.Beyond = segs.Body, segs.Beyond
	for i := range n {
		h := r.Heads[i][:]
		binary.BigEndian.PutUint16(h, s.nextOutSSN)
		s.nextOutSSN++
		segs.PutHeader(i, h[ssnLen:])
	}
	s.unackedMessages += n
	s.stats.Out += uint64(n)
	m.stats.SegmentsOut += uint64(n)
	m.scheduler.chargeTurn(n, s.hasSegments())
	s.schedule()
	return r
}

// messageToken is that of the session's messages of a kind.
func (s *Session) messageToken(kind uint64) uint64 { return uint64(s.gen)<<tokenBits | kind }

// numberMessage starts msg as the session's next message and returns its DDP-SSN.
func (s *Session) numberMessage(msg *assoc.Message, kind uint64) uint16 {
	ssn := s.nextOutSSN
	s.nextOutSSN++
	s.unackedMessages++
	s.stats.Out++
	*msg = assoc.Message{Stream: s.stream, Unordered: true, Token: s.messageToken(kind)}
	return ssn
}

// Acked takes in the acknowledgement of a message (assoc.Source).
func (m *Mux) Acked(now rawio.Time, id wire.StreamID, token uint64) { m.AckedRun(now, id, token, 1) }

// AckedRun is Acked for n of them (assoc.Runner).
func (m *Mux) AckedRun(_ rawio.Time, id wire.StreamID, token uint64, n int) {
	s := m.sessionOn(id)
	if s == nil || token>>tokenBits != uint64(s.gen) {
		return
	}
	full := s.unackedMessages >= MaxInFlight
	s.unackedMessages -= n
	switch token & (1<<tokenBits - 1) {
	case tokenSegment:
		if s.ds != nil {
			s.ds.AckedRun(n)
		}
	case tokenFirstMessage:
		s.firstMessage = nil
		s.schedule()
	}
	if full {
		s.schedule()
	}
	s.endIfSettled()
}
