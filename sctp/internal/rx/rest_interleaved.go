package rx

import "github.com/rddp-go/rddp/sctp/wire"

// A peer may reset its TSNs in the middle of messages, and go on with the rest of them: libusrsctp
// does, under MID 0 of their streams. With I-DATA there may be a rest in each stream, anywhere
// behind the reset. It has no first fragment, though all TSNs before it have come. It is dropped,
// and the stream goes on behind its MID, as with DATA.

// unbegunMessage is a message in assembly with MID 0 whose first fragment has not come. It may be
// such a rest.
type unbegunMessage struct {
	stream    wire.StreamID
	unordered bool
}

const unbegunCost = 4 // octets

// noteUnbegun notes that a message is in assembly now.
func (r *Reassembly) noteUnbegun(m *Message) {
	if x := r.ext.interleaving; x.hasRestarted && m.MID() == 0 && !m.hasBegin {
		x.unbegun = append(x.unbegun, unbegunMessage{m.Stream, m.Unordered})
	}
}

// isOfRest says whether a chunk is one more of a rest that was dropped.
func (x *interleaving) isOfRest(d wire.IData) bool { return x.hasRestarted && d.MID() == 0 && !d.B() }

// dropRests drops the rests among unbegun messages. It looks at some of them for one packet, and at
// the others with the next.
func (r *Reassembly) dropRests() {
	x := r.ext.interleaving
	for n := min(len(x.unbegun), maxBlocked); n > 0; n-- {
		*r.workSteps++
		u := x.unbegun[0]
		if x.unbegun = x.unbegun[1:]; !r.dropIfRest(u) {
			x.unbegun = append(x.unbegun, u)
		}
	}
	if len(x.unbegun) == 0 {
		x.unbegun = nil
	}
}

// dropIfRest drops an unbegun message if it is a rest. It returns false while that is not known.
func (r *Reassembly) dropIfRest(u unbegunMessage) bool {
	x := r.ext.interleaving
	o, n := x.streamOf(u.stream), x.mids.Use(uint16(u.stream))
	if o == nil || n.base(u.unordered) != 0 {
		return true
	}
	t := &o.messages[treeOf(u.unordered)]
	*r.workSteps += t.steps()
	m := t.find(0, 0)
	if m == nil || m.hasBegin {
		return true
	}
	if r.byLastTSN.baseTSN.Less(m.firstTSN) {
		return false
	}
	r.dropOpen(m)
	r.goOnBehindMID(wire.ISkip{Stream: u.stream, U: u.unordered})
	return true
}
