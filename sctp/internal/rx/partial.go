package rx

import "github.com/rddp-go/rddp/sctp/wire"

// Partial delivery (RFC 9260 section 6.9): the beginning of a message is delivered before the rest
// is there. That is done when the message has filled the receive buffer, to make room for the rest.
// It is also done when the message is longer than the program wants to wait for. Only the message
// that the cumulative TSN ends in can be in that place: what is delivered of it is acknowledged for
// good. Its pieces follow one another in the order of delivery. What becomes ready in between waits
// for its end. That takes no room from it: all of that has higher TSNs, so the peer has sent the
// rest of the message within the same window.

// partialDelivery is what is known of the message in assembly that is delivered in pieces, and of
// the one that is being read in pieces.
type partialDelivery struct {
	message    *Message    // in assembly: only pieces of it were delivered so far; or nil
	popped     *Message    // header of the one popped in pieces, More until its last; or nil
	readyAfter messageList // messages that become ready after the end of message
}

// isBeingPopped says whether pieces of a message were popped, and not its last.
func (p *partialDelivery) isBeingPopped() bool { return p.popped != nil && p.popped.More }

// notePopped notes that Pop returns m.
func (p *partialDelivery) notePopped(m *Message) {
	if !m.More && !p.isBeingPopped() {
		return
	}
	if p.popped == nil {
		p.popped = new(Message)
	}
	p.popped.copyHeader(m)
	p.popped.Offset, p.popped.More = m.Offset+m.Size, m.More
}

// deliverPartial delivers what there is of the message that cum ends in. It does so when less than
// room octets of the buffer are left beside it, or when it has more than point octets. A point of 0
// means no such limit.
func (r *Reassembly) deliverPartial(cum wire.TSN, room, point int) error {
	if r.maxMessage <= r.dataLimit && point == 0 {
		return nil
	}
	m := r.byLastTSN.messageEndingAt(cum)
	if m == nil || !r.isPartialDue(m.Size, room, point) || !r.fillsBuffer(m.Size, room) &&
		r.stateOfStream(m.Stream).isDue {
		return nil
	}
	for s := r.stateOfStream(m.Stream); s.isDue; { // there is little else
		r.deliverDue()
	}
	if !m.Unordered && m.SSN != r.stateOfStream(m.Stream).nextSSN {
		if m.Size < r.dataLimit {
			return nil
		}
		return &ViolationError{m.firstTSN, "a message fills the receive buffer before its turn in the stream"}
	}
	p := r.store.newMessage()
	p.copyHeader(m)
	p.More = true
	p.Size, p.headPiece = m.Size, m.headPiece
	m.Offset += m.Size
	m.Size, m.headPiece, m.tailPiece = 0, nil, nil
	r.partial.message = m
	r.ready.push(p)
	return nil
}

// fillsBuffer says whether so many octets of a message leave less than room octets of the buffer,
// and the message may be longer than the buffer.
func (r *Reassembly) fillsBuffer(octets, room int) bool {
	return r.maxMessage > r.dataLimit && r.dataLimit-octets < room
}

// isPartialDue says whether partial delivery may be due for so many octets of one message.
func (r *Reassembly) isPartialDue(octets, room, point int) bool {
	return r.fillsBuffer(octets, room) || point > 0 && octets > point
}

// CutOff ends the message that is delivered in pieces: no more of it will come. What has waited for
// its end becomes ready.
func (r *Reassembly) CutOff() {
	if r.interleaves() {
		r.cutOffInterleaved()
	}
	if r.partial.message == nil {
		return
	}
	r.pushCutOff(r.partial.message)
	r.partial.message = nil
	r.ready.appendList(&r.partial.readyAfter)
}

// pushCutOff makes the end of a message ready whose rest will not come.
func (r *Reassembly) pushCutOff(of *Message) {
	m := r.store.newMessage()
	m.copyHeader(of)
	m.Cut = true
	r.ready.push(m)
}

// copyHeader makes p a part of the same message as m.
func (p *Message) copyHeader(m *Message) {
	p.Stream, p.SSN, p.PPID, p.Unordered, p.Offset = m.Stream, m.SSN, m.PPID, m.Unordered, m.Offset
	p.order = m.order // the MID
}

// pushReady delivers a whole message, or the last piece of one. While another message is delivered
// in pieces, it waits.
func (r *Reassembly) pushReady(m *Message) {
	if r.partial.message != nil && r.partial.message != m {
		r.partial.readyAfter.push(m)
		return
	}
	r.ready.push(m)
	if r.partial.message == m {
		r.partial.message = nil
		r.ready.appendList(&r.partial.readyAfter)
	}
}
