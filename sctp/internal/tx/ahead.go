package tx

import (
	"unsafe"

	"github.com/rddp-go/rddp/internal/ahead"
)

// FetchMore is that of the association: the next message, and the chunks that are acknowledged and sent next.
func (s *Sender) FetchMore() {
	ahead.Behind(&s.queue.ring, int(unsafe.Sizeof(Message{})))
	ahead.Ring(&s.ledger.recs, &s.ledger.base, 2)
}

// Controls is where in a Path the pointer to its congestion control lies: behind the type of the interface.
const Controls = unsafe.Offsetof(Path{}.cc) + unsafe.Sizeof(uintptr(0))
