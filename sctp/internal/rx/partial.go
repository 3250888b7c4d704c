package rx

import "github.com/rddp-go/rddp/sctp/wire"

// Partial delivery (RFC 9260 section 6.9): the beginning of a message that has filled the receive buffer
// is delivered, so that there is room for the rest, or of one that is longer than the program wants to wait for. Only the one message that the cumulative TSN ends in
// can be in that place: what is delivered of it is acknowledged for good. Its pieces follow one another
// in the order of delivery. What becomes ready in between waits for its end, and that takes no room from
// it: all of that has higher TSNs, so the peer has sent the rest of the message within the same window.

// spill delivers what there is of the message that cum ends in, when less than room octets of the buffer
// are left beside it, or it has more than point octets, unless point is 0.
func (r *Reassembly) spill(cum wire.TSN, room, point int) error {
	if r.maxMessage <= r.limit && point == 0 {
		return nil
	}
	m := r.held.at(cum)
	if m == nil || !r.spills(m.Size, room, point) || !r.fills(m.Size, room) && r.stream(m.Stream).due {
		return nil
	}
	for s := r.stream(m.Stream); s.due; { // there is little beside a message that fills the buffer
		r.deliver()
	}
	if !m.Unordered && m.SSN != r.stream(m.Stream).next {
		if m.Size < r.limit {
			return nil
		}
		return &ViolationError{m.first, "a message fills the receive buffer before its turn in the stream"}
	}
	p := r.message()
	p.header(m)
	p.More = true
	p.Size, p.head = m.Size, m.head
	m.Offset += m.Size
	m.Size, m.head, m.tail = 0, nil, nil
	r.open = m
	r.ready.push(p)
	return nil
}

// fills says whether so many octets of one message leave less than room octets of a buffer that it may not fit.
func (r *Reassembly) fills(octets, room int) bool {
	return r.maxMessage > r.limit && r.limit-octets < room
}

// spills says whether so many octets of one message may be for spill.
func (r *Reassembly) spills(octets, room, point int) bool {
	return r.fills(octets, room) || point > 0 && octets > point
}

// CutOff ends the message that is delivered in pieces: no more of it will come. What has waited for its end
// becomes ready.
func (r *Reassembly) CutOff() {
	if r.open == nil {
		return
	}
	r.cut(r.open)
	r.open = nil
	r.ready.join(&r.later)
}

// cut makes the end of a message ready whose rest will not come.
func (r *Reassembly) cut(of *Message) {
	m := r.message()
	m.header(of)
	m.Cut = true
	r.ready.push(m)
}

// header makes p a part of the same message as m.
func (p *Message) header(m *Message) {
	p.Stream, p.SSN, p.PPID, p.Unordered, p.Offset = m.Stream, m.SSN, m.PPID, m.Unordered, m.Offset
}

// push delivers a whole message, or the last piece of one. While another message is delivered in pieces,
// it waits.
func (r *Reassembly) push(m *Message) {
	if r.open != nil && r.open != m {
		r.later.push(m)
		return
	}
	r.ready.push(m)
	if r.open == m {
		r.open = nil
		r.ready.join(&r.later)
	}
}
