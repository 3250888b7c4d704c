package rx

import (
	"errors"
	"fmt"
	"math"
	"sort"

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
	next wire.SSN // the next to deliver
	wait list     // complete messages beyond it, in SSN order
}

// Reassembly puts fragments together and messages in stream order (RFC 9260 sections 6.6 and 6.9).
type Reassembly struct {
	limit      int // octets of user data
	maxMessage int
	inStreams  int
	used       int      // octets of user data held, ready, or with the upper layer
	skips      int      // messages that Skip has put in the place of others
	streams    []stream // as far as used

	// held are messages in assembly, and complete ones beyond the cumulative TSN that wait for their
	// SSN, in TSN order.
	held list
	// ready are messages and pieces in delivery order. open is the message of which only pieces were
	// delivered so far, one of held; later are messages that become ready after its end.
	ready, later chain
	open         *Message
	reading      Message // header of the message whose last piece is still to be popped, More then
	free         *Message
	store        store
}

// NewReassembly returns a reassembly with a receive buffer of limit octets of user data that takes
// messages of up to maxMessage octets, 0 for any length, on streams below inStreams. Those that
// maxMessage allows to be longer than the buffer are delivered in pieces.
func NewReassembly(limit, maxMessage, inStreams int) *Reassembly {
	if maxMessage == 0 {
		maxMessage = math.MaxInt
	}
	return &Reassembly{limit: limit, maxMessage: maxMessage, inStreams: inStreams, store: newStore(limit)}
}

// Window returns the octets of user data that there is room for. Chunks so small that the memory for
// them outgrows the buffer many times close the window too.
func (r *Reassembly) Window() int {
	if r.store.mem > 8*r.limit+1<<16 {
		return 0
	}
	return max(r.limit-r.used, 0)
}

