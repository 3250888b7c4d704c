package compat

import (
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// callWaits ends calls in one direction of an association, or those of Accept, when their time is
// over. Each call may have a timeout of its own (SO_RCVTIMEO), and all calls share one deadline.
// The association gets the earliest of them as its deadline. That deadline wakes every call; a call
// whose time is not over waits again.
type callWaits struct {
	mu              sync.Mutex
	setConnDeadline func(time.Time) error // of the association; nil while there is none
	deadline        time.Time             // guarded by mu
	timeout         time.Duration         // guarded by mu
	nonblock        bool                  // guarded by mu
	lookAgain       bool                  // guarded by mu: all that wait look again
	callEnds        []*time.Time          // guarded by mu: when calls that wait with a timeout end
	hasTimeout      atomic.Bool           // there is a timeout: changed with mu held
	armedDeadline   time.Time             // guarded by mu: the deadline that the association has
}

// ownTimeout returns the timeout of each call, SO_RCVTIMEO or SO_SNDTIMEO.
func (w *callWaits) ownTimeout() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.timeout
}

// inheritTimeout takes the timeout of a listener's calls. As on Linux, O_NONBLOCK is not inherited.
func (w *callWaits) inheritTimeout(listener *callWaits) {
	timeout := listener.ownTimeout()
	w.updateWaits(func(w *callWaits) { w.timeout = timeout })
}

// pastTime is a deadline that has passed.
var pastTime = time.Unix(1, 0)

// beginCall starts a call that may wait. It returns when the call's timeout ends it, or nil without
// one.
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

// endCall ends what beginCall started.
func (w *callWaits) endCall(end *time.Time) {
	if end == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.callEnds = slices.DeleteFunc(w.callEnds, func(e *time.Time) bool { return e == end })
	w.armDeadline()
}

// checkExpired reports whether the time of a call is over, after the deadline of the association
// has ended its wait. It returns nil if the deadline was for another call, and this one goes on.
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

// updateWaits changes what ends calls. Calls under way notice it too.
func (w *callWaits) updateWaits(f func(w *callWaits)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(w)
	w.hasTimeout.Store(w.timeout != 0)
	w.armDeadline()
}

func (w *callWaits) setLookAgain(news bool) { w.updateWaits(func(w *callWaits) { w.lookAgain = news }) }
