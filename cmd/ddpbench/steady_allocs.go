package main

import (
	"runtime"
	"time"
)

// steadyAllocs counts this process's heap allocations in the second half of a run. By then
// everything has reached its size.
type steadyAllocs struct {
	hasBegun       bool
	mallocsBefore  uint64 // when it began
	messagesBefore uint64 // messages by then
}

// checkHalf is called often; n messages are done.
func (s *steadyAllocs) checkHalf(e *engine, now time.Time, n uint64) {
	half := n >= e.iters*uint64(e.qps)/2
	if e.duration > 0 {
		half = now.Sub(e.startedAt) >= e.duration/2
	}
	if half && !s.hasBegun {
		*s = steadyAllocs{hasBegun: true, mallocsBefore: mallocCount(), messagesBefore: n}
	}
}

// perMessage returns the allocations for each message, or nil if there were too few messages. It is
// called when n messages are done.
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
