package rx

import (
	"unsafe"

	"github.com/rddp-go/rddp/internal/ahead"
)

// Fetch is that of the association.
func (r *Receiver) Fetch() {
	ahead.Part(r, unsafe.Offsetof(r.track), unsafe.Offsetof(r.reasm)+unsafe.Offsetof(r.reasm.held)+unsafe.Offsetof(r.reasm.held.dir))
}

// FetchToSend is that of the association: a SACK may go along, and messages wait.
func (r *Receiver) FetchToSend() {
	ahead.Part(r, unsafe.Offsetof(r.track), unsafe.Offsetof(r.reasm)+unsafe.Offsetof(r.reasm.maxMessage))
}

// FetchMore is that of the association: what the next message is kept in.
func (r *Receiver) FetchMore() {
	m := ahead.In[Reassembly](r, unsafe.Offsetof(r.reasm))
	ahead.Behind(ahead.In[*Message](m, unsafe.Offsetof(m.free)), int(unsafe.Sizeof(Message{})))
	ahead.Behind(ahead.In[*piece](m, unsafe.Offsetof(m.store)+unsafe.Offsetof(m.store.pieces)), int(unsafe.Sizeof(piece{})))
}

// FetchLast is that of the association: the block that the next data are copied to.
func (r *Receiver) FetchLast() {
	ahead.Beyond(&r.reasm.store.pieces, unsafe.Offsetof(piece{}.data), 1<<(minBlock+1))
}
