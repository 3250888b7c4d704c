package rx

import (
	"unsafe"

	"github.com/rddp-go/rddp/internal/ahead"
)

// Fetch and FetchMore are those of the association.
func (r *Receiver) Fetch() { ahead.Span(r, r) }

// FetchMore is the second step: what the next message is kept in.
func (r *Receiver) FetchMore() {
	m := &r.reasm
	ahead.Behind(&m.free, int(unsafe.Sizeof(Message{})))
	ahead.Behind(&m.store.pieces, int(unsafe.Sizeof(piece{})))
	ahead.Behind(&m.store.blocks, int(unsafe.Sizeof(*m.store.blocks)))
}
