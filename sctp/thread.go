package sctp

import (
	"runtime"
	"sync/atomic"
)

// thread keeps a goroutine on the operating system thread that it is on. A receive goroutine spends its time in system
// calls that take long enough for the runtime to give its place to others meanwhile; then it goes on on some other thread, which
// the system wakes on another processor, away from the caches that hold what it works on.
type thread struct{ held bool }

// held counts threads: more than there are processors would gain nothing.
var held atomic.Int32

func (t *thread) hold() {
	if t.held {
		return
	}
	if held.Add(1) > int32(runtime.NumCPU()) {
		held.Add(-1)
		return
	}
	t.held = true
	runtime.LockOSThread()
}

func (t *thread) release() {
	if t.held {
		t.held = false
		held.Add(-1)
		runtime.UnlockOSThread()
	}
}
