package rx

import "github.com/rddp-go/rddp/sctp/wire"

// Partial delivery of I-DATA: a message of each stream may be delivered in pieces at once. Within a
// stream the pieces of a message follow one another (RFC 6458 section 8.1.20, level 2). As in
// RFC 9260 section 6.9, that makes room where messages that are not whole fill the receive buffer.
// With interleaving many may, however short each of them is.
//
// A message begins so only when no TSN before it is missing. Else one of its stream that was sent
// before may not be whole, and could not be delivered until this one ends. It would take the room
// that the rest of this one needs. For the same reason messages that are due in its stream become
// ready first.

// maxBlocked is how many streams without a result are looked at for one packet. The others have
// their turn with the next.
const maxBlocked = 32

// notePieces notes that a message in assembly has pieces that could be delivered, if that is so.
func (r *Reassembly) notePieces(m *Message) {
	if m.headPiece == nil || !r.isInTurn(m) {
		return
	}
	x := r.ext.interleaving
	if o := x.streamOf(m.Stream); !o.hasPieces {
		o.hasPieces = true
		x.withPieces = append(x.withPieces, m.Stream)
	}
	if n := len(x.touched); n == 0 || x.touched[n-1] != m.Stream {
		x.touched = append(x.touched, m.Stream)
	}
}

// noteTurn notes that the turn in a stream may have come to a message in assembly.
func (r *Reassembly) noteTurn(id wire.StreamID) {
	if o := r.ext.interleaving.streamOf(id); o != nil {
		for i := range o.messages {
			if m := o.messages[i].first(); m != nil {
				r.notePieces(m)
			}
		}
	}
}

// deliverPartialInterleaved is deliverPartial for I-DATA.
func (r *Reassembly) deliverPartialInterleaved(room, point int) {
	x := r.ext.interleaving
	for i := 0; i < len(x.touched); i++ { // there may be more on the way
		*r.workSteps++
		if point > 0 {
			r.deliverPiecesOf(x.touched[i], point)
		}
	}
	if x.touched = x.touched[:0]; r.dataLimit-x.waitOctets >= room {
		return
	}
	for n, blocked := len(x.withPieces), 0; n > 0 && blocked < maxBlocked; n-- {
		*r.workSteps++
		id := x.withPieces[0]
		x.withPieces = x.withPieces[1:]
		if o := x.streamOf(id); o != nil {
			if o.hasPieces = r.deliverPiecesOf(id, 0); o.hasPieces {
				x.withPieces = append(x.withPieces, id)
				blocked++
			}
		}
	}
}

// deliverPiecesOf delivers the pieces that there are of a message of a stream. It has more than
// point octets, and nothing has to be delivered before it. blocked: pieces wait for a TSN that is
// missing.
func (r *Reassembly) deliverPiecesOf(id wire.StreamID, point int) (blocked bool) {
	o := r.ext.interleaving.streamOf(id)
	if o == nil {
		return false
	}
	if o.partial != nil {
		r.deliverPieces(o, o.partial, point)
		return false
	}
	for i := range o.messages {
		m := o.messages[i].first()
		switch {
		case m == nil || m.headPiece == nil || !r.isInTurn(m):
		case r.byLastTSN.baseTSN.Less(m.firstTSN):
			blocked = true
		case r.deliverPieces(o, m, point):
			return false
		}
	}
	return blocked
}

func (r *Reassembly) deliverPieces(o *openStream, m *Message, point int) bool {
	if m.headPiece == nil || m.Size <= point {
		return false
	}
	for s := r.stateOfStream(m.Stream); o.partial == nil && s.isDue; {
		r.deliverDue()
	}
	p := r.store.newMessage()
	p.copyHeader(m)
	p.More, p.headPiece, p.firstTSN = true, m.headPiece, m.firstTSN
	for q := p.headPiece; q != nil; q = q.next {
		p.Size += len(q.data)
		q.owner = nil // it cannot be dropped any more
		*r.workSteps++
	}
	m.Offset += p.Size
	m.Size -= p.Size
	m.headPiece, m.tailPiece = nil, nil
	r.ext.interleaving.waitOctets -= p.Size
	o.partial = m
	r.ready.push(p)
	return true
}

// endPartial ends the message of a stream that is delivered in pieces: no more of it will come.
// What has waited for its end becomes ready.
func (r *Reassembly) endPartial(o *openStream) {
	r.pushCutOff(o.partial)
	id := o.partial.Stream
	o.partial = nil
	r.ready.appendList(&o.readyAfter)
	r.noteTurn(id)
}

// notePoppedInterleaved notes that Pop returns m.
func (r *Reassembly) notePoppedInterleaved(m *Message) {
	x := r.ext.interleaving
	o := x.streamOf(m.Stream)
	if o == nil || !m.More && o.popped == nil {
		return
	}
	if !m.More {
		o.popped = nil
		x.numPopped--
		return
	}
	if o.popped == nil {
		o.popped = new(Message)
		x.numPopped++
	}
	o.popped.copyHeader(m)
	o.popped.Offset = m.Offset + m.Size
}

// cutOffInterleaved is CutOff for I-DATA.
func (r *Reassembly) cutOffInterleaved() {
	for _, o := range r.ext.interleaving.all {
		if o.partial != nil {
			r.dropOpen(o.partial)
		}
	}
}

// poppedInterleaved returns the headers of the messages that were popped in pieces, and not to the
// end.
func (r *Reassembly) poppedInterleaved() (list []*Message) {
	for _, o := range r.ext.interleaving.all {
		if o.popped != nil {
			list = append(list, o.popped)
		}
	}
	return list
}
