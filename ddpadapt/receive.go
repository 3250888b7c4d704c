package ddpadapt

import (
	"encoding/binary"
	"slices"

	"github.com/rddp-go/rddp/ddp"
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

// PlaceRow takes in segments of one session in their turn (assoc.RowPlacer): what Place does for each when nothing comes of any of them but that it is placed.
func (m *Mux) PlaceRow(_ rawio.Time, row assoc.Row) int {
	d, ok := row.At(0)
	if !ok || d.PPID() != PPIDSegment || !m.agreed() {
		return 0
	}
	s := m.lookup(d.Stream())
	if !m.flows(s) || s.window.n > 0 {
		return 0
	}
	var segs [assoc.RowMost][]byte
	n := 0
	for ; n < min(row.Len(), len(segs)); n++ {
		d, ok := row.At(n)
		if !ok || len(d.Payload()) <= ssnLen || binary.BigEndian.Uint16(d.Payload()) != s.next+uint16(n) {
			break
		}
		if segs[n] = d.Payload()[ssnLen:]; ddp.Control(segs[n][0]).Last() {
			break // something comes of that one
		}
	}
	n = s.ds.PlaceRow(segs[:n])
	m.steps += uint64(n)
	m.stats.SegmentsIn += uint64(n)
	s.stats.In += uint64(n)
	s.next += uint16(n)
	return n
}

// flows says whether a segment of s, which may be nil, is placed at once if it comes in its turn.
func (m *Mux) flows(s *Session) bool {
	return s != nil && flowing.has(s.state) && s.stopAt == absent && !m.waiting.has(s)
}

// atOnce is how many messages of a session have their turn, and how many in fragments are taken in, before others are served.
const atOnce = 512

// HandleReceived goes on with what one packet has brought about and was too much to be done at once, and takes in the messages that came in
// fragments (section 9 allows them where the path MTU is small). Call it after each packet, and as long as it says that there is more, which may be
// after others have had the association.
func (m *Mux) HandleReceived(rawio.Time) (more bool) {
	if !m.up || !m.agreed() {
		return false
	}
	if s := m.copying.pop(); s != nil && s.ds != nil {
		if m.a.Detach(s.stream, nil) {
			m.copying.push(s)
		} else {
			s.closeStream(s.err)
		}
	}
	if s := m.waiting.pop(); s != nil {
		s.drain()
	}
	if m.copying.head != nil || m.waiting.head != nil {
		return true // a message in fragments cannot be asked for again: those before it come first
	}
	for range atOnce {
		r, ok := m.a.Receive()
		if !ok {
			return false
		}
		m.steps++
		m.reassembled(r)
		m.a.Release(r)
		if m.waiting.head != nil {
			break
		}
	}
	return true
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
		if next, ok := s.own.(*successor); ok {
			next.refused = true // it was one of the session to come
			return
		}
		s.stray(FaultWindowSSN)
	}
}

// stray takes a message whose DDP-SSN is not known, or which was not kept: the turn of those behind it never comes. The session
// is dead, and its messages are only counted from now on, until all have arrived. All that a stream carries has a
// DDP-SSN (section 5.2.1), so that this one counts too. The Terminate may overtake others, which must not come when the
// stream is free.
func (s *Session) stray(f Fault) {
	s.violate(0, f, onLost)
	if s.state == canceled || s.state == ending {
		if s.state == canceled {
			s.opener = nil // whoever sends something has the Initiate
		}
		s.enter(onLost, s.recount())
	}
	s.count(false)
	s.settle()
}

// count takes one more message in state counting.
func (s *Session) count(refusal bool) {
	t, ok := s.own.(*tally)
	if !ok {
		return
	}
	if t.come++; s.last != absent && t.come > int(uint16(s.last)-s.next) {
		s.allCome(refusal && t.unanswered)
	}
	s.schedule()
}

// receive takes in one whole user message.
func (m *Mux) receive(id wire.StreamID, ppid uint32, unordered bool, b []byte) assoc.Verdict {
	m.steps++
	s := m.lookup(id)
	if m.flows(s) && ppid == PPIDSegment && unordered &&
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
	case s.state == calling:
		s.unasked(msg)
		return assoc.Consumed
	case s.state == reopened, m.waiting.has(s) && msg.beyond(s.next):
		m.stats.NextSession++
		return assoc.DropUnacked // of the next session; ours ends with the next acknowledgement
	case msg.ssn == 0 && s.followedBy(msg):
		return s.reopen(msg)
	case !msg.numbered:
		s.stray(msg.fault)
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
		s.violate(msg.ssn, FaultCrossed, onFault)
	default:
		s.violate(msg.ssn, FaultStart, onFault)
	}
}

// start makes a passive session of an Initiate, or refuses it beyond the limit of section 6.4.
func (m *Mux) start(id wire.StreamID, fn function, private []byte) {
	if m.pending >= m.cfg.MaxPending {
		m.stats.PendingFull++
		m.refuse(id)
		return
	}
	a := new(asking)
	s := m.add(id, asked, a)
	s.next = 1
	m.pending++
	m.stats.Requests++
	ev := Event{Kind: EventInitiate, Session: s}
	if fn.enhanced() {
		ev.Setup, private = splitSetup(private)
		s.enhanced, a.setup = true, *ev.Setup
	}
	ev.Private = slices.Clone(private)
	m.events.push(ev)
}

// refuse answers on a free stream by a Terminate (section 6.4).
func (m *Mux) refuse(id wire.StreamID) {
	m.stats.Refused++
	m.refused++
	s := m.add(id, refusing, nil)
	s.bye = due
	s.schedule()
}

