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
	tokenOpener
	tokenTerminate
	tokenBits = 2
)

// nextControl returns the control message that may leave now, 0 if none. The Terminate waits until
// the opener is known to have arrived, so that it cannot overtake it (section 6.6), and on the active side for an answer.
func (s *Session) nextControl() function {
	switch {
	case s.state == ended || s.unacked >= MaxInFlight:
	case s.opener != nil:
		if !s.opener.handed {
			return s.opener.fn
		}
	case s.bye == due && s.state != called && s.state != canceled:
		return terminate
	}
	return 0
}

// sending says that segments may leave: on the active side once the Accept has come, on the passive
// side behind its own Accept.
func (s *Session) sending() bool {
	return accepted.has(s.state) && (s.opener == nil || s.opener.handed) && s.bye < due && s.unacked < MaxInFlight
}

// schedule queues the session for what it has to send.
func (s *Session) schedule() {
	switch {
	case s.nextControl() != 0:
		s.m.control.push(s)
	case s.more():
		s.m.turns.push(s)
	}
}

// more reports whether it has segments that may leave.
func (s *Session) more() bool { return s.sending() && s.ds != nil && s.ds.Pending() }

// Next hands over the next message (assoc.Source): control messages first, then segments of the
// sessions by turns. Its DDP-SSN is assigned here, so there is never a gap.
func (m *Mux) Next(_ rawio.Time, room int, msg *assoc.Message) bool {
	if !m.up || !m.agreed() {
		return false
	}
	for s := m.control.pop(); s != nil; s = m.control.pop() {
		if fn := s.nextControl(); fn != 0 {
			s.sendControl(fn, msg)
			s.schedule()
			return true
		}
	}
	for s := m.turns.next(); s != nil; s = m.turns.next() {
		if s.sending() && s.sendSegment(room, msg) {
			m.turns.spent(1, s.more())
			s.schedule()
			return true
		}
		m.turns.over()
	}
	return false
}

// Idle says that Next has nothing (assoc.Source).
func (m *Mux) Idle() bool {
	return m.control.head == nil && m.turns.idle() && (!m.up || m.life == m.a.Incarnation())
}

func (s *Session) sendControl(fn function, msg *assoc.Message) {
	kind := uint64(tokenOpener)
	if fn == terminate {
		kind, s.bye = tokenTerminate, said
	} else if s.opener.handed = true; s.state == calling {
		s.enter(onHanded, nil)
	}
	ssn := s.number(msg, kind)
	msg.PPID = PPIDControl
	// The session waits for the acknowledgement: have it sent at once.
	msg.SackNow = true
	putControl(msg.Head[:], ssn, fn)
	msg.HeadLen = controlLen
	if fn != terminate {
		msg.Body[0] = s.opener.private
	}
}

// sendSegment cuts a segment that fits room octets: a DATA chunk, or what is left of a packet. Where the
// path is too narrow for MinMULPDU the association fragments it (section 9). What is no longer than
// MinMULPDU stays in one piece, and so do the messages that RDMAP expects whole.
func (s *Session) sendSegment(room int, msg *assoc.Message) bool {
	seg := &s.m.seg
	most := s.m.a.MaxPayload()
	limit := min(mulpdu(most), room-ssnLen)
	if room >= most || s.ds.Rest()+ddp.MaxHeaderLen <= MinMULPDU {
		limit = max(MinMULPDU, limit)
	}
	if !s.ds.NextSegment(limit, seg) || dead.has(s.state) {
		return false
	}
	s.m.stats.SegmentsOut++
	ssn := s.number(msg, tokenSegment)
	msg.PPID = PPIDSegment
	binary.BigEndian.PutUint16(msg.Head[:], ssn)
	msg.HeadLen = uint8(ssnLen + copy(msg.Head[ssnLen:], seg.Header[:seg.HeaderLen]))
	msg.Body = seg.Body
	s.finishIfCut()
	return true
}

// NextRun hands over segments of one message of a session, within its turn (assoc.Runner): what Next does for each when nothing else is to be done for any of them.
func (m *Mux) NextRun(_ rawio.Time, size, n int) *assoc.Run {
	if !m.up || m.life != m.a.Incarnation() || m.control.head != nil || size < ssnLen+MinMULPDU {
		return nil
	}
	s := m.turns.next()
	if s == nil || !s.sending() || s.ds == nil {
		return nil
	}
	segs := &ddp.Run{}
	if n = s.ds.NextRun(size-ssnLen, min(n, assoc.RunMost, m.turns.left, MaxInFlight-s.unacked), segs); n == 0 {
		return nil
	}
	if m.run == nil {
		m.run = new(assoc.Run)
	}
	r := m.run
	r.Stream, r.PPID, r.Token, r.N = s.stream, PPIDSegment, s.token(tokenSegment), n
	r.HeadLen = uint8(ssnLen + segs.HeaderLen())
	r.Body, r.Beyond = segs.Body, segs.Beyond
	for i := range n {
		h := r.Heads[i][:]
		binary.BigEndian.PutUint16(h, s.outSSN)
		s.outSSN++
		segs.PutHeader(i, h[ssnLen:])
	}
	s.unacked += n
	s.stats.Out += uint64(n)
	m.stats.SegmentsOut += uint64(n)
	m.turns.spent(n, s.more())
	s.schedule()
	return r
}

// token is that of the session's messages of a kind.
func (s *Session) token(kind uint64) uint64 { return uint64(s.gen)<<tokenBits | kind }

// number starts msg as the session's next message and returns its DDP-SSN.
func (s *Session) number(msg *assoc.Message, kind uint64) uint16 {
	ssn := s.outSSN
	s.outSSN++
	s.unacked++
	s.stats.Out++
	*msg = assoc.Message{Stream: s.stream, Unordered: true, Token: s.token(kind)}
	return ssn
}

// Acked takes in the acknowledgement of a message (assoc.Source).
func (m *Mux) Acked(now rawio.Time, id wire.StreamID, token uint64) { m.AckedRun(now, id, token, 1) }

// AckedRun is Acked for n of them (assoc.Runner).
func (m *Mux) AckedRun(_ rawio.Time, id wire.StreamID, token uint64, n int) {
	s := m.lookup(id)
	if s == nil || token>>tokenBits != uint64(s.gen) {
		return
	}
	full := s.unacked >= MaxInFlight
	s.unacked -= n
	switch token & (1<<tokenBits - 1) {
	case tokenSegment:
		if s.ds != nil {
			s.ds.AckedRun(n)
		}
	case tokenOpener:
		s.opener = nil
		s.schedule()
	}
	if full {
		s.schedule()
	}
	s.settle()
}
