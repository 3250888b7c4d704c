package rx

// What lies where, for chunks with these bits B and E; a TSN in brackets is missing:
//
//	TSN       10    11   12   [13]   14   15   [16]   17
//	bits      BE    B                     E           BE
//	stream    1     2    2           2    2           1
//	SSN       7     4    4           4    4           9
//	message   a     b----b           c----c           d
//
//	ready        a                    Pop returns it next
//	byLastTSN    12: b, 15: c, 17: d  what a chunk may still join, and what may be evicted
//	outOfOrder   stream 1, SSN 9: d   complete, and waits for SSN 8 of its stream
//	streams      1: SSN 8 is next; 2: SSN 4 is next
//
// A message is a list of pieces, one for each chunk. The cumulative TSN is 12, so b is
// byLastTSN.endsAtBase. TSN 13 makes one message of b and c, which is complete and becomes ready.
// TSN 16, if it is SSN 8 of stream 1, becomes ready too. Then stream 1 is in streams.due, and d
// becomes ready when the program reads on.

import (
	"errors"
	"fmt"
	"math"

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

// Reassembly makes messages of DATA chunks and puts them in the order of their streams (RFC 9260
// sections 6.5, 6.6 and 6.9). See the drawing at the top of this file. Its first fields, up to
// streams.due, are what sending a message looks at, see Receiver.
type Reassembly struct {
	heldOctets int         // octets of user data held, ready, or with the upper layer
	workSteps  *uint64     // see Receiver.Steps
	ready      messageList // messages and pieces in delivery order
	dataLimit  int         // octets of user data
	streams    streamStates
	maxMessage int
	inStreams  int
	ext        *extensions // nil without any
	partial    partialDelivery
	store      memoryStore
	byLastTSN  lastTSNIndex
	outOfOrder outOfOrderMessages
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
	n := r.store.memorySize() + r.streams.table.Held() + r.outOfOrder.queues.Held() + r.byLastTSN.memorySize() +
		2*cap(r.streams.due) + r.ext.memorySize()
	if r.partial.popped != nil {
		n += messageCost
	}
	return n
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
	prev, next, err := r.findNeighbours(d)
	switch {
	case err != nil:
		return err
	case len(d.Payload()) > r.maxMessage:
		return ErrMessageTooBig
	case d.B() && d.E():
		return r.deliverComplete(r.newMessage(d, buf))
	}
	m := r.joinFragment(d, buf, prev, next)
	switch n := m.Offset + m.Size; {
	case n > r.maxMessage || !m.hasEnd && n == r.maxMessage:
		r.byLastTSN.take(m.lastTSN)
		r.Release(m)
		return ErrMessageTooBig
	case m.hasBegin && m.hasEnd:
		r.byLastTSN.take(m.lastTSN)
		return r.deliverComplete(m)
	}
	return nil
}

// findNeighbours returns the messages in assembly that a chunk continues: the one that ends right
// before it, and the one that begins right after it. The error is that of Add.
func (r *Reassembly) findNeighbours(d wire.Data) (prev, next *Message, err error) {
	t := d.TSN()
	if len(d.Payload()) == 0 {
		return nil, nil, &ViolationError{t, "DATA without user data"}
	}
	if int(d.Stream()) >= r.inStreams {
		return nil, nil, &ViolationError{t, "DATA for a stream that does not exist"}
	}
	if r.byLastTSN.isEmpty() {
		return nil, nil, nil
	}
	*r.workSteps++
	prev, next = r.byLastTSN.messageEndingAt(t-1), r.byLastTSN.firstMessageFrom(t)
	if next != nil && next.firstTSN != t+1 {
		next = nil
	}
	if what := neighbourViolation(d, prev, next, r.mayAbandon()); what != "" {
		return nil, nil, &ViolationError{t, what}
	}
	if d.B() {
		if prev != nil && !prev.hasEnd && prev == r.byLastTSN.endsAtBase {
			r.abandon(prev)
		}
		prev = nil
	}
	if d.E() || next != nil && next.hasBegin {
		next = nil
	}
	return prev, next, nil
}

// neighbourViolation says what is wrong between a chunk and its neighbours in TSN, or "". A message
// that the peer may have given up need not have an end.
func neighbourViolation(d wire.Data, prev, next *Message, mayAbandon bool) string {
	if prev != nil {
		switch {
		case d.B() && !prev.hasEnd && !mayAbandon:
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
		case !d.E() && next.hasBegin && !mayAbandon:
			return "a message begins before the one before it has ended"
		case !d.E() && !next.hasBegin && !isSameMessage(d, next):
			return "fragments of one message differ in stream, SSN or U bit"
		}
	}
	return ""
}

func isSameMessage(d wire.Data, m *Message) bool {
	return d.Stream() == m.Stream && d.U() == m.Unordered && (m.Unordered || d.SSN() == m.SSN)
}

// newMessage returns a message of one chunk.
func (r *Reassembly) newMessage(d wire.Data, buf *rawio.Buf) *Message {
	p, m := r.keepData(d, buf), r.store.newMessage()
	m.Stream, m.SSN, m.Unordered = d.Stream(), d.SSN(), d.U()
	m.firstTSN, m.lastTSN, m.hasBegin, m.hasEnd = d.TSN(), d.TSN(), d.B(), d.E()
	m.appendPiece(p)
	if d.B() {
		m.PPID = d.PPID()
	}
	return m
}

func (r *Reassembly) keepData(d wire.Data, buf *rawio.Buf) *piece {
	r.heldOctets += len(d.Payload())
	return r.store.keepData(d.Payload(), buf)
}

// joinFragment makes one message of a fragment and its neighbours. The index has it then.
func (r *Reassembly) joinFragment(d wire.Data, buf *rawio.Buf, prev, next *Message) *Message {
	switch {
	case prev == nil && next == nil:
		m := r.newMessage(d, buf)
		r.byLastTSN.put(m)
		return m
	case prev == nil:
		next.prependPiece(r.keepData(d, buf))
		next.firstTSN, next.hasBegin = d.TSN(), d.B()
		if d.B() {
			next.PPID = d.PPID()
		}
		return next
	}
	was := prev.lastTSN
	prev.appendPiece(r.keepData(d, buf))
	prev.lastTSN, prev.hasEnd = d.TSN(), d.E()
	if next != nil {
		prev.appendMessage(next)
		r.store.recycleMessage(next)
	}
	r.byLastTSN.moveMessage(prev, was)
	return prev
}

// Evict drops the chunk with the highest TSN held for reordering, if that is above t. It returns
// its TSN (section 6.2).
func (r *Reassembly) Evict(t wire.TSN) (wire.TSN, bool) {
	if r.interleaves() {
		return r.evictFragment(t)
	}
	m := r.byLastTSN.highestMessage()
	if m == nil || !t.Less(m.lastTSN) {
		return 0, false
	}
	switch {
	case !m.hasBegin || !m.hasEnd:
	case r.ext != nil:
		r.takeWaiting(m)
	default:
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
		r.store.recycleMessage(m)
	} else {
		m.tailPiece.next = nil
		r.byLastTSN.moveMessage(m, gone)
	}
	r.store.dropPiece(p)
	return gone, true
}

// Check returns an error if a held fragment can never become a message, now that every TSN up to
// cum has been received. A message that the peer may have given up it drops.
func (r *Reassembly) Check(cum wire.TSN) error {
	if cum == r.byLastTSN.baseTSN { // as when nothing is missing
		return nil
	}
	return r.checkAssembly(cum)
}

func (r *Reassembly) checkAssembly(cum wire.TSN) error {
	if r.byLastTSN.isEmpty() {
		if r.interleaves() {
			r.ext.interleaving.index.advance(r.byLastTSN.baseTSN, cum)
		}
		r.byLastTSN.baseTSN = cum
		return nil
	}
	for m := r.byLastTSN.firstIncomplete(); m != nil && m.canNeverBeWhole(cum); m = r.byLastTSN.firstIncomplete() {
		switch {
		case r.mayAbandon():
			r.abandon(m)
		case r.byLastTSN.isRest(m):
			r.dropRest(m)
		default:
			return &ViolationError{m.firstTSN, "a fragment without its message"}
		}
	}
	r.byLastTSN.advanceBase(cum)
	return nil
}

// canNeverBeWhole says whether a TSN that a message lacks is up to cum.
func (m *Message) canNeverBeWhole(cum wire.TSN) bool {
	return m.lastTSN.Less(cum) || !m.hasBegin && m.firstTSN.LessEq(cum)
}

// Restart is Close, for a peer that begins anew with that many streams. What the upper layer has
// yet to release still counts. A message of which it has only pieces ends.
func (r *Reassembly) Restart(initial wire.TSN, inStreams int) {
	var popped []*Message
	if r.interleaves() {
		popped = r.poppedInterleaved()
	}
	r.Close()
	r.byLastTSN.baseTSN = initial - 1
	r.inStreams = inStreams
	if r.partial.isBeingPopped() {
		r.pushCutOff(r.partial.popped)
	}
	for _, m := range popped {
		r.pushCutOff(m)
	}
}

// Close gives all memory back except what the upper layer has yet to release.
func (r *Reassembly) Close() {
	r.ready.appendList(&r.partial.readyAfter)
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
	if r.ext != nil {
		r.closeExtensions()
	}
	r.byLastTSN, r.outOfOrder, r.streams, r.partial.message = lastTSNIndex{}, outOfOrderMessages{}, streamStates{}, nil
	r.freeSpares()
}