// Used returns the octets of user data held.
func (r *Reassembly) Used() int { return r.used }

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
	i := r.find(t)
	var prev, next *Message // neighbours without a TSN between
	if i > 0 && r.held.at(i-1).last+1 == t {
		prev = r.held.at(i - 1)
	}
	if i < r.held.len() {
		if next = r.held.at(i); next.first != t+1 {
			next = nil
		}
	}
	if what := fits(d, prev, next); what != "" {
		return &ViolationError{t, what}
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
		i--
		m.append(p)
		m.last, m.end = t, d.E()
		if next != nil {
			m.join(next)
			r.held.remove(i + 1)
			r.recycle(next)
		}
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
			return r.whole(m, i, false)
		}
		r.held.insert(i, m)
	}
	if d.B() {
		m.PPID = d.PPID()
	}
	if n := m.Offset + m.Size; n > r.maxMessage || !m.end && n == r.maxMessage {
		r.held.remove(i)
		r.Release(m)
		return ErrMessageTooBig
	}
	if m.begin && m.end {
		return r.whole(m, i, true)
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

// find returns how many held messages end before TSN t.
func (r *Reassembly) find(t wire.TSN) int {
	n := r.held.len()
	if n == 0 || r.held.at(n-1).last.Less(t) {
		return n
	}
	return sort.Search(n, func(i int) bool { return !r.held.at(i).last.Less(t) })
}

// whole delivers a complete message, or lets it wait for its SSN. It is, or would be, held at i.
func (r *Reassembly) whole(m *Message, i int, held bool) error {
	if m.Unordered {
		if held {
			r.held.remove(i)
		}
		r.push(m)
		return nil
	}
	s := r.stream(m.Stream)
	if m.SSN != s.next {
		if s.hold(m) {
			if !held {
				r.held.insert(i, m)
			}
			return nil
		}
		if held {
			r.held.remove(i)
		}
		err := &ViolationError{m.first, "two messages of a stream with the same SSN"}
		r.Release(m)
		return err
	}
	if held {
		r.held.remove(i)
	}
	r.push(m)
	r.deliver(s)
	return nil
}

// Skip counts SSN n of a stream as delivered: its message has not come this way.
func (r *Reassembly) Skip(id wire.StreamID, n wire.SSN) {
	if int(id) >= r.inStreams {
		return
	}
	s := r.stream(id)
	if n == s.next {
		r.deliver(s)
		return
	}
	m := r.message()
	m.Stream, m.SSN, m.loose = id, n, true
	if !s.hold(m) {
		r.recycle(m)
		return
	}
	r.store.mem += pieceCost
	r.skips++
}

// maxSkips bounds the messages that count as delivered and wait for an SSN before theirs. They cost the
// peer no window.
const maxSkips = 1 << 14

// waitsInVain says whether a chunk would have to wait for its SSN with too many that do already. The one
// that they wait for never does.
func (r *Reassembly) waitsInVain(d wire.Data) bool {
	return r.skips >= maxSkips && !d.U() && int(d.Stream()) < r.inStreams && d.SSN() != r.stream(d.Stream()).next
}

// skipped takes back what Skip has put in the place of a message.
func (r *Reassembly) skipped(m *Message) {
	r.skips--
	r.store.mem -= pieceCost
	r.recycle(m)
}

func (r *Reassembly) stream(id wire.StreamID) *stream {
	for int(id) >= len(r.streams) {
		r.streams = append(r.streams, stream{})
	}
	return &r.streams[id]
}

// deliver counts the next SSN as delivered, and delivers what has waited for it.
func (r *Reassembly) deliver(s *stream) {
	for s.next++; s.wait.len() > 0 && s.wait.at(0).SSN == s.next; s.next++ {
		m := s.wait.at(0)
		s.wait.remove(0)
		if !m.loose {
			r.held.remove(r.find(m.last))
		}
		if m.Size > 0 {
			r.push(m)
		} else {
			r.skipped(m)
		}
	}
}

// hold lets m wait for its SSN, unless another does.
func (s *stream) hold(m *Message) bool {
	k := s.find(m.SSN)
	if k < s.wait.len() && s.wait.at(k).SSN == m.SSN {
		return false
	}
	s.wait.insert(k, m)
	return true
}

// find returns how many waiting messages come before SSN n. Every SSN that is not the next lies
// ahead: a stream may have 65535 messages outstanding (section 6.1).
func (s *stream) find(n wire.SSN) int {
	w := &s.wait
	if k := w.len(); k == 0 || w.at(k-1).SSN-s.next < n-s.next {
		return k
	}
	return sort.Search(w.len(), func(i int) bool { return w.at(i).SSN-s.next >= n-s.next })
}

// Pop returns the next message or piece in delivery order. It counts against the window until Release.
func (r *Reassembly) Pop() (*Message, bool) {
	m := r.ready.pop()
	if m == nil {
		return nil, false
	}
	if m.More || r.reading.More {
		r.reading = Message{}
		r.reading.header(m)
		r.reading.Offset, r.reading.More = m.Offset+m.Size, m.More
	}
	return m, true
}

// Release takes a message back that Pop has returned.
func (r *Reassembly) Release(m *Message) {
	r.used -= m.Size
	r.discard(m)
}

// Evict drops the chunk with the highest TSN that is held for reordering, if that is above t, and
// returns its TSN (section 6.2).
func (r *Reassembly) Evict(t wire.TSN) (wire.TSN, bool) {
	n := r.held.len()
	if n == 0 || !t.Less(r.held.at(n-1).last) {
		return 0, false
	}
	m := r.held.at(n - 1)
	if m.begin && m.end {
		s := &r.streams[m.Stream]
		s.wait.remove(s.find(m.SSN))
	}
	gone, p := m.last, m.tail
	r.used -= len(p.data)
	m.Size -= len(p.data)
	m.tail, m.end = p.prev, false
	m.last--
	if m.tail == nil {
		m.head = nil
		r.held.remove(n - 1)
		r.recycle(m)
	} else {
		m.tail.next = nil
	}
	r.store.drop(p)
	return gone, true
}

// Check says whether a fragment is held that can never become a message, now that every TSN up to
// cum has been received.
func (r *Reassembly) Check(cum wire.TSN) error {
	for r.held.len() > 0 {
		m := r.held.at(0)
		if m.begin && m.end {
			if cum.Less(m.last) {
				break
			}
			m.loose = true // cannot be dropped any more, only wait for its SSN
			r.held.remove(0)
			continue
		}
		if m.last.Less(cum) || !m.begin && (m.first-1).LessEq(cum) {
			return &ViolationError{m.first, "a fragment without its message"}
		}
		break
	}
	return nil
}

// Restart is Close, for a peer that begins anew with that many streams. What the upper layer has yet to
// release still counts; a message that it has only pieces of ends.
func (r *Reassembly) Restart(inStreams int) {
	r.Close()
	r.inStreams = inStreams
	if r.reading.More {
		r.cut(&r.reading)
	}
}

// Close gives all memory back except what the upper layer has yet to release.
func (r *Reassembly) Close() {
	r.ready.join(&r.later)
	for m := r.ready.pop(); m != nil; m = r.ready.pop() {
		r.Release(m)
	}
	for i := range r.held.len() {
		if m := r.held.at(i); !m.begin || !m.end {
			r.Release(m)
		}
	}
	for i := range r.streams {
		for w, k := &r.streams[i].wait, 0; k < w.len(); k++ {
			if m := w.at(k); m.Size > 0 {
				r.Release(m)
			} else {
				r.skipped(m)
			}
		}
	}
	r.held, r.streams, r.open = list{}, nil, nil
}

func (r *Reassembly) message() *Message {
	m := r.free
	if m == nil {
		return new(Message)
	}
	r.free = m.next
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
	*m = Message{next: r.free}
	r.free = m
}
