package sctp

import (
	"runtime"
	"sync/atomic"
)

// thread keeps a goroutine on the operating system thread that it is on. A receive goroutine spends its time in system
// calls that take long enough for the runtime to give its place to others meanwhile; then it goes on on some other thread, which
// the system wakes on another processor, away from the caches that hold what it works on.
//
// But goroutines that are woken cannot go on on a thread that is kept: another one has to be woken for them. So it is kept
// only while few are.
type thread struct {
	held  bool
	calm  int    // batches without a wake-up, less wakeCost for each with some; from 0 to calmMost
	wakes uint64 // so far
}

const (
	wakeCost   = 32
	calmEnough = 32 // to keep a thread, until it is 0
	calmMost   = 64
)

// after notes how many wake-ups there have been so far, once a batch.
func (t *thread) after(wakes uint64) {
	if wakes == t.wakes {
		t.calm = min(t.calm+1, calmMost)
		return
	}
	t.wakes = wakes
	t.calm = max(t.calm-wakeCost, 0)
}

var (
	held  atomic.Int32  // threads: one processor at least is left to all other goroutines
	wakes atomic.Uint64 // times that a Signal was set, of whatever Transport
)

func (t *thread) hold() {
	if t.held {
		return
	}
	if held.Add(1) >= int32(runtime.GOMAXPROCS(0)) {
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
