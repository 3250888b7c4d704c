package rx

import "github.com/rddp-go/rddp/sctp/wire"

// AdmitOutside is Admit for a chunk that its owner keeps itself, outside the receive window: it
// does not ask whether that has room.
func (r *Receiver) AdmitOutside(d wire.Data) Admission {
	if found := r.tracker.Check(d.TSN()); found != Fresh {
		return r.refuse(d.TSN(), found)
	}
	if r.reassembly.isBlockedByMissingSSN(d) {
		return r.drop()
	}
	return New
}

// TakeOutside counts an admitted chunk as received, which its owner keeps. It may be a fragment.
// With the first of a message the message counts as delivered: others of its stream do not wait for
// it.
func (r *Receiver) TakeOutside(d wire.Data) error {
	r.tracker.Add(d.TSN())
	r.ackPolicy.NoteData(d.I())
	if d.B() && !d.U() {
		r.reassembly.MarkDelivered(d.Stream(), d.SSN(), d.TSN())
	}
	if r.isFrozen() {
		return nil // what is held stays as it is
	}
	return r.reassembly.Check(r.tracker.Cum())
}
