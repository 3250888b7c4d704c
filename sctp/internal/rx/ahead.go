package rx

import (
	"unsafe"

	"github.com/rddp-go/rddp/internal/ahead"
)

// Fetch is that of the association.
func (r *Receiver) Fetch() { ahead.Part(r, unsafe.Offsetof(r.track), ownAt) }

// FetchToSend is that of the association: a SACK may go along, and messages wait.
func (r *Receiver) FetchToSend() {
	ahead.Part(r, unsafe.Offsetof(r.track), unsafe.Offsetof(r.reasm)+unsafe.Offsetof(r.reasm.maxMessage))
}

// FetchMore is that of the association: what the next message is kept in, and whether others are.
func (r *Receiver) FetchMore() {
	ahead.Part(r, ownAt, unsafe.Offsetof(r.reasm)+unsafe.Offsetof(r.reasm.held)+unsafe.Offsetof(r.reasm.held.ends))
}

// ownAt is where in a Receiver that begins.
const ownAt = unsafe.Offsetof(Receiver{}.reasm) + unsafe.Offsetof(Reassembly{}.store) + unsafe.Offsetof(store{}.own)
