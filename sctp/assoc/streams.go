package assoc

import (
	"github.com/rddp-go/rddp/internal/sparse"
	"github.com/rddp-go/rddp/sctp/wire"
)

// StreamStats is a snapshot of one stream pair that ordered messages have used. SSNs count modulo
// 65536. Unordered messages, such as those of DDP, have none.
type StreamStats struct {
	ID      uint16
	NextOut uint16 // SSN of the next message to be sent
	NextIn  uint16 // SSN of the next message to be delivered
	Waiting int    // complete messages that have come and wait for an earlier one
}

// maxStreamsPerCall bounds how many streams a call of Streams looks at, so it is short however many
// there are.
const maxStreamsPerCall = 1024

// Streams appends to list what is known of streams from number from on, as long as list has space.
// It returns the number to go on from, or -1 when there are no more. A call may leave off before
// the list is full.
func (a *Assoc) Streams(from int, list []StreamStats) ([]StreamStats, int) {
	end := int(max(a.agreed.outStreams, a.agreed.inStreams))
	for looked := 0; from < end; looked++ {
		if looked == maxStreamsPerCall || len(list) == cap(list) {
			return list, from
		}
		s := StreamStats{ID: uint16(from)}
		if !a.fillStreamStats(&s) {
			from = int(sparse.PageStart(s.ID)) + sparse.PageLen
			continue
		}
		if from++; s.NextOut != 0 || s.NextIn != 0 || s.Waiting != 0 {
			list = append(list, s)
		}
	}
	return list, -1
}

// fillStreamStats fills in one, and says whether it or one near it was used.
func (a *Assoc) fillStreamStats(s *StreamStats) (near bool) {
	var out *wire.SSN
	var next wire.SSN
	if id := wire.StreamID(s.ID); a.IsIdle() {
		out = a.idleState.sender.NextSSN(id)
		next, near = a.idleState.receiver.Stream(id)
	} else {
		out = a.sender().NextSSN(id)
		if a.recv != nil {
			next, s.Waiting, near = a.recv.Stream(id)
		}
	}
	if s.NextIn = uint16(next); out == nil {
		return near
	}
	s.NextOut = uint16(*out)
	return true
}
