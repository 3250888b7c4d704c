package rx

import "github.com/rddp-go/rddp/sctp/wire"

// AdmitAside is Admit for a chunk that its owner keeps itself, aside from the receive window: it
// does not ask whether that has room.
func (r *Receiver) AdmitAside(d wire.Data) Admission {
	switch r.tracker.Check(d.TSN()) {
	case SeenBefore:
		r.noteDuplicate(d.TSN())
		return Duplicate
	case TooFarAhead:
		r.ackPolicy.NoteData(true)
		return Dropped
	}
	if r.reassembly.isBlockedByMissingSSN(d) {
		r.ackPolicy.NoteData(true)
		return Dropped
	}
	return New
}

// TakeAside counts an admitted chunk as received, which its owner keeps. It may be a fragment. With
// the first of a message the message counts as delivered: others of its stream do not wait for it.
func (r *Receiver) TakeAside(d wire.Data) error {
	r.tracker.Add(d.TSN())
	r.ackPolicy.NoteData(d.I())
	if d.B() && !d.U() {
		r.reassembly.MarkDelivered(d.Stream(), d.SSN(), d.TSN())
	}
	return r.reassembly.Check(r.tracker.Cum())
}

// noteDuplicate notes that a chunk has come again.
func (r *Receiver) noteDuplicate(t wire.TSN) {
	r.tracker.NoteDuplicate(t)
	r.ackPolicy.NoteLoss()
	r.ackPolicy.NoteDuplicate()
	r.ackPolicy.NoteData(true)
}
