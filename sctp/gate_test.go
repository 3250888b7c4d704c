package sctp

import (
	"testing"

	"github.com/rddp-go/rddp/rawio"
)

// What waits for the owner of an association is bounded, in packets and in octets, each time anew; what does not fit goes
// back to its pool, and a long backlog leaves no memory behind.
func TestBacklogHasTwoBounds(t *testing.T) {
	for _, row := range []struct {
		name      string
		size, fit int
	}{
		{"packets", 100, backlogMax},
		{"octets", 1 << 16, backlogOctets >> 16},
	} {
		t.Run(row.name, func(t *testing.T) {
			var g gate
			data := make([]byte, row.size)
			for round := range 2 {
				for i := range row.fit {
					if !g.post(&rawio.Packet{Data: data}) {
						t.Fatalf("round %d: packet %d of %d finds no room", round, i, row.fit)
					}
				}
				buf := rawio.NewBuf(data)
				buf.Retain()
				if g.post(&rawio.Packet{Data: data, Buf: buf}) {
					t.Errorf("round %d: room for more than %d", round, row.fit)
				}
				if buf.Refs() != 1 {
					t.Errorf("round %d: a packet without room keeps its buffer", round)
				}
				b := g.take()
				if len(b) != row.fit || g.waiting.Load() != 0 {
					t.Errorf("round %d: %d taken, %d wait", round, len(b), g.waiting.Load())
				}
				g.done(b)
			}
			if n := cap(g.spare); n > spareMax {
				t.Errorf("room for %d packets is kept, want %d at most", n, spareMax)
			}
		})
	}
}
