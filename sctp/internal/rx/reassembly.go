package rx

import (
	"errors"
	"fmt"
	"math"

	"github.com/rddp-go/rddp/internal/sparse"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// ErrMessageTooBig reports a message of the peer's that is longer than the receiver takes. The
// association is to be aborted.
var ErrMessageTooBig = errors.New("sctp: the peer's message is longer than MaxMessage")

// ViolationError reports DATA that no peer following RFC 9260 sends. The association is to be
// aborted with cause Protocol Violation.
type ViolationError struct {
	TSN  wire.TSN
	What string
}

func (e *ViolationError) Error() string {
	return fmt.Sprintf("sctp: protocol violation at TSN %d: %s", e.TSN, e.What)
}

// stream is an incoming stream.
type stream struct {
	next  wire.SSN // the next to deliver
	waits bool     // complete messages beyond it wait, see streamQueue
	due   bool     // some of them may be delivered, see Reassembly.due
}

// Reassembly puts fragments together and messages in stream order (RFC 9260 sections 6.6 and 6.9).
type Reassembly struct {
	// What a message that is sent looks at comes first, and then what each chunk and each read does, see Receiver.
	used       int             // octets of user data held, ready, or with the upper layer
	steps      *uint64         // see Receiver.Steps
	ready      chain           // messages and pieces in delivery order
	due        []wire.StreamID // streams of which the next message may be among those of waits
	limit      int             // octets of user data
	maxMessage int
	inStreams  int
	skips      int      // messages that Skip has put in the place of others
	open       *Message // the message of which only pieces were delivered so far, one of held
	free       *Message
	nfree      int
	reading    *Message // header of the message whose last piece is still to be popped, More then; nil before there was one
	streams    sparse.Table[stream]
	ownUsed    bool
	store      store
	own        Message // beside the store's own piece: where few messages wait the next needs no memory elsewhere

	held   held    // messages in assembly, and complete ones beyond the cumulative TSN that wait for their SSN
	waits  waiting // all that wait for their SSN
	queues sparse.Table[streamQueue]
	later  chain // messages that become ready after the end of open
}

// begin has an empty one put together what begins with TSN initial, with a receive buffer of limit octets of user data that takes
// messages of up to maxMessage octets, 0 for any length, on streams below inStreams. Those that
// maxMessage allows to be longer than the buffer are delivered in pieces.
func (r *Reassembly) begin(initial wire.TSN, limit, maxMessage, inStreams int) {
	if maxMessage == 0 {
		maxMessage = math.MaxInt
	}
	r.limit, r.maxMessage, r.inStreams = limit, maxMessage, inStreams
	r.held.base = initial - 1
	r.store.begin(limit)
}

// Window returns the octets of user data that there is room for. Chunks so small that the memory for
// them outgrows the buffer many times close the window too.
func (r *Reassembly) Window() int {
	if r.store.mem > 8*r.limit+1<<16 {
		return 0
	}
	return max(r.limit-r.used, 0)
}

// Held returns the octets of memory behind the Reassembly, in use or for reuse, buffers of packets among them.
func (r *Reassembly) Held() int {
	n := r.nfree
	if r.reading != nil {
		n++
	}
	if r.ownUsed {
		n-- // which is in use, but not behind it
	}
	return r.store.held() + n*messageCost + r.streams.Held() + r.queues.Held() + r.held.octets() + 2*cap(r.due)
}

// Used returns the octets of user data held.
func (r *Reassembly) Used() int { return r.used }

// Empty reports whether nothing is held, ready, or with the upper layer, and there is room. No TSN is missing.
func (r *Reassembly) Empty() bool {
	return r.used == 0 && r.held.edge == nil && r.Window() > 0
}

// Add takes a DATA chunk with a TSN that was not received before. The error is a *ViolationError or
// ErrMessageTooBig.
func (r *Reassembly) Add(d wire.Data, buf *rawio.Buf) error {
	t, n := d.TSN(), len(d.Payload())
	if n == 0 {
		return &ViolationError{t, "DATA without user data"}
	}
	if int(d.Stream()) >= r.inStreams {
		return &ViolationError{t, "DATA for a stream that does not exist"}
	}
	var prev, next *Message // neighbours without a TSN between
	if r.held.n > 0 || r.held.edge != nil {
		*r.steps++
		if prev, next = r.held.at(t-1), r.held.from(t); next != nil && next.first != t+1 {
			next = nil
		}
		if what := fits(d, prev, next); what != "" {
			return &ViolationError{t, what}
		}
	}
	if n > r.maxMessage {
		return ErrMessageTooBig
	}
	if d.B() {
		prev = nil
	}
	if d.E() {
		next = nil
	}
	p := r.store.keep(d.Payload(), buf)
	r.used += n
	m := prev
	switch {
	case prev != nil:
		was := m.last
		m.append(p)
		m.last, m.end = t, d.E()
		if next != nil {
			m.join(next)
			r.recycle(next)
		}
		r.held.move(m, was)
	case next != nil:
		m = next
		m.prepend(p)
		m.first, m.begin = t, d.B()
	default:
		m = r.message()
		m.Stream, m.SSN, m.Unordered = d.Stream(), d.SSN(), d.U()
		m.first, m.last, m.begin, m.end = t, t, d.B(), d.E()
		m.append(p)
		if m.begin && m.end {
			m.PPID = d.PPID()
			return r.whole(m)
		}
		r.held.put(m)
	}
	if d.B() {
		m.PPID = d.PPID()
	}
	if n := m.Offset + m.Size; n > r.maxMessage || !m.end && n == r.maxMessage {
		r.held.take(m.last)
		r.Release(m)
		return ErrMessageTooBig
	}
	if m.begin && m.end {
		r.held.take(m.last)
		return r.whole(m)
	}
	return nil
}

// fits says what is wrong between a chunk and its neighbours in TSN, or "".
func fits(d wire.Data, prev, next *Message) string {
	if prev != nil {
		switch {
		case d.B() && !prev.end:
			return "a message begins before the one before it has ended"
		case !d.B() && prev.end:
			return "a fragment follows the end of a message"
		case !d.B() && !same(d, prev):
			return "fragments of one message differ in stream, SSN or U bit"
		}
	}
	if next != nil {
		switch {
		case d.E() && !next.begin:
			return "a fragment follows the end of a message"
		case !d.E() && next.begin:
			return "a message begins before the one before it has ended"
		case !d.E() && !same(d, next):
			return "fragments of one message differ in stream, SSN or U bit"
		}
	}
	return ""
}

func same(d wire.Data, m *Message) bool {
	return d.Stream() == m.Stream && d.U() == m.Unordered && (m.Unordered || d.SSN() == m.SSN)
}

// join appends what n has to m.
func (m *Message) join(n *Message) {
	m.tail.next, n.head.prev = n.head, m.tail
	m.tail, m.last, m.end = n.tail, n.last, n.end
	m.Size += n.Size
}

// whole delivers a complete message, or lets it wait for its SSN.
func (r *Reassembly) whole(m *Message) error {
	if m.first == r.held.base+1 {
		r.held.base = m.last
	}
	if m.Unordered {
		r.push(m)
		return nil
	}
	s := r.stream(m.Stream)
	if m.SSN == s.next && !s.due {
		r.push(m)
		r.passed(m.Stream, s)
		return nil
	}
	if !r.hold(m, s) {
		err := &ViolationError{m.first, "two messages of a stream with the same SSN"}
		r.Release(m)
		return err
	}
	r.held.put(m)
	return nil
}

// Skip counts SSN n of a stream as delivered: its message, of TSN t, has not come this way.
func (r *Reassembly) Skip(id wire.StreamID, n wire.SSN, t wire.TSN) {
	if int(id) >= r.inStreams {
		return
	}
	s := r.stream(id)
	if n == s.next && !s.due {
		r.passed(id, s)
		return
	}
	m := r.message()
	m.Stream, m.SSN, m.first, m.skip = id, n, t, true
	if !r.hold(m, s) {
		r.recycle(m)
		return
	}
	r.skips++
}

// maxSkips bounds the messages that count as delivered and wait for an SSN before theirs. They cost the
// peer no window.
const maxSkips = 1 << 14

// waitsInVain says whether a chunk would have to wait for its SSN with too many that do already. The one
// that they wait for never does.
func (r *Reassembly) waitsInVain(d wire.Data) bool {
	return r.skips >= maxSkips && r.inVain(d)
}

func (r *Reassembly) inVain(d wire.Data) bool {
	if d.U() || int(d.Stream()) >= r.inStreams {
		return false
	}
	s := r.stream(d.Stream())
	return s.due || d.SSN() != s.next
}

// skipped takes back what Skip has put in the place of a message.
func (r *Reassembly) skipped(m *Message) {
	r.skips--
	r.recycle(m)
}

func (r *Reassembly) stream(id wire.StreamID) *stream {
	return r.streams.Use(uint16(id))
}

// queueOf is that of a stream of which messages wait, or are about to.
func (r *Reassembly) queueOf(id wire.StreamID) *streamQueue {
	return r.queues.Use(uint16(id))
}

// atOnce is how many messages that have waited for their SSN are looked at when there is nothing else ready. One chunk can be
// what thousands wait for: they become ready as they are read.
const atOnce = 32

// passed counts the next SSN as delivered. What has waited for it is due.
func (r *Reassembly) passed(id wire.StreamID, s *stream) {
	if s.next++; s.waits {
		r.queueOf(id).next++
		s.due = true
		r.due = append(r.due, id)
	}
}

// deliver makes some of the messages ready that are due.
func (r *Reassembly) deliver() {
	for range atOnce {
		if len(r.due) == 0 {
			return
		}
		id := r.due[len(r.due)-1]
		s := r.stream(id)
		q := r.queueOf(id)
		m := r.unwait(key(id, q.next), s)
		if m == nil {
			s.due = false
			r.due = r.due[:len(r.due)-1]
			continue
		}
		q.next++
		if s.next++; m.skip {
			r.skipped(m)
			continue
		}
		if r.held.at(m.last) == m {
			r.held.take(m.last)
		}
		r.push(m)
	}
}

// hold lets m wait for its SSN, unless another does.
func (r *Reassembly) hold(m *Message, s *stream) bool {
	q := r.queueOf(m.Stream)
	if !s.waits {
		q.begin(s.next)
	}
	cum := r.held.base
	if m.first.LessEq(cum) { // it has moved that on
		cum = m.first - 1
	}
	q.place(m, cum)
	link, steps := r.waits.find(m.key())
	*r.steps += uint64(steps)
	if *link != nil {
		return false
	}
	*link = m
	r.waits.n++
	q.n++
	s.waits = true
	return true
}

// unwait takes out the message that waits with key k, if there is one.
func (r *Reassembly) unwait(k uint64, s *stream) *Message {
	if !s.waits {
		return nil
	}
	link, steps := r.waits.find(k)
	m := *link
	if m != nil {
		q := r.queueOf(m.Stream)
		q.n--
		s.waits = q.n > 0
		steps += r.waits.unlink(link)
	}
	*r.steps += uint64(steps)
	return m
}

// Pop returns the next message or piece in delivery order. It counts against the window until Release.
func (r *Reassembly) Pop() (*Message, bool) {
	m := r.ready.pop()
	for m == nil {
		if len(r.due) == 0 {
			return nil, false
		}
		r.deliver()
		m = r.ready.pop()
	}
	if m.More || r.partly() {
		if r.reading == nil {
			r.reading = new(Message)
		}
		r.reading.header(m)
		r.reading.Offset, r.reading.More = m.Offset+m.Size, m.More
	}
	return m, true
}

// partly says whether pieces of a message were popped, and not its last.
func (r *Reassembly) partly() bool { return r.reading != nil && r.reading.More }

// Release takes a message back that Pop has returned.
func (r *Reassembly) Release(m *Message) {
	r.used -= m.Size
	r.discard(m)
}

// Evict drops the chunk with the highest TSN that is held for reordering, if that is above t, and
// returns its TSN (section 6.2).
func (r *Reassembly) Evict(t wire.TSN) (wire.TSN, bool) {
	m := r.held.highest()
	if m == nil || !t.Less(m.last) {
		return 0, false
	}
	if m.begin && m.end {
		r.unwait(m.key(), r.stream(m.Stream))
	}
	gone, p := m.last, m.tail
	r.used -= len(p.data)
	m.Size -= len(p.data)
	m.tail, m.end = p.prev, false
	m.last--
	if m.tail == nil {
		m.head = nil
		r.held.take(gone)
		r.recycle(m)
	} else {
		m.tail.next = nil
		r.held.move(m, gone)
	}
	r.store.drop(p)
	return gone, true
}

// Check says whether a fragment is held that can never become a message, now that every TSN up to
// cum has been received.
func (r *Reassembly) Check(cum wire.TSN) error {
	if cum == r.held.base { // as when nothing is missing
		return nil
	}
	return r.check(cum)
}

func (r *Reassembly) check(cum wire.TSN) error {
	if r.held.n == 0 && r.held.edge == nil {
		r.held.base = cum
		return nil
	}
	m := r.held.part()
	if m != nil && (m.last.Less(cum) || !m.begin && m.first.LessEq(cum)) {
		return &ViolationError{m.first, "a fragment without its message"}
	}
	r.held.advance(cum)
	return nil
}

// Restart is Close, for a peer that begins anew with that many streams. What the upper layer has yet to
// release still counts; a message that it has only pieces of ends.
func (r *Reassembly) Restart(initial wire.TSN, inStreams int) {
	r.Close()
	r.held.base = initial - 1
	r.inStreams = inStreams
	if r.partly() {
		r.cut(r.reading)
	}
}

// Close gives all memory back except what the upper layer has yet to release.
func (r *Reassembly) Close() {
	r.ready.join(&r.later)
	for m := r.ready.pop(); m != nil; m = r.ready.pop() {
		r.Release(m)
	}
	for m := r.held.part(); m != nil; m = r.held.part() {
		r.held.take(m.last)
		r.Release(m)
	}
	for link := r.waits.any(); link != nil; link = r.waits.any() {
		m := *link
		if r.waits.unlink(link); m.skip {
			r.skipped(m)
		} else {
			r.Release(m)
		}
	}
	r.held, r.waits, r.queues, r.streams, r.due, r.open = held{}, waiting{}, sparse.Table[streamQueue]{}, sparse.Table[stream]{}, nil, nil
	r.shrink()
}

func (r *Reassembly) message() *Message {
	r.store.mem += messageCost
	m := r.free
	switch {
	case !r.ownUsed:
		r.ownUsed = true
		return &r.own
	case m == nil:
		return new(Message)
	}
	r.free = m.next
	r.nfree--
	m.next = nil
	return m
}

func (r *Reassembly) discard(m *Message) {
	for p := m.head; p != nil; {
		next := p.next
		r.store.drop(p)
		p = next
	}
	r.recycle(m)
}

func (r *Reassembly) recycle(m *Message) {
	r.store.mem -= messageCost
	*m = Message{}
	switch {
	case m == &r.own:
		r.ownUsed = false
	case r.nfree < r.store.spare:
		m.next, r.free = r.free, m
		r.nfree++
	}
}
