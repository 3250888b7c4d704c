package compat

import (
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// callWaits has calls in one direction of an association, or those of Accept, end when their time
// is over: each of them has a timeout of its own (SO_RCVTIMEO), and all of them one deadline. It
// sets the deadline of the association to the earliest. That is news too: who finds its time not
// over looks again.
type callWaits struct {
	mu              sync.Mutex
	setConnDeadline func(time.Time) error // of the association; nil while there is none
	deadline        time.Time             // guarded by mu
	timeout         time.Duration         // guarded by mu
	nonblock        bool                  // guarded by mu
	lookAgain       bool                  // guarded by mu: all that wait look again
	callEnds        []*time.Time          // guarded by mu: of the calls that wait with a timeout
	hasTimeout      atomic.Bool           // there is a timeout: changed with mu held
	armedDeadline   time.Time             // guarded by mu: what the association has
}

// pastTime is a deadline that has passed.
var pastTime = time.Unix(1, 0)

// beginCall is the start of a call that may wait. It returns when its timeout ends it, which is nil
// without one.
func (w *callWaits) beginCall() *time.Time {
	if !w.hasTimeout.Load() {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timeout == 0 {
		return nil
	}
	end := time.Now().Add(w.timeout)
	w.callEnds = append(w.callEnds, &end)
	w.armDeadline()
	return &end
}

// endCall is its end.
func (w *callWaits) endCall(end *time.Time) {
	if end == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.callEnds = slices.DeleteFunc(w.callEnds, func(e *time.Time) bool { return e == end })
	w.armDeadline()
}

// checkExpired is asked by a call that the deadline of the association has ended; it returns nil if
// that was another's, and the call goes on.
func (w *callWaits) checkExpired(end *time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch now := time.Now(); {
	case !w.deadline.IsZero() && !now.Before(w.deadline):
		return os.ErrDeadlineExceeded
	case w.nonblock, end != nil && !now.Before(*end):
		return syscall.EAGAIN
	}
	return nil
}

// armDeadline sets the deadline of the association. Called with mu held.
func (w *callWaits) armDeadline() {
	if w.setConnDeadline == nil {
		return
	}
	at := w.deadline
	if w.nonblock || w.lookAgain {
		at = pastTime
	}
	for _, e := range w.callEnds {
		if at.IsZero() || e.Before(at) {
			at = *e
		}
	}
	if at != w.armedDeadline {
		w.armedDeadline = at
		_ = w.setConnDeadline(at) // it cannot fail
	}
}

// updateWaits changes what ends calls, those under way too.
func (w *callWaits) updateWaits(f func(w *callWaits)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(w)
	w.hasTimeout.Store(w.timeout != 0)
	w.armDeadline()
}

func (w *callWaits) setLookAgain(news bool) { w.updateWaits(func(w *callWaits) { w.lookAgain = news }) }
