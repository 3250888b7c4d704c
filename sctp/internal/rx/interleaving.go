package rx

// Fragments of I-DATA find each other by stream, U bit, MID and FSN, and never by TSN (RFC 8260
// section 2.2.3). Messages of several streams are in assembly at once:
//
//	stream  MID  U  FSNs here; [] is missing
//	1       7       0 1 2 [3] 4 5      pieces 0 to 2, and a run of fragments 4 and 5
//	1       8       0E                 complete, and waits for MID 7
//	2       0    U  [0] 1              no pieces, and a run
//
// A message in assembly lies in openStream.messages. Its own pieces are those without a gap, from
// the first one on that is not delivered yet. What is beyond a gap lies in its tree of fragments,
// in runs without gaps. A run is a Message too: its order is the FSN of its first piece. A complete
// message that waits for its MID lies in extensions.waiting, as with DATA.

import (
	"unsafe"

	"github.com/rddp-go/rddp/internal/sparse"
	"github.com/rddp-go/rddp/sctp/wire"
)

// interleaving is what a Reassembly of I-DATA has beside.
type interleaving struct {
	mids    sparse.Table[nextMIDs]
	streams sparse.Table[*openStream] // of streams that had fragments; nil without any
	index   pieceIndex
	last    *Message // the message in assembly that the last fragment was of, or nil

	numOpen    int // messages in assembly
	numStreams int // in streams
	numPopped  int // of these, with a message popped in pieces
	waitOctets int // octets of user data of messages in assembly, or before their turn
	// Streams that may have pieces to deliver before all of a message is there: all of them, and
	// those that the last chunks were of.
	withPieces, touched []wire.StreamID

	hasRestarted bool // TSNs have begun anew, see rest_interleaved.go
	unbegun      []unbegunMessage
}

// nextMIDs is the lowest MIDs of a stream that may still come. The ordered one follows messages
// that were delivered or given up, the unordered one those that were given up.
type nextMIDs struct{ ordered, unordered wire.MID }

// openStream is a stream that had fragments.
type openStream struct {
	messages   [2]orderTree // in assembly: ordered ones, unordered ones
	partial    *Message     // the one of them of which only pieces were delivered so far; or nil
	popped     *Message     // header of the one of which pieces were popped, and not the last; or nil
	readyAfter messageList  // messages that become ready after the end of partial
	hasPieces  bool         // it is in interleaving.withPieces
}

const openStreamCost = 64 // octets, as rounded by the allocator

// maxMIDSpan is how far the MIDs of unordered messages may spread that a stream tells apart.
const maxMIDSpan = 1 << 30

// interleaves says whether the peer sends I-DATA.
func (r *Reassembly) interleaves() bool { return r.ext != nil && r.ext.interleaving != nil }

// openStreamOf makes room for a stream.
func (x *interleaving) openStreamOf(id wire.StreamID) *openStream {
	o := x.streams.Use(uint16(id))
	if *o == nil {
		*o = new(openStream)
		x.numStreams++
	}
	return *o
}

// streamOf returns a stream, nil if it had no fragments.
func (x *interleaving) streamOf(id wire.StreamID) *openStream {
	if o := x.streams.At(uint16(id)); o != nil {
		return *o
	}
	return nil
}

// all are the streams that had fragments.
func (x *interleaving) all(yield func(wire.StreamID, *openStream) bool) {
	for id, o := range x.streams.All {
		if *o != nil && !yield(wire.StreamID(id), *o) {
			return
		}
	}
}

// base is the MID that the orders of messages in assembly count on from.
func (n *nextMIDs) base(unordered bool) streamOrder {
	if unordered {
		return streamOrder(n.unordered)
	}
	return streamOrder(n.ordered)
}

func treeOf(unordered bool) int {
	if unordered {
		return 1
	}
	return 0
}

// isInTurn says whether nothing of its stream has to be delivered before m.
func (r *Reassembly) isInTurn(m *Message) bool {
	if m.Unordered {
		return true
	}
	return !r.stateOfStream(m.Stream).isDue &&
		m.MID() == r.ext.interleaving.mids.Use(uint16(m.Stream)).ordered
}

// deliverInterleaved delivers a complete message of I-DATA, or queues it until its MID is next.
func (r *Reassembly) deliverInterleaved(m *Message) error {
	if m.Unordered {
		r.pushReadyInStream(m)
		return nil
	}
	s, n := r.stateOfStream(m.Stream), r.ext.interleaving.mids.Use(uint16(m.Stream))
	if r.isInTurn(m) {
		r.pushReadyInStream(m)
		n.ordered++
		r.advanceStream(m.Stream, s)
		r.noteTurn(m.Stream)
		return nil
	}
	q := r.queueOf(m.Stream)
	if !s.hasWaiting {
		*q = streamQueue{nextOrder: streamOrder(n.ordered)}
	}
	if !r.addWaiting(m, q) {
		err := &ViolationError{m.firstTSN, "two messages of a stream with the same MID"}
		r.releaseOpen(m)
		return err
	}
	r.outOfOrder.count++
	q.count++
	s.hasWaiting = true
	return nil
}

