package ddp

import (
	"testing"
	"unsafe"

	"github.com/rddp-go/rddp/internal/test/check"
)

// A queue takes its places, and a stream what it knows of each of its queues.
func TestHeldCountsPlacesAndQueues(t *testing.T) {
	for _, depth := range []int{0, 1, 100} {
		for name, q := range map[string]*Queue{"own": NewQueue(depth), "shared": NewSharedQueue(nil, depth)} {
			check.Equal(t, name, q.Held(), int(unsafe.Sizeof(*q))+depth*int(unsafe.Sizeof(queueSlot{})))
		}
	}
	for _, queues := range []int{0, 1, 3} {
		s := NewStream(StreamConfig{ID: 1, Table: NewTable(new(entropy)), Queues: queues})
		of := queues * (int(unsafe.Sizeof(receivedRanges{})) + 2*4) // an MSN in each direction
		check.Equal(t, "a stream", s.Held(), int(unsafe.Sizeof(*s))+of)
		s.outMessages.buf = make([]message, 10)
		check.Equal(t, "with messages", s.Held(), int(unsafe.Sizeof(*s))+of+10*int(unsafe.Sizeof(message{})))
	}
}