// followedBy tells whether msg is of the peer's next session on the stream. The peer may begin that as soon as nothing is outstanding in
// its own eyes: it has all our messages though we lack the acknowledgements, and need not have sent a Terminate after
// ours. Where nothing more of this session is awaited, whatever has the number of a first message is one; an Initiate also
// while our last message has not left yet, for which it comes too early.
func (s *Session) followedBy(msg message) bool {
	begins := msg.fn.plain() == initiate
	switch {
	case !msg.numbered || msg.fn == terminate:
		return false
	case !s.silent():
		return begins && s.state == over
	case final.has(s.state):
		return true
	}
	switch own := s.own.(type) {
	case *hearing:
		return begins && own.accepted && s.window.n == 0
	case *tally:
		return begins && own.accepted
	}
	return begins && (s.state == closed || s.state == closing && s.bye == said && s.window.n == 0)
}

// reopen keeps the first message of the peer's next session until this one has ended. One that is no Initiate, not well
// formed, or came before the peer could have all of this session, is refused then.
func (s *Session) reopen(msg message) assoc.Verdict {
	next := &successor{fn: msg.fn, refused: msg.fault != 0 || msg.fn.plain() != initiate || !s.silent(), unknown: s.state == refusing}
	if next.refused && s.m.refused >= maxRefusals {
		s.m.stats.RefusalsFull++
		return assoc.DropUnacked
	}
	if !next.refused {
		next.private = slices.Clip(append([]byte{}, msg.payload...))
	}
	s.enter(onNext, next)
	s.settle()
	return assoc.Consumed
}

// arrive takes in a numbered message of the session: checks its DDP-SSN (section 10), places it, and
// judges it when its turn has come.
func (s *Session) arrive(msg message) assoc.Verdict {
	m := s.m
	last := msg.fn == terminate || msg.fn.plain() == reject
	if dead.has(s.state) {
		m.stats.AfterEnd++
		if final.has(s.state) {
			return assoc.Consumed
		}
	}
	if last {
		s.last = int(msg.ssn)
	}
	if s.state == counting {
		s.count(last)
		s.settle()
		return assoc.Consumed
	}
	ahead := msg.ssn - s.next
	switch {
	case ahead > MaxInFlight, s.window.get(msg.ssn) != 0:
		s.violate(msg.ssn, FaultDuplicateSSN, onFault)
	case ahead == MaxInFlight:
		s.violate(msg.ssn, FaultWindowSSN, onFault)
	case ahead == 0 && !(s.state == asked && msg.fn == 0 && msg.fault == 0):
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
	switch {
	case !r.segment():
		return
	case len(msg.payload) > maxSegment-ssnLen:
		r.fault = FaultTooLong
		return
	}
	s.m.stats.SegmentsIn++
	if s.stopAt != absent && msg.ssn-s.next >= uint16(s.stopAt)-s.next {
		return
	}
	switch {
	case s.state == asked:
		s.keep(r, msg)
	case s.state == called && msg.ssn == s.next: // in place of the answer: a fault
	case s.state == called || flowing.has(s.state):
		s.ds.Place(msg.payload, &r.placed)
	}
}

// stop notes that no segment from ssn on is to be placed: what waits there for its turn is a fault, or
// the peer's last message.
func (s *Session) stop(ssn uint16) {
	if s.stopAt == absent || ssn-s.next < uint16(s.stopAt)-s.next {
		s.stopAt = int(ssn)
	}
}

// keep copies a segment that came before the session was accepted.
func (s *Session) keep(r *record, msg message) {
	a := s.own.(*asking)
	n, limit := len(msg.payload), s.m.cfg.MaxEarly
	if n > limit-a.early || n > earlySessions*limit-s.m.early {
		s.violate(msg.ssn, FaultEarlyData, onFault)
		return
	}
	r.early = append(make([]byte, 0, n), msg.payload...)
	a.kept++
	a.early += n
	s.stats.Early++
	s.m.early += n
}

// placeEarly places the n segments that keep has copied.
func (s *Session) placeEarly(n int) {
	st := &s.m.store
	for ssn, end := s.next, s.next+MaxInFlight; n > 0 && ssn != end; ssn++ {
		s.m.steps++
		s.window.skip(&ssn, end)
		i := s.window.get(ssn)
		if i == 0 || st.slab[i].early == nil {
			continue
		}
		n--
		r := &st.slab[i]
		if early := r.early; s.stopAt == absent || ssn-s.next < uint16(s.stopAt)-s.next {
			if s.ds.Place(early, &r.placed); r.placed.Err != nil {
				s.stop(ssn)
			}
		}
		r.early = nil
	}
}

// beyond says that a message may be one that the peer sends when it has the acknowledgement of those that wait for their turn: of the next session,
// or beyond the window that begins at next.
func (m *message) beyond(next uint16) bool {
	return m.numbered && (m.ssn-next >= MaxInFlight || m.ssn == 0 && m.fn.plain() == initiate)
}

// drain gives the messages that wait their turn, as far as there is no gap. Of many, others are served in between.
func (s *Session) drain() {
	if s.m.waiting.has(s) {
		return
	}
	st := &s.m.store
	for n := 0; s.window.n > 0; n++ {
		if n == atOnce {
			s.m.waiting.push(s)
			return
		}
		s.m.steps++
		i := s.window.get(s.next)
		if i == 0 || s.state == asked && st.slab[i].segment() {
			break
		}
		s.window.remove(st, s.next)
		s.turn(&st.slab[i], nil)
		st.give(i)
	}
	s.settle()
}
