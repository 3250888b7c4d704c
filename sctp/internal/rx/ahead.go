package rx

import (
	"unsafe"

	"github.com/rddp-go/rddp/internal/ahead"
)

// FetchMore is that of the association: what the next message is kept in.
func (r *Receiver) FetchMore() {
	m := &r.reasm
	ahead.Behind(&m.free, int(unsafe.Sizeof(Message{})))
	ahead.Behind(&m.store.pieces, int(unsafe.Sizeof(piece{})))
	ahead.Behind(&m.store.blocks, int(unsafe.Sizeof(*m.store.blocks)))
}
