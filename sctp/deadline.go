package sctp

import (
	"sync"
	"sync/atomic"
	"time"
)

// deadline is a point in time that blocked calls wait for beside their own wake-up. It works as
// net.Conn deadlines do: setting it affects calls that are already blocked.
type deadline struct {
	// set when the deadline passes; all calls under the deadline, and no others, wait for it; nil:
	// none
	signal       *signal
	passCount    atomic.Uint32 // how often it has passed, or was moved after that: odd while it has passed
	streamClosed bool          // of writes of a Stream that was closed; the owner of the association alone has it
	mu           sync.Mutex
	timer        *time.Timer   // guarded by mu
	expiredCh    chan struct{} // guarded by mu: closed when the deadline passes; nil: not asked for since
	t            *Transport    // its reader may be one of those calls
}

// set moves the deadline; the zero time means none.
func (d *deadline) set(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop() // if its function runs already, it finds that the timer is not the deadline's any more
		d.timer = nil
	}
	if d.hasExpired() {
		d.passCount.Add(1)
	}
	if at.IsZero() {
		return
	}
	wait := time.Until(at)
	if wait <= 0 {
		d.markExpired()
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(wait, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.timer == timer {
			d.timer = nil
			d.markExpired()
		}
	})
	d.timer = timer
}

// markExpired wakes the calls that wait when the deadline has passed. Called with mu held.
func (d *deadline) markExpired() {
	d.passCount.Add(1)
	if d.expiredCh != nil {
		closeChan(&d.expiredCh)
		d.t.wakeLinkReader()
	}
	if d.signal != nil {
		d.signal.Set()
	}
}

// hasExpired says whether the deadline has passed.
func (d *deadline) hasExpired() bool { return d.passCount.Load()%2 != 0 }

// expiredChan returns a channel that is closed when the deadline has passed.
func (d *deadline) expiredChan() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return chanWhen(d.hasExpired(), &d.expiredCh)
}

// wait blocks until a signal is set, or the deadline passes, which it reports. The event that is
// waited for, and its end, set the signal. The caller looks for it, or whether the signal is set,
// before it waits. It looks again whatever wait reports.
//
// If the deadline sets the signal too, this is a receive from one channel, which costs far less
// than a select. No wake-up is lost, as all callers of one signal wait for the same. A caller that
// gets the token sees all that it may stand for. That is something ready, a passed deadline
// (passCount has changed), or the end. A caller that then leaves sets the signal again if any of
// these is left for others. A caller that finds none waits on with the others. Each event is
// visible before the signal is set for it. So a token that was there already, and stands for it
// too, is taken by a caller that sees it. A deadline that has passed only for a moment is missed
// only by a call that was not blocked yet.
func (d *deadline) wait(s *signal) (late bool) {
	if s != d.signal {
		return !s.Wait(nil, d.expiredChan())
	}
	n := d.passCount.Load()
	if n%2 == 0 {
		s.Wait(nil, nil)
	}
	return n%2 != 0 || d.passCount.Load() != n
}

// clearSignal takes back a token that stands for nothing any more: the next call would look twice
// for nothing. If the deadline has ever passed, the token is left, as it may stand for that to
// another caller.
func (d *deadline) clearSignal(s *signal) {
	select {
	case <-s.tokenCh:
		if d.passCount.Load() != 0 {
			s.passOn()
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
