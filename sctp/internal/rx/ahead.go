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
}

// FetchLast is that of the association: the block that the next data are copied to.
func (r *Receiver) FetchLast() {
	ahead.Beyond(&r.reasm.store.pieces, unsafe.Offsetof(piece{}.data), 1<<(minBlock+1))
}
