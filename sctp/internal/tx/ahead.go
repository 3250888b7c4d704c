package tx

import (
	"unsafe"

	"github.com/rddp-go/rddp/internal/ahead"
)

// Fetch and FetchMore are those of the association.
func (s *Sender) Fetch() { ahead.Span(&s.ledger, &s.stats) }

// FetchMore is the second step: the next message.
func (s *Sender) FetchMore() {
	ahead.Behind(&s.queue.ring, int(unsafe.Sizeof(Message{})))
}

// Controls is where in a Path the pointer to its congestion control lies: behind the type of the interface.
const Controls = unsafe.Offsetof(Path{}.cc) + unsafe.Sizeof(uintptr(0))