// pushReadyInStream delivers a whole message, or the last piece of one. While another of its stream
// is delivered in pieces, it waits.
func (r *Reassembly) pushReadyInStream(m *Message) {
	x := r.ext.interleaving
	x.waitOctets -= m.Size
	m.mayDrop = false
	o := x.streamOf(m.Stream)
	switch {
	case o == nil || o.partial == nil:
		r.ready.push(m)
	case o.partial != m:
		o.readyAfter.push(m)
	default:
		r.ready.push(m)
		o.partial = nil
		r.ready.appendList(&o.readyAfter)
		r.noteTurn(m.Stream)
	}
}

// isSkipped says whether a message was delivered, or given up, so that no chunk of it may come.
func (n *nextMIDs) isSkipped(mid wire.MID, unordered bool) bool {
	return streamOrder(mid)-n.base(unordered) >= 1<<31
}

// skipThroughMID gives up the messages of a stream up to a MID.
func (r *Reassembly) skipThroughMID(k wire.ISkip) {
	if int(k.Stream) >= r.inStreams {
		return
	}
	x := r.ext.interleaving
	n := x.mids.Use(uint16(k.Stream))
	if n.isSkipped(k.MID, k.U) {
		return
	}
	if o := x.streamOf(k.Stream); o != nil {
		t, base := &o.messages[treeOf(k.U)], n.base(k.U)
		for m := t.first(); m != nil && m.order-base <= streamOrder(k.MID)-base; m = t.first() {
			r.abandonOpen(m)
		}
	}
	r.goOnBehindMID(k)
}

// goOnBehindMID has a stream go on behind a MID up to which no more will come.
func (r *Reassembly) goOnBehindMID(k wire.ISkip) {
	n := r.ext.interleaving.mids.Use(uint16(k.Stream))
	if k.U {
		n.unordered = k.MID + 1
		return
	}
	n.ordered = k.MID + 1
	if s := r.stateOfStream(k.Stream); !s.hasWaiting {
		s.nextSSN = wire.SSN(n.ordered)
		r.noteTurn(k.Stream)
		return
	}
	r.ext.waiting.Use(uint16(k.Stream)).skipTo = streamOrder(n.ordered)
	r.markDue(k.Stream)
}

// abandonOpen drops a message in assembly that the peer has given up.
func (r *Reassembly) abandonOpen(m *Message) {
	r.dropOpen(m)
	*r.workSteps++
	r.ext.abandoned++
}

// dropOpen drops a message in assembly. If pieces of it were delivered, the reader learns that
// there will be no more.
func (r *Reassembly) dropOpen(m *Message) {
	r.removeOpen(m)
	if o := r.ext.interleaving.streamOf(m.Stream); o.partial == m {
		r.endPartial(o)
	}
	r.releaseOpen(m)
}

// dropAllOpen drops all messages in assembly, each by drop.
func (r *Reassembly) dropAllOpen(drop func(*Message)) {
	for _, o := range r.ext.interleaving.all {
		for i := range o.messages {
			for m := o.messages[i].last(); m != nil; m = o.messages[i].last() {
				drop(m)
			}
		}
	}
}

// removeOpen takes a message out of those in assembly.
func (r *Reassembly) removeOpen(m *Message) {
	x := r.ext.interleaving
	t := &x.streamOf(m.Stream).messages[treeOf(m.Unordered)]
	*r.workSteps += t.steps()
	t.remove(m, x.mids.Use(uint16(m.Stream)).base(m.Unordered))
	x.numOpen--
	if x.last == m {
		x.last = nil
	}
}

// releaseOpen gives the memory of a message back that was not delivered.
func (r *Reassembly) releaseOpen(m *Message) {
	r.ext.interleaving.waitOctets -= m.Size
	m.fragments.forEach(r.store.dropMessage)
	r.Release(m)
}

// closeInterleaving gives all messages back that were not delivered.
func (r *Reassembly) closeInterleaving() {
	x := r.ext.interleaving
	for _, o := range x.all {
		for m := o.readyAfter.pop(); m != nil; m = o.readyAfter.pop() {
			r.Release(m)
		}
		for i := range o.messages {
			o.messages[i].forEach(r.releaseOpen)
		}
	}
	*x = interleaving{}
}

// memorySize is the octets of memory behind it.
func (x *interleaving) memorySize() int {
	if x == nil {
		return 0
	}
	return int(unsafe.Sizeof(*x)) + x.mids.Held() + x.streams.Held() + x.index.memorySize() +
		x.numStreams*openStreamCost + x.numPopped*messageCost + 2*(cap(x.withPieces)+cap(x.touched)) +
		unbegunCost*cap(x.unbegun)
}

// freeSpares gives back what is not in use.
func (x *interleaving) freeSpares() {
	if x.numOpen == 0 && x.numPopped == 0 {
		x.streams, x.numStreams, x.withPieces, x.touched = sparse.Table[*openStream]{}, 0, nil, nil
	}
}
