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

// streamState is an incoming stream.
type streamState struct {
	nextSSN    wire.SSN // the next to deliver
	hasWaiting bool     // complete messages beyond it wait, see streamQueue
	isDue      bool     // some of them may be delivered, see Reassembly.dueStreams
}

// Reassembly puts fragments together and messages in stream order (RFC 9260 sections 6.6 and 6.9).
type Reassembly struct {
	// What is looked at when a message is sent comes first. What each chunk and each read looks at
	// follows, see Receiver.
	heldOctets      int             // octets of user data held, ready, or with the upper layer
	workSteps       *uint64         // see Receiver.Steps
	ready           messageList     // messages and pieces in delivery order
	dueStreams      []wire.StreamID // streams whose next message may wait in outOfOrder
	dataLimit       int             // octets of user data
	maxMessage      int
	inStreams       int
	numPlaceholders int      // messages that MarkDelivered has put in the place of others
	partialMessage  *Message // the message of which only pieces were delivered so far
	freeMessages    *Message
	numFree         int
	partlyRead      *Message // header of the message popped in pieces, More until its last; or nil
	streams         sparse.Table[streamState]
	inlineUsed      bool
	store           pieceStore
	// With the store's inline piece: where few messages wait the next needs no memory elsewhere.
	inlineMessage Message

	// Messages in assembly, and complete ones beyond the cumulative TSN that wait for their SSN.
	byLastTSN         lastTSNIndex
	outOfOrder        outOfOrderTree // all that wait for their SSN
	streamQueues      sparse.Table[streamQueue]
	readyAfterPartial messageList // messages that become ready after the end of partialMessage
}

// initBuffer makes an empty Reassembly ready for what begins with TSN initial. The receive buffer
// has limit octets of user data. Messages have up to maxMessage octets, 0 for any length, on
// streams below inStreams. Messages that may be longer than the buffer are delivered in pieces.
func (r *Reassembly) initBuffer(initial wire.TSN, limit, maxMessage, inStreams int) {
	if maxMessage == 0 {
		maxMessage = math.MaxInt
	}
	r.dataLimit, r.maxMessage, r.inStreams = limit, maxMessage, inStreams
	r.byLastTSN.baseTSN = initial - 1
	r.store.setLimit(limit)
}

// Window returns the octets of user data that there is room for. Chunks so small that their memory
// outgrows the buffer many times close the window too.
func (r *Reassembly) Window() int {
	if r.store.usedMemory > 8*r.dataLimit+1<<16 {
		return 0
	}
	return max(r.dataLimit-r.heldOctets, 0)
}

// Held returns the octets of memory behind the Reassembly, in use or for reuse, buffers of packets
// among them.
func (r *Reassembly) Held() int {
	n := r.numFree
	if r.partlyRead != nil {
		n++
	}
	if r.inlineUsed {
		n-- // which is in use, but not behind it
	}
	return r.store.memorySize() + n*messageCost + r.streams.Held() + r.streamQueues.Held() +
		r.byLastTSN.memorySize() + 2*cap(r.dueStreams)
}

// Used returns the octets of user data held.
func (r *Reassembly) Used() int { return r.heldOctets }

