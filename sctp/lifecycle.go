package sctp

import "sync"

// lifecycle is how far an association has come, for goroutines that wait for that. Channels are
// made on demand: of thousands of associations hardly any is waited for.
type lifecycle struct {
	mu          sync.Mutex
	upAnnounced bool          // its listener, or its socket, knows that it is up
	isUp        bool          // it has been established
	isEnded     bool          // it has ended
	begunCh     chan struct{} // see begunChan
	endedCh     chan struct{} // see endedChan
}

// closedChan is a channel that is closed.
var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// chanWhen returns a channel that is closed once something is so, which is kept at c until then.
func chanWhen(so bool, c *chan struct{}) <-chan struct{} {
	switch {
	case so:
		return closedChan
	case *c == nil:
		*c = make(chan struct{})
	}
	return *c
}

// closeChan closes the channel at c, if there is one.
func closeChan(c *chan struct{}) {
	if *c != nil {
		close(*c)
		*c = nil
	}
}

// begunChan is closed when the association is established, or has failed to be: see wasUp.
func (l *lifecycle) begunChan() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return chanWhen(l.isUp || l.isEnded, &l.begunCh)
}

// endedChan is closed when the association has ended.
func (l *lifecycle) endedChan() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return chanWhen(l.isEnded, &l.endedCh)
}

// wasUp says whether the association has ever been established.
func (l *lifecycle) wasUp() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isUp
}

// hasEnded says whether the association has ended.
func (l *lifecycle) hasEnded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isEnded
}

// claimAnnouncement is true once: its caller announces that the association is up.
func (l *lifecycle) claimAnnouncement() (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first, l.upAnnounced = !l.upAnnounced, true
	return first
}

// markUp says that the association is established, markEnded that it has ended.
func (l *lifecycle) markUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isUp = true
	closeChan(&l.begunCh)
}

func (l *lifecycle) markEnded() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isEnded = true
	closeChan(&l.begunCh)
	closeChan(&l.endedCh)
}
