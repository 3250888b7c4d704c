package sctp

import (
	"runtime"
	"sync/atomic"
)

// threadPin keeps a goroutine on its operating system thread. A receive goroutine in bulk spends
// its time in system calls. These take so long that the runtime gives its place to others. It then
// goes on on some other thread, which the system wakes on another processor. There the caches lack
// what it works on.
//
// But goroutines that are woken cannot run on a pinned thread: another one has to be woken for
// them. So it is pinned only while few are woken, which the poll policy decides.
type threadPin struct{ isPinned bool }

// pinnedThreads is how many threads are pinned. At least one processor is left to all other
// goroutines.
var pinnedThreads atomic.Int32

// setPinned pins the thread, if that is wanted and possible, and else unpins it.
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
