package sctp

import (
	"sync"
	"sync/atomic"
	"time"
)

// deadline is a point in time that blocked calls wait for beside their own wake-up, as net.Conn
// deadlines work: setting it affects calls that are already blocked.
type deadline struct {
	ready *Signal       // that all who wait under it wait for, and nobody else: it is set when the deadline passes; nil: there is none such
	count atomic.Uint32 // of the times that it has passed, or was moved when it had: odd while it has passed
	shut  bool          // of writes of a Stream that was closed; the owner of the association alone has it
	mu    sync.Mutex
	timer *time.Timer   // guarded by mu
	gone  chan struct{} // guarded by mu: closed when the deadline passes; nil: nobody has asked for it since it last did
	t     *Transport    // whose reader may be one of those calls
}

// set moves the deadline; the zero time means none.
func (d *deadline) set(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop() // if its function runs already, it finds that the timer is not the deadline's any more
		d.timer = nil
	}
	if d.expired() {
		d.count.Add(1)
	}
	if at.IsZero() {
		return
	}
	wait := time.Until(at)
	if wait <= 0 {
		d.pass()
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(wait, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.timer == timer {
			d.timer = nil
			d.pass()
		}
	})
	d.timer = timer
}

// pass tells who waits that the deadline has passed. Called with mu held.
func (d *deadline) pass() {
	d.count.Add(1)
	if d.gone != nil {
		wakeAt(&d.gone)
		d.t.rouse()
	}
	if d.ready != nil {
		d.ready.Set()
	}
}

// expired says whether the deadline has passed.
func (d *deadline) expired() bool { return d.count.Load()%2 != 0 }

// passed returns a channel that is closed when the deadline has passed.
func (d *deadline) passed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return when(d.expired(), &d.gone)
}

// wait blocks until a signal is set, or the deadline passes, which it reports. What is waited for, and the end of it, sets the
// signal: the caller looks for it before it waits, or whether the signal is set, and again whatever this says.
//
// Where the deadline sets the signal too, this is a receive from one channel, which costs far less than a select of several. No wake-up is lost: all who wait
// for such a signal wait for the same, so whoever gets the token sees all that it may stand for: something ready, the deadline that has passed, since count
// is not what it was, and the end. Who then leaves sets the signal again if any of these is left for others, and who finds none of them waits on
// with everybody else. Each is there to be seen before the signal is set for it; so a token that was there already, and
// stands for that too, is taken by one who sees it. A deadline that has passed for a moment is missed only by a call that was not blocked yet.
func (d *deadline) wait(s *Signal) (late bool) {
	if s != d.ready {
		return !s.Wait(nil, d.passed())
	}
	n := d.count.Load()
	if n%2 == 0 {
		s.Wait(nil, nil)
	}
	return n%2 != 0 || d.count.Load() != n
}

// undo takes the token back that a signal has though there is nothing left for it to stand for: the next call would look in vain, twice. Where the deadline has
// ever passed it may stand for that to somebody who has yet to see it, and is left.
func (d *deadline) undo(s *Signal) {
	select {
	case <-s.c:
		if d.count.Load() != 0 {
			s.leave()
		}
	default:
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c: // a nil channel never is ready
		return true
	default:
		return false
	}
}
