package tx

import (
	"unsafe"

	"github.com/rddp-go/rddp/sctp/internal/ahead"
)

// Fetch and FetchMore are those of the association.
func (s *Sender) Fetch() { ahead.Span(&s.ledger, &s.stats) }

// FetchMore is the second step: the next message.
func (s *Sender) FetchMore() {
	ahead.Behind(&s.queue.ring, int(unsafe.Sizeof(Message{})))
}
