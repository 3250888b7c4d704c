package sctp

import "sync"

// life is how far an association has come, for those who wait for that. A channel is made for who asks: of thousands of associations
// hardly any is waited for.
type life struct {
	mu      sync.Mutex
	told    bool          // its listener, or its socket, has been told that it is up
	isUp    bool          // it has been established
	isOver  bool          // it has ended
	settled chan struct{} // see begun
	gone    chan struct{} // see over
}

// closed is a channel that is closed.
var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// when returns a channel that is closed once something is so, which is kept at c until then.
func when(so bool, c *chan struct{}) <-chan struct{} {
	switch {
	case so:
		return closed
	case *c == nil:
		*c = make(chan struct{})
	}
	return *c
}

// wakeAt closes the channel at c, if somebody has asked for it.
func wakeAt(c *chan struct{}) {
	if *c != nil {
		close(*c)
		*c = nil
	}
}

// begun is closed when the association is established, or has failed to be: see wasUp.
func (l *life) begun() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return when(l.isUp || l.isOver, &l.settled)
}

// over is closed when the association has ended.
func (l *life) over() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return when(l.isOver, &l.gone)
}

// wasUp says whether the association has ever been established.
func (l *life) wasUp() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isUp
}

// hasEnded says whether the association has ended.
func (l *life) hasEnded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isOver
}

// tell is true once: for who is to tell that the association is up.
func (l *life) tell() (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first, l.told = !l.told, true
	return first
}

// begin says that the association is established, and end that it has ended.
func (l *life) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isUp = true
	wakeAt(&l.settled)
}

func (l *life) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isOver = true
	wakeAt(&l.settled)
	wakeAt(&l.gone)
}
