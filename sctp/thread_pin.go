package sctp

import (
	"runtime"
	"sync/atomic"
)

// threadPin keeps a goroutine on the operating system thread that it is on. A receive goroutine in
// bulk spends its time in system calls that take long enough for the runtime to give its place to
// others meanwhile; then it goes on on some other thread, which the system wakes on another
// processor, away from the caches that hold what it works on.
//
// But goroutines that are woken cannot go on on a thread that is kept: another one has to be woken
// for them. So it is kept only while few are, which is the pace's judgement.
type threadPin struct{ isPinned bool }

// pinnedThreads is how many threads are kept: one processor at least is left to all other
// goroutines.
var pinnedThreads atomic.Int32

// setPinned stays on the thread, if that is wanted, and possible.
func (t *threadPin) setPinned(on bool) {
	switch {
	case !on:
		t.unpinThread()
	case !t.isPinned && pinnedThreads.Add(1) < int32(runtime.GOMAXPROCS(0)):
		t.isPinned = true
		runtime.LockOSThread()
	case !t.isPinned:
		pinnedThreads.Add(-1)
	}
}

func (t *threadPin) unpinThread() {
	if t.isPinned {
		t.isPinned = false
		pinnedThreads.Add(-1)
		runtime.UnlockOSThread()
	}
}
