package sched

import "container/heap"

// FairCapacity gives each active stream the same octets (RFC 8260 section 3.5). It has no values.
func FairCapacity() Scheduler { return newFair(true) }

func newFair(equal bool) *fair {
	return &fair{equal: equal, weights: make(map[uint16]uint16), streams: make(map[uint16]*fairStream)}
}

// WeightedFairQueueing shares the capacity by weights (RFC 8260 section 3.6). The value of a stream
// is its weight: a stream of n times the weight gets n times the octets. 0, the default, counts
// as 1.
func WeightedFairQueueing() Scheduler { return newFair(false) }

// fair is start-time fair queueing. The virtual time of a stream is the octets that it has sent by
// its weight. The stream with the least goes next. One that becomes active begins at the time of
// those that are: a silence saves up nothing.
type fair struct {
	equal   bool                   // all weights are 1
	weights map[uint16]uint16      // that are not 1
	streams map[uint16]*fairStream // that are active, or were
	active  fairHeap
	now     uint64 // the virtual time of the stream that sent last, before it did
	order   uint64 // counts what settles a tie
	round   uint64 // counts the times that all streams were silent: virtual times of earlier rounds are 0
}

type fairStream struct {
	id     uint16
	weight uint16
	index  int    // in the heap, -1 while it is not active
	round  uint64 // that time is of
	time   uint64 // virtual
	order  uint64 // of streams at one time, the lowest has waited longest
}

// timePerOctet is the virtual time of an octet at weight 1. A weight of 65,535 still counts it.
const timePerOctet = 1 << 16

// stream returns a stream, and makes it if it was not in use.
func (f *fair) stream(id uint16) *fairStream {
	s := f.streams[id]
	if s == nil {
		s = &fairStream{id: id, weight: max(f.weights[id], 1), index: -1}
		f.streams[id] = s
	}
	if s.round != f.round {
		s.round, s.time = f.round, 0
	}
	return s
}

// keptStreams is how many streams are kept while all are silent.
const keptStreams = 64

func (f *fair) Activate(id uint16) {
	s := f.stream(id)
	s.time = max(s.time, f.now)
	f.order++
	s.order = f.order
	heap.Push(&f.active, s)
}

// Deactivate keeps a stream that is ahead of the others. It would gain by stopping for a moment
// otherwise.
func (f *fair) Deactivate(id uint16) {
	s := f.stream(id)
	heap.Remove(&f.active, s.index)
	if len(f.active) > 0 {
		return
	}
	f.round++ // nobody is ahead of others
	if f.now = 0; len(f.streams) > keptStreams {
		clear(f.streams)
	}
}

func (f *fair) Next(bool) (uint16, bool) { return f.active[0].id, true }

func (f *fair) Sent(id uint16, octets int, _ bool) {
	s := f.stream(id)
	f.now = max(f.now, s.time)
	s.time += uint64(octets) * timePerOctet / uint64(s.weight)
	f.order++
	if s.order = f.order; s.index >= 0 {
		heap.Fix(&f.active, s.index)
	}
}

func (f *fair) SetValue(id, value uint16) {
	if f.equal {
		return
	}
	if f.weights[id] = value; value <= 1 {
		delete(f.weights, id)
	}
	if s := f.streams[id]; s != nil {
		s.weight = max(value, 1)
	}
}

// fairHeap has the stream with the least virtual time first.
type fairHeap []*fairStream

func (h fairHeap) Len() int { return len(h) }
func (h fairHeap) Less(i, j int) bool {
	return h[i].time < h[j].time || h[i].time == h[j].time && h[i].order < h[j].order
}
func (h fairHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *fairHeap) Push(x any) {
	s := x.(*fairStream)
	s.index = len(*h)
	*h = append(*h, s)
}
func (h *fairHeap) Pop() any {
	last := len(*h) - 1
	s := (*h)[last]
	s.index, (*h)[last] = -1, nil
	*h = (*h)[:last]
	return s
}
