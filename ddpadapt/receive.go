package ddpadapt

import (
	"encoding/binary"
	"slices"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// maxSegment bounds a segment that came in fragments: no packet carries a longer one, so no peer has
// a reason to announce a larger MULPDU. In octets of user message.
const maxSegment = 65535

// Place takes in one new DATA chunk (assoc.Placer): a DDP segment goes straight from the packet to
// its place. Fragments are left to the association to be put together, see HandleReceived.
func (m *Mux) Place(_ rawio.Time, d wire.Data, _ *rawio.Buf) assoc.Verdict {
	if !m.agreed() {
		return assoc.Queue // not DDP, or at its end: none of our business
	}
	if !d.B() || !d.E() {
		return assoc.Queue
	}
	return m.receive(d.Stream(), d.PPID(), d.U(), d.Payload())
}

// HandleReceived takes in the messages that came in fragments (section 9 allows them where the path
// MTU is small). Call it after each packet.
func (m *Mux) HandleReceived(rawio.Time) {
	if !m.up || !m.agreed() {
		return
	}
	for {
		r, ok := m.a.Receive()
		if !ok {
			return
		}
		m.reassembled(r)
		m.a.Release(r)
	}
}

func (m *Mux) reassembled(r *assoc.Received) {
	n := min(r.Size, maxSegment+1)
	if cap(m.scratch) < n {
		m.scratch = make([]byte, n)
	}
	b := m.scratch[:n]
	r.CopyTo(b, 0)
	if s := m.lookup(r.Stream); s != nil {
		s.stats.Fragmented++
	}
	if m.receive(r.Stream, r.PPID, r.Unordered, b) != assoc.DropUnacked {
		return
	}
	// The message is acknowledged and cannot be asked for again.
	if s := m.lookup(r.Stream); s != nil {
		s.violate(0, FaultWindowSSN)
		s.lose()
		s.settle()
	}
}

// lose notes that a message is acknowledged and was not kept: the turn of those behind it never comes. The session is dead,
// and its messages are only counted from now on, until all have arrived.
func (s *Session) lose() {
	if s.reopening != nil || s.in == done {
		return
	}
	if !s.counting {
		s.counting, s.beyond = true, uint16(s.window.n)
		s.window.clear(&s.m.store)
	}
	if s.in == answering { // a segment follows an Accept
		s.in, s.out = deaf, confirmed
	}
	s.count()
}

// count takes one more message that is not kept. The Terminate may overtake others, which must not come when the stream
// is free.
func (s *Session) count() {
	if s.beyond++; s.hasLast && s.beyond == s.last-s.next+1 {
		s.in = done
	}
	s.schedule()
}

// receive takes in one whole user message.
func (m *Mux) receive(id wire.StreamID, ppid uint32, unordered bool, b []byte) assoc.Verdict {
	s := m.lookup(id)
	if s != nil && s.in == flowing && !s.stopped && ppid == PPIDSegment && unordered &&
		len(b) >= ssnLen && len(b) <= maxSegment && binary.BigEndian.Uint16(b) == s.next {
		// The fast path: a segment in its turn.
		m.stats.SegmentsIn++
		s.stats.In++
		s.next++
		s.ds.Place(b[ssnLen:], &m.placed)
		s.ds.Deliver(&m.placed)
		if s.window.n > 0 {
			s.drain()
		}
		return assoc.Consumed
	}
	if int(id) >= m.limit {
		m.stats.BadStreams++
		return assoc.AbortAssoc // there is no stream back (section 8)
	}
	msg := parse(ppid, unordered, b)
	switch {
	case s == nil:
		return m.first(id, msg)
	case s.active && s.out == toSend:
		s.unasked(msg)
		return assoc.Consumed
	case s.reopening != nil:
		m.stats.NextSession++
		return assoc.DropUnacked // of the next session; ours ends with the next acknowledgement
	case s.reopenedBy(msg):
		s.reopening, s.reopener = slices.Clip(append([]byte{}, msg.payload...)), msg.fn
		s.in = done
		s.settle()
		return assoc.Consumed
	case !msg.numbered:
		s.violate(0, msg.fault)
		s.settle()
		return assoc.Consumed
	}
	return s.arrive(msg)
}

// first takes in a message on a free stream. Nothing but an Initiate may come before the Initiate has
// arrived (section 6.6), so there is no reason to wait for an earlier message. A Terminate is never
// answered: two sides must not go on terminating what neither knows.
func (m *Mux) first(id wire.StreamID, msg message) assoc.Verdict {
	switch {
	case msg.fn == terminate:
		m.stats.Ignored++
		return assoc.Consumed
	case msg.fn.plain() == initiate && msg.fault == 0 && msg.ssn == 0 && m.pending < m.cfg.MaxPending:
		m.start(id, msg.fn, msg.payload)
		return assoc.Consumed
	case m.refused >= maxRefusals:
		m.stats.RefusalsFull++
		return assoc.DropUnacked
	case msg.fn.plain() == initiate && msg.fault == 0 && msg.ssn == 0:
		m.stats.PendingFull++
	}
	m.refuse(id)
	return assoc.Consumed
}

// unasked takes in a message on a session whose Initiate has not left yet: it answers nothing, and its
// stream is as good as free.
func (s *Session) unasked(msg message) {
	switch msg.fn.plain() {
	case terminate:
		s.m.stats.Ignored++
		return
	case initiate:
		s.violate(msg.ssn, FaultCrossed)
	default:
		s.violate(msg.ssn, FaultStart)
	}
	s.settle()
}

// start makes a passive session of an Initiate, or refuses it beyond the limit of section 6.4.
func (m *Mux) start(id wire.StreamID, fn function, private []byte) {
	if m.pending >= m.cfg.MaxPending {
		m.stats.PendingFull++
		m.refuse(id)
		return
	}
	s := m.add(id, deciding)
	s.next = 1
	m.pending++
	m.stats.Requests++
	ev := Event{Kind: EventInitiate, Session: s}
	if fn.enhanced() {
		ev.Setup, private = splitSetup(private)
		s.enhanced, s.asked = true, *ev.Setup
	}
	ev.Private = slices.Clone(private)
	m.events.push(ev)
}

// refuse answers on a free stream by a Terminate (section 6.4).
func (m *Mux) refuse(id wire.StreamID) {
	m.stats.Refused++
	m.refused++
	s := m.add(id, done)
	s.dead, s.finish, s.refusal = true, true, true
	s.schedule()
}

// reopenedBy tells whether msg is the peer's Initiate of its next session on the stream. The peer may
// send it as soon as nothing is outstanding in its own eyes: it has all our messages though we lack
// the acknowledgements, and need not have sent a Terminate after ours.
func (s *Session) reopenedBy(msg message) bool {
	return msg.fn.plain() == initiate && msg.fault == 0 && msg.ssn == 0 &&
		(s.terminated || s.dead && !s.finish && s.out != toSend) &&
		(s.in == done || s.established && s.window.n == 0)
}

// arrive takes in a numbered message of the session: checks its DDP-SSN (section 10), places it, and
// judges it when its turn has come.
func (s *Session) arrive(msg message) assoc.Verdict {
	m := s.m
	if s.dead {
		m.stats.AfterEnd++
	}
	if s.dead && s.in == done {
		return assoc.Consumed
	}
	if msg.fn == terminate {
		s.last, s.hasLast = msg.ssn, true
	}
	if s.counting {
		s.count()
		s.settle()
		return assoc.Consumed
	}
	ahead := msg.ssn - s.next
	switch {
	case ahead > MaxInFlight, s.window.get(msg.ssn) != 0:
		s.violate(msg.ssn, FaultDuplicateSSN)
	case ahead == MaxInFlight:
		s.violate(msg.ssn, FaultWindowSSN)
	case ahead == 0 && !(s.in == deciding && msg.fn == 0 && msg.fault == 0):
		r := &m.current
		*r = record{}
		s.place(r, msg)
		s.turn(r, msg.payload)
	default:
		r := s.window.put(&m.store, msg.ssn)
		if r == nil {
			m.stats.RecordsFull++
			return assoc.DropUnacked
		}
		if ahead > 0 {
			m.stats.OutOfOrder++
			s.stats.OutOfOrder++
		}
		s.place(r, msg)
		if !r.segment() || r.placed.Err != nil {
			s.stop(msg.ssn)
		}
	}
	s.stats.In++
	s.drain()
	return assoc.Consumed
}

// place fills the record of a message that has arrived, and places its segment if nothing is known
// that forbids it.
func (s *Session) place(r *record, msg message) {
	r.fn, r.fault = msg.fn, msg.fault
	if r.segment() && len(msg.payload) > maxSegment-ssnLen {
		r.fault = FaultTooLong
	}
	if !r.segment() {
		return
	}
	s.m.stats.SegmentsIn++
	if s.stopped && msg.ssn-s.next >= s.stopAt-s.next {
		return
	}
	switch {
	case s.in == deciding:
		s.keep(r, msg)
	case s.in == answering && msg.ssn == s.next: // in place of the answer: a fault
	case s.ds != nil && (s.in == answering || s.in == flowing):
		s.ds.Place(msg.payload, &r.placed)
	}
}

// stop notes that no segment from ssn on is to be placed: what waits there for its turn is a fault, or
// the peer's last message.
func (s *Session) stop(ssn uint16) {
	if !s.stopped || ssn-s.next < s.stopAt-s.next {
		s.stopped, s.stopAt = true, ssn
	}
}

// keep copies a segment that came before the session was accepted.
func (s *Session) keep(r *record, msg message) {
	n, limit := len(msg.payload), s.m.cfg.MaxEarly
	if n > limit-s.early || n > earlySessions*limit-s.m.early {
		s.violate(msg.ssn, FaultEarlyData)
		return
	}
	r.early = append(make([]byte, 0, n), msg.payload...)
	s.early += n
	s.stats.Early++
	s.m.early += n
}

// drain gives the messages that wait their turn, as far as there is no gap.
func (s *Session) drain() {
	st := &s.m.store
	for s.window.n > 0 {
		i := s.window.get(s.next)
		if i == 0 || s.in == deciding && st.slab[i].segment() {
			break
		}
		s.window.remove(st, s.next)
		s.turn(&st.slab[i], nil)
		st.give(i)
	}
	s.settle()
}
