package main

import (
	"runtime"
	"time"
)

// steady counts what this process allocates on the heap in the second half of a run, when everything
// has found its size.
type steady struct {
	begun   bool
	mallocs uint64 // when it began
	from    uint64 // messages by then
}

// look is called often. n messages are done.
func (s *steady) look(e *engine, now time.Time, n uint64) {
	half := n >= e.iters*uint64(e.qps)/2
	if e.duration > 0 {
		half = now.Sub(e.start) >= e.duration/2
	}
	if half && !s.begun {
		*s = steady{begun: true, mallocs: mallocs(), from: n}
	}
}

// perMessage returns nil if there were none to speak of. It is called when n messages are done.
func (s *steady) perMessage(n uint64) *float64 {
	if !s.begun || n <= s.from {
		return nil
	}
	per := float64(mallocs()-s.mallocs) / float64(n-s.from)
	return &per
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
