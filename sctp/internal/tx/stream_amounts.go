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
	passed  int             // the sum of streamAmount.passed
	low     []wire.StreamID // those that have, and were not taken yet
}

type streamAmount struct {
	octets int
	passed int // of them, those of messages of the reserve, at most
	markAt int // octets of its low-water mark + 1; 0: it has none
}

func (y *streamAmounts) add(id wire.StreamID, octets int) { y.amounts.Use(uint16(id)).octets += octets }

// octetsOf returns what a stream has.
func (y *streamAmounts) octetsOf(id wire.StreamID) int {
	if x := y.amounts.At(uint16(id)); x != nil {
		return x.octets
	}
	return 0
}

// addPassed counts octets of add as those of the reserve.
func (y *streamAmounts) addPassed(id wire.StreamID, octets int) {
	y.amounts.Use(uint16(id)).passed += octets
	y.passed += octets
}

// remove counts octets no more, and notes when that leads to the mark.
func (y *streamAmounts) remove(id wire.StreamID, octets int) {
	x := y.amounts.Use(uint16(id))
	wasAbove := x.octets >= x.markAt
	x.octets -= octets
	if x.passed > x.octets {
		y.passed -= x.passed - x.octets
		x.passed = x.octets
	}
	if x.markAt > 0 && wasAbove && x.octets < x.markAt {
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
	return s.trackStreams().octetsOf(id)
}

// reserveShare is the part of the send buffer that a scheduler adds to it: see HasReserve.
const reserveShare = 8

// HasRoom reports whether Enqueue has room for a message of so many octets, of any stream.
func (s *Sender) HasRoom(octets int) bool { return octets <= s.freeRoom() }

// freeRoom is how many octets HasRoom has room for.
func (s *Sender) freeRoom() int {
	free := s.SendBuffer() - s.queue.bufferedOctets
	if y := s.queue.streams; y != nil && y.amounts != nil {
		free += y.amounts.passed
	}
	return free
}

// HasReserve reports whether Enqueue has room for a message of Message.Reserve: with it the stream
// has buffered no more than half of what is left of the reserve. So a few streams that send little
// never wait for those that fill the buffer, and many cannot fill the reserve either. It is there
// under a scheduler only: without one all that came before is sent before.
func (s *Sender) HasReserve(id wire.StreamID, octets int) bool {
	y := s.queue.streams
	if y == nil || y.scheduler == nil {
		return false
	}
	left := s.SendBuffer()/reserveShare - y.amounts.passed
	return 2*(y.amounts.octetsOf(id)+octets) <= left
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
