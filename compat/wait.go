package compat

import (
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// waits has calls in one direction of an association, or those of Accept, end when their time is over: each of them has a timeout of its own (SO_RCVTIMEO), and
// all of them one deadline. It sets the deadline of the association to the earliest. That is news too: who finds its time not over looks again.
type waits struct {
	mu       sync.Mutex
	set      func(time.Time) error // of the association; nil while there is none
	deadline time.Time             // guarded by mu
	timeout  time.Duration         // guarded by mu
	nonblock bool                  // guarded by mu
	news     bool                  // guarded by mu: all that wait look again
	ends     []*time.Time          // guarded by mu: of the calls that wait with a timeout
	timed    atomic.Bool           // there is a timeout: changed with mu held
	armed    time.Time             // guarded by mu: what the association has
}

// atOnce is a deadline that has passed.
var atOnce = time.Unix(1, 0)

// begin is the start of a call that may wait. It returns when its timeout ends it, which is nil without one.
func (w *waits) begin() *time.Time {
	if !w.timed.Load() {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timeout == 0 {
		return nil
	}
	end := time.Now().Add(w.timeout)
	w.ends = append(w.ends, &end)
	w.arm()
	return &end
}

// done is its end.
func (w *waits) done(end *time.Time) {
	if end == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends = slices.DeleteFunc(w.ends, func(e *time.Time) bool { return e == end })
	w.arm()
}

// over is asked by a call that the deadline of the association has ended; it returns nil if that was another's, and the call goes on.
func (w *waits) over(end *time.Time) error {
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

// arm sets the deadline of the association. Called with mu held.
func (w *waits) arm() {
	if w.set == nil {
		return
	}
	at := w.deadline
	if w.nonblock || w.news {
		at = atOnce
	}
	for _, e := range w.ends {
		if at.IsZero() || e.Before(at) {
			at = *e
		}
	}
	if at != w.armed {
		w.armed = at
		_ = w.set(at) // it cannot fail
	}
}

// change changes what ends calls, those under way too.
func (w *waits) change(f func(w *waits)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(w)
	w.timed.Store(w.timeout != 0)
	w.arm()
}

func (w *waits) tell(news bool) { w.change(func(w *waits) { w.news = news }) }
