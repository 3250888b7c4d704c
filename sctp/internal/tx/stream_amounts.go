package tx

import (
	"unsafe"

	"github.com/rddp-go/rddp/internal/sparse"
	"github.com/rddp-go/rddp/sctp/wire"
)

// streamAmounts is how many octets of each stream are not acknowledged, and which streams have
// fallen to their low-water mark.
type streamAmounts struct {
	amounts sparse.Table[streamAmount]
	low     []wire.StreamID // those that have, and were not taken yet
}

type streamAmount struct {
	octets int
	markAt int // octets of its low-water mark + 1; 0: it has none
}

func (y *streamAmounts) add(id wire.StreamID, octets int) { y.amounts.Use(uint16(id)).octets += octets }

// remove counts octets no more, and notes when that leads to the mark.
func (y *streamAmounts) remove(id wire.StreamID, octets int) {
	x := y.amounts.Use(uint16(id))
	wasAbove := x.octets >= x.markAt
	if x.octets -= octets; x.markAt > 0 && wasAbove && x.octets < x.markAt {
		y.low = append(y.low, id)
	}
}

func (y *streamAmounts) held() int {
	if y == nil {
		return 0
	}
	return int(unsafe.Sizeof(*y)) + y.amounts.Held() + cap(y.low)*int(unsafe.Sizeof(wire.StreamID(0)))
}

// release frees the room that octets of a stream take in the send buffer.
func (q *sendQueue) release(id wire.StreamID, octets int) {
	q.bufferedOctets -= octets
	if q.streams != nil && q.streams.amounts != nil {
		q.streams.amounts.remove(id, octets)
	}
}

// trackStreams counts from now on what each stream has.
func (s *Sender) trackStreams() *streamAmounts {
	q, g := &s.queue, &s.outstanding
	y := s.perStream()
	if y.amounts != nil {
		return y.amounts
	}
	a := new(streamAmounts)
	y.amounts = a
	for t := g.firstUnacked; t != g.nextTSN; t++ {
		if r := g.recordOf(t); r.flags&flagEnqueued != 0 {
			a.add(r.stream, int(r.size))
		}
	}
	for m := range q.allWaiting {
		a.add(m.Stream, m.Len())
	}
	for l := range q.allBegun {
		a.remove(l.msg.Stream, l.offset)
	}
	if l := &q.current; l.loaded && l.fromQueue {
		a.add(l.msg.Stream, l.rest())
	}
	return a
}

// Buffered returns how many octets of all streams came through Enqueue and are not acknowledged.
func (s *Sender) Buffered() int { return s.queue.bufferedOctets }

// BufferedOf returns those of a stream.
func (s *Sender) BufferedOf(id wire.StreamID) int {
	if x := s.trackStreams().amounts.At(uint16(id)); x != nil {
		return x.octets
	}
	return 0
}

// SetLowMark has TakeLow tell when a stream has no more than octets that are not acknowledged, and
// had more.
func (s *Sender) SetLowMark(id wire.StreamID, octets int) {
	s.trackStreams().amounts.Use(uint16(id)).markAt = octets + 1
}

// TakeLow returns the streams that have fallen to their marks since the last call.
func (s *Sender) TakeLow() []wire.StreamID {
	y := s.queue.streams
	if y == nil || y.amounts == nil || len(y.amounts.low) == 0 {
		return nil
	}
	list := y.amounts.low
	y.amounts.low = nil
	return list
}
