package sctp

import (
	"sync"
	"time"
)

// deadline is a point in time that blocked calls wait for beside their own wake-up, as net.Conn
// deadlines work: setting it affects calls that are already blocked.
type deadline struct {
	t     *Transport // whose reader may be one of those calls
	mu    sync.Mutex
	timer *time.Timer
	gone  chan struct{} // closed once the deadline has passed
}

// set moves the deadline; the zero time means none.
func (d *deadline) set(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.gone // the timer's function is about to close it, or has
	}
	d.timer = nil
	passed := isClosed(d.gone)
	if d.gone == nil || passed {
		d.gone = make(chan struct{})
	}
	if at.IsZero() {
		return
	}
	wait := time.Until(at)
	if wait <= 0 {
		close(d.gone)
		d.t.rouse()
		return
	}
	gone := d.gone
	d.timer = time.AfterFunc(wait, func() {
		close(gone)
		d.t.rouse()
	})
}

// passed returns a channel that is closed when the deadline has passed.
func (d *deadline) passed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone == nil {
		d.gone = make(chan struct{})
	}
	return d.gone
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c: // a nil channel never is ready
		return true
	default:
		return false
	}
}
