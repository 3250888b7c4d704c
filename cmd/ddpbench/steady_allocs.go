package main

import (
	"runtime"
	"time"
)

// steadyAllocs counts what this process allocates on the heap in the second half of a run, when
// everything has found its size.
type steadyAllocs struct {
	hasBegun       bool
	mallocsBefore  uint64 // when it began
	messagesBefore uint64 // messages by then
}

// checkHalf is called often. n messages are done.
func (s *steadyAllocs) checkHalf(e *engine, now time.Time, n uint64) {
	half := n >= e.iters*uint64(e.qps)/2
	if e.duration > 0 {
		half = now.Sub(e.startedAt) >= e.duration/2
	}
	if half && !s.hasBegun {
		*s = steadyAllocs{hasBegun: true, mallocsBefore: mallocCount(), messagesBefore: n}
	}
}

// perMessage returns nil if there were none to speak of. It is called when n messages are done.
func (s *steadyAllocs) perMessage(n uint64) *float64 {
	if !s.hasBegun || n <= s.messagesBefore {
		return nil
	}
	per := float64(mallocCount()-s.mallocsBefore) / float64(n-s.messagesBefore)
	return &per
}

func mallocCount() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
