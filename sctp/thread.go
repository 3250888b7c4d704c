package sctp

import (
	"runtime"
	"sync/atomic"
)

// thread keeps a goroutine on the operating system thread that it is on. A receive goroutine in bulk spends its time in system
// calls that take long enough for the runtime to give its place to others meanwhile; then it goes on on some other thread, which
// the system wakes on another processor, away from the caches that hold what it works on.
//
// But goroutines that are woken cannot go on on a thread that is kept: another one has to be woken for them. So it is kept
// only while few are, which is the pace's judgement.
type thread struct{ held bool }

// held is how many threads are kept: one processor at least is left to all other goroutines.
var held atomic.Int32

// keep stays on the thread, if that is wanted, and possible.
func (t *thread) keep(on bool) {
	switch {
	case !on:
		t.release()
	case !t.held && held.Add(1) < int32(runtime.GOMAXPROCS(0)):
		t.held = true
		runtime.LockOSThread()
	case !t.held:
		held.Add(-1)
	}
}

func (t *thread) release() {
	if t.held {
		t.held = false
		held.Add(-1)
		runtime.UnlockOSThread()
	}
}
