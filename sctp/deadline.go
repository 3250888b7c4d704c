package sctp

import (
	"sync"
	"sync/atomic"
	"time"
)

// deadline is a point in time that blocked calls wait for beside their own wake-up, as net.Conn
// deadlines work: setting it affects calls that are already blocked.
type deadline struct {
	signal       *Signal       // that all who wait under it wait for, and nobody else: it is set when the deadline passes; nil: there is none such
	passCount    atomic.Uint32 // of the times that it has passed, or was moved when it had: odd while it has passed
	streamClosed bool          // of writes of a Stream that was closed; the owner of the association alone has it
	mu           sync.Mutex
	timer        *time.Timer   // guarded by mu
	expiredCh    chan struct{} // guarded by mu: closed when the deadline passes; nil: nobody has asked for it since it last did
	t            *Transport    // whose reader may be one of those calls
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

// markExpired tells who waits that the deadline has passed. Called with mu held.
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

// wait blocks until a signal is set, or the deadline passes, which it reports. What is waited for,
// and the end of it, sets the signal: the caller looks for it before it waits, or whether the
// signal is set, and again whatever this says.
//
// Where the deadline sets the signal too, this is a receive from one channel, which costs far less
// than a select of several. No wake-up is lost: all who wait for such a signal wait for the same,
// so whoever gets the token sees all that it may stand for: something ready, the deadline that has
// passed, since count is not what it was, and the end. Who then leaves sets the signal again if any
// of these is left for others, and who finds none of them waits on with everybody else. Each is
// there to be seen before the signal is set for it; so a token that was there already, and stands
// for that too, is taken by one who sees it. A deadline that has passed for a moment is missed only
// by a call that was not blocked yet.
func (d *deadline) wait(s *Signal) (late bool) {
	if s != d.signal {
		return !s.Wait(nil, d.expiredChan())
	}
	n := d.passCount.Load()
	if n%2 == 0 {
		s.Wait(nil, nil)
	}
	return n%2 != 0 || d.passCount.Load() != n
}

// clearSignal takes the token back that a signal has though there is nothing left for it to stand
// for: the next call would look in vain, twice. Where the deadline has ever passed it may stand for
// that to somebody who has yet to see it, and is left.
func (d *deadline) clearSignal(s *Signal) {
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