// Empty reports whether nothing is held, ready, or with the upper layer, and there is room. No TSN
// is missing.
func (r *Reassembly) Empty() bool {
	return r.heldOctets == 0 && r.byLastTSN.endsAtBase == nil && r.Window() > 0
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
	if r.byLastTSN.count > 0 || r.byLastTSN.endsAtBase != nil {
		*r.workSteps++
		if prev, next = r.byLastTSN.messageEndingAt(t-1), r.byLastTSN.firstMessageFrom(t); next != nil &&
			next.firstTSN != t+1 {
			next = nil
		}
		if what := neighbourViolation(d, prev, next); what != "" {
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
	p := r.store.keepData(d.Payload(), buf)
	r.heldOctets += n
	m := prev
	switch {
	case prev != nil:
		was := m.lastTSN
		m.appendPiece(p)
		m.lastTSN, m.hasEnd = t, d.E()
		if next != nil {
			m.appendMessage(next)
			r.recycleMessage(next)
		}
		r.byLastTSN.moveMessage(m, was)
	case next != nil:
		m = next
		m.prependPiece(p)
		m.firstTSN, m.hasBegin = t, d.B()
	default:
		m = r.newMessage()
		m.Stream, m.SSN, m.Unordered = d.Stream(), d.SSN(), d.U()
		m.firstTSN, m.lastTSN, m.hasBegin, m.hasEnd = t, t, d.B(), d.E()
		m.appendPiece(p)
		if m.hasBegin && m.hasEnd {
			m.PPID = d.PPID()
			return r.deliverComplete(m)
		}
		r.byLastTSN.put(m)
	}
	if d.B() {
		m.PPID = d.PPID()
	}
	if n := m.Offset + m.Size; n > r.maxMessage || !m.hasEnd && n == r.maxMessage {
		r.byLastTSN.take(m.lastTSN)
		r.Release(m)
		return ErrMessageTooBig
	}
	if m.hasBegin && m.hasEnd {
		r.byLastTSN.take(m.lastTSN)
		return r.deliverComplete(m)
	}
	return nil
}

// neighbourViolation says what is wrong between a chunk and its neighbours in TSN, or "".
func neighbourViolation(d wire.Data, prev, next *Message) string {
	if prev != nil {
		switch {
		case d.B() && !prev.hasEnd:
			return "a message begins before the one before it has ended"
		case !d.B() && prev.hasEnd:
			return "a fragment follows the end of a message"
		case !d.B() && !isSameMessage(d, prev):
			return "fragments of one message differ in stream, SSN or U bit"
		}
	}
	if next != nil {
		switch {
		case d.E() && !next.hasBegin:
			return "a fragment follows the end of a message"
		case !d.E() && next.hasBegin:
			return "a message begins before the one before it has ended"
		case !d.E() && !isSameMessage(d, next):
			return "fragments of one message differ in stream, SSN or U bit"
		}
	}
	return ""
}

func isSameMessage(d wire.Data, m *Message) bool {
	return d.Stream() == m.Stream && d.U() == m.Unordered && (m.Unordered || d.SSN() == m.SSN)
}

// appendMessage appends what n has to m.
func (m *Message) appendMessage(n *Message) {
	m.tailPiece.next, n.headPiece.prev = n.headPiece, m.tailPiece
	m.tailPiece, m.lastTSN, m.hasEnd = n.tailPiece, n.lastTSN, n.hasEnd
	m.Size += n.Size
}

// deliverComplete delivers a complete message, or queues it until its SSN is next.
func (r *Reassembly) deliverComplete(m *Message) error {
	if m.firstTSN == r.byLastTSN.baseTSN+1 {
		r.byLastTSN.baseTSN = m.lastTSN
	}
	if m.Unordered {
		r.pushReady(m)
		return nil
	}
	s := r.stateOfStream(m.Stream)
	if m.SSN == s.nextSSN && !s.isDue {
		r.pushReady(m)
		r.advanceStream(m.Stream, s)
		return nil
	}
	if !r.queueOutOfOrder(m, s) {
		err := &ViolationError{m.firstTSN, "two messages of a stream with the same SSN"}
		r.Release(m)
		return err
	}
	r.byLastTSN.put(m)
	return nil
}

// MarkDelivered counts SSN n of a stream as delivered: its message, of TSN t, was placed.
func (r *Reassembly) MarkDelivered(id wire.StreamID, n wire.SSN, t wire.TSN) {
	if int(id) >= r.inStreams {
		return
	}
	s := r.stateOfStream(id)
	if n == s.nextSSN && !s.isDue {
		r.advanceStream(id, s)
		return
	}
	m := r.newMessage()
	m.Stream, m.SSN, m.firstTSN, m.isPlaceholder = id, n, t, true
	if !r.queueOutOfOrder(m, s) {
		r.recycleMessage(m)
		return
	}
	r.numPlaceholders++
}

// maxPlaceholders bounds the messages that count as delivered and wait for an SSN before theirs.
// They cost the peer no window.
const maxPlaceholders = 1 << 14

// isBlockedByMissingSSN says whether a chunk would have to wait for its SSN behind too many others.
// The chunk that they wait for never has to.
func (r *Reassembly) isBlockedByMissingSSN(d wire.Data) bool {
	return r.numPlaceholders >= maxPlaceholders && r.waitsForSSN(d)
}

func (r *Reassembly) waitsForSSN(d wire.Data) bool {
	if d.U() || int(d.Stream()) >= r.inStreams {
		return false
	}
	s := r.stateOfStream(d.Stream())
	return s.isDue || d.SSN() != s.nextSSN
}

// freePlaceholder takes back what MarkDelivered has put in the place of a message.
func (r *Reassembly) freePlaceholder(m *Message) {
	r.numPlaceholders--
	r.recycleMessage(m)
}

func (r *Reassembly) stateOfStream(id wire.StreamID) *streamState {
	return r.streams.Use(uint16(id))
}

// queueOf is that of a stream of which messages wait, or are about to.
func (r *Reassembly) queueOf(id wire.StreamID) *streamQueue {
	return r.streamQueues.Use(uint16(id))
}

// deliverBatchSize is how many out-of-order messages are looked at when nothing else is ready.
// Thousands can wait for one chunk: they become ready as they are read.
const deliverBatchSize = 32

// advanceStream counts the next SSN as delivered. Messages that have waited for it are due.
func (r *Reassembly) advanceStream(id wire.StreamID, s *streamState) {
	if s.nextSSN++; s.hasWaiting {
		r.queueOf(id).nextOrder++
		s.isDue = true
		r.dueStreams = append(r.dueStreams, id)
	}
}

// deliverDue makes some of the messages ready that are due.
func (r *Reassembly) deliverDue() {
	for range deliverBatchSize {
		if len(r.dueStreams) == 0 {
			return
		}
		id := r.dueStreams[len(r.dueStreams)-1]
		s := r.stateOfStream(id)
		q := r.queueOf(id)
		m := r.takeOutOfOrder(orderKey(id, q.nextOrder), s)
		if m == nil {
			s.isDue = false
			r.dueStreams = r.dueStreams[:len(r.dueStreams)-1]
			continue
		}
		q.nextOrder++
		if s.nextSSN++; m.isPlaceholder {
			r.freePlaceholder(m)
			continue
		}
		if r.byLastTSN.messageEndingAt(m.lastTSN) == m {
			r.byLastTSN.take(m.lastTSN)
		}
		r.pushReady(m)
	}
}

// queueOutOfOrder lets m wait for its SSN, unless another does.
func (r *Reassembly) queueOutOfOrder(m *Message, s *streamState) bool {
	q := r.queueOf(m.Stream)
	if !s.hasWaiting {
		q.resetNext(s.nextSSN)
	}
	cum := r.byLastTSN.baseTSN
	if m.firstTSN.LessEq(cum) { // it has moved that on
		cum = m.firstTSN - 1
	}
	q.assignOrder(m, cum)
	link, steps := r.outOfOrder.findLink(m.treeKey())
	*r.workSteps += uint64(steps)
	if *link != nil {
		return false
	}
	*link = m
	r.outOfOrder.count++
	q.count++
	s.hasWaiting = true
	return true
}

// takeOutOfOrder takes out the message that waits with key k, if there is one.
func (r *Reassembly) takeOutOfOrder(k uint64, s *streamState) *Message {
	if !s.hasWaiting {
		return nil
	}
	link, steps := r.outOfOrder.findLink(k)
	m := *link
	if m != nil {
		q := r.queueOf(m.Stream)
		q.count--
		s.hasWaiting = q.count > 0
		steps += r.outOfOrder.removeLink(link)
	}
	*r.workSteps += uint64(steps)
	return m
}

// Pop returns the next message or piece in delivery order. It counts against the window until
// Release.
func (r *Reassembly) Pop() (*Message, bool) {
	m := r.ready.pop()
	for m == nil {
		if len(r.dueStreams) == 0 {
			return nil, false
		}
		r.deliverDue()
		m = r.ready.pop()
	}
	if m.More || r.isPartlyRead() {
		if r.partlyRead == nil {
			r.partlyRead = new(Message)
		}
		r.partlyRead.copyHeader(m)
		r.partlyRead.Offset, r.partlyRead.More = m.Offset+m.Size, m.More
	}
	return m, true
}

// isPartlyRead says whether pieces of a message were popped, and not its last.
func (r *Reassembly) isPartlyRead() bool { return r.partlyRead != nil && r.partlyRead.More }

// Release takes a message back that Pop has returned.
func (r *Reassembly) Release(m *Message) {
	r.heldOctets -= m.Size
	r.discardMessage(m)
}

// Evict drops the chunk with the highest TSN held for reordering, if that is above t. It returns
// its TSN (section 6.2).
func (r *Reassembly) Evict(t wire.TSN) (wire.TSN, bool) {
	m := r.byLastTSN.highestMessage()
	if m == nil || !t.Less(m.lastTSN) {
		return 0, false
	}
	if m.hasBegin && m.hasEnd {
		r.takeOutOfOrder(m.treeKey(), r.stateOfStream(m.Stream))
	}
	gone, p := m.lastTSN, m.tailPiece
	r.heldOctets -= len(p.data)
	m.Size -= len(p.data)
	m.tailPiece, m.hasEnd = p.prev, false
	m.lastTSN--
	if m.tailPiece == nil {
		m.headPiece = nil
		r.byLastTSN.take(gone)
		r.recycleMessage(m)
	} else {
		m.tailPiece.next = nil
		r.byLastTSN.moveMessage(m, gone)
	}
	r.store.dropPiece(p)
	return gone, true
}

// Check returns an error if a held fragment can never become a message, now that every TSN up to
// cum has been received.
func (r *Reassembly) Check(cum wire.TSN) error {
	if cum == r.byLastTSN.baseTSN { // as when nothing is missing
		return nil
	}
	return r.checkAssembly(cum)
}

func (r *Reassembly) checkAssembly(cum wire.TSN) error {
	if r.byLastTSN.count == 0 && r.byLastTSN.endsAtBase == nil {
		r.byLastTSN.baseTSN = cum
		return nil
	}
	m := r.byLastTSN.firstIncomplete()
	if m != nil && (m.lastTSN.Less(cum) || !m.hasBegin && m.firstTSN.LessEq(cum)) {
		return &ViolationError{m.firstTSN, "a fragment without its message"}
	}
	r.byLastTSN.advanceBase(cum)
	return nil
}

// Restart is Close, for a peer that begins anew with that many streams. What the upper layer has
// yet to release still counts. A message of which it has only pieces ends.
func (r *Reassembly) Restart(initial wire.TSN, inStreams int) {
	r.Close()
	r.byLastTSN.baseTSN = initial - 1
	r.inStreams = inStreams
	if r.isPartlyRead() {
		r.pushCutOff(r.partlyRead)
	}
}

// Close gives all memory back except what the upper layer has yet to release.
func (r *Reassembly) Close() {
	r.ready.appendList(&r.readyAfterPartial)
	for m := r.ready.pop(); m != nil; m = r.ready.pop() {
		r.Release(m)
	}
	for m := r.byLastTSN.firstIncomplete(); m != nil; m = r.byLastTSN.firstIncomplete() {
		r.byLastTSN.take(m.lastTSN)
		r.Release(m)
	}
	for link := r.outOfOrder.anyLink(); link != nil; link = r.outOfOrder.anyLink() {
		m := *link
		if r.outOfOrder.removeLink(link); m.isPlaceholder {
			r.freePlaceholder(m)
		} else {
			r.Release(m)
		}
	}
	r.byLastTSN, r.outOfOrder, r.streamQueues, r.streams, r.dueStreams, r.partialMessage = lastTSNIndex{},
		outOfOrderTree{}, sparse.Table[streamQueue]{}, sparse.Table[streamState]{}, nil, nil
	r.freeSpares()
}

func (r *Reassembly) newMessage() *Message {
	r.store.usedMemory += messageCost
	m := r.freeMessages
	switch {
	case !r.inlineUsed:
		r.inlineUsed = true
		return &r.inlineMessage
	case m == nil:
		return new(Message)
	}
	r.freeMessages = m.next
	r.numFree--
	m.next = nil
	return m
}

func (r *Reassembly) discardMessage(m *Message) {
	for p := m.headPiece; p != nil; {
		next := p.next
		r.store.dropPiece(p)
		p = next
	}
	r.recycleMessage(m)
}

func (r *Reassembly) recycleMessage(m *Message) {
	r.store.usedMemory -= messageCost
	*m = Message{}
	switch {
	case m == &r.inlineMessage:
		r.inlineUsed = false
	case r.numFree < r.store.maxSpares:
		m.next, r.freeMessages = r.freeMessages, m
		r.numFree++
	}
}
