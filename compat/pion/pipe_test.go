package sctp_test

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// pipeConn is one end of two connections in memory that keep packets apart, as DTLS does.
type pipeConn struct {
	in, out chan []byte
	peer    *pipeConn

	mu        sync.Mutex
	closed    chan struct{} // closed by Close
	closeOnce sync.Once
	blocked   bool                // guarded by mu: packets wait, and Write with them
	freed     chan struct{}       // guarded by mu: closed when they wait no more
	deadline  [2]time.Time        // guarded by mu: of Read, of Write
	changed   [2]chan struct{}    // guarded by mu: closed when it is another
	lose      func(p []byte) bool // guarded by mu
}

func newPipe() (a, b *pipeConn) {
	x, y := make(chan []byte, 4096), make(chan []byte, 4096)
	a, b = &pipeConn{in: x, out: y, closed: make(chan struct{})}, &pipeConn{in: y, out: x, closed: make(chan struct{})}
	a.peer, b.peer = b, a
	for _, c := range []*pipeConn{a, b} {
		c.changed[0], c.changed[1] = make(chan struct{}), make(chan struct{})
	}
	return a, b
}

// wait returns when one of these is so: something has happened, the deadline of kind i, the end.
func (c *pipeConn) wait(i int, happened <-chan struct{}) error {
	for {
		c.mu.Lock()
		at, changed := c.deadline[i], c.changed[i]
		c.mu.Unlock()
		var late <-chan time.Time
		if !at.IsZero() {
			t := time.NewTimer(time.Until(at))
			defer t.Stop()
			late = t.C
		}
		select {
		case <-happened:
			return nil
		case <-late:
			return os.ErrDeadlineExceeded
		case <-changed:
		case <-c.closed:
			return net.ErrClosed
		}
	}
}

func (c *pipeConn) Read(p []byte) (int, error) {
	for {
		c.mu.Lock()
		at, changed := c.deadline[0], c.changed[0]
		c.mu.Unlock()
		var late <-chan time.Time
		if !at.IsZero() {
			t := time.NewTimer(time.Until(at))
			defer t.Stop()
			late = t.C
		}
		select {
		case b := <-c.in:
			return copy(p, b), nil
		case <-late:
			return 0, os.ErrDeadlineExceeded
		case <-changed:
		case <-c.closed:
			return 0, net.ErrClosed
		case <-c.peer.closed:
			select {
			case b := <-c.in:
				return copy(p, b), nil
			default:
				return 0, io.EOF
			}
		}
	}
}

func (c *pipeConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	freed, lose := c.freed, c.lose
	c.mu.Unlock()
	if freed != nil {
		if err := c.wait(1, freed); err != nil {
			return 0, err
		}
	}
	select {
	case <-c.closed:
		return 0, net.ErrClosed
	case <-c.peer.closed:
		return 0, io.ErrClosedPipe
	default:
	}
	if lose == nil || !lose(p) {
		select {
		case c.out <- append([]byte(nil), p...):
		default: // lost
		}
	}
	return len(p), nil
}

// block makes Write wait, or go on.
func (c *pipeConn) block(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if on {
		c.freed = make(chan struct{})
	} else {
		close(c.freed)
		c.freed = nil
	}
}

// loseSome says which packets do not arrive.
func (c *pipeConn) loseSome(lose func(p []byte) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lose = lose
}

func (c *pipeConn) Close() error {
	c.closeOnce.Do(func() { close(c.closed) })
	return nil
}

func (c *pipeConn) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

func (c *pipeConn) setDeadline(t time.Time, kinds ...int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range kinds {
		c.deadline[i] = t
		close(c.changed[i])
		c.changed[i] = make(chan struct{})
	}
	return nil
}

func (c *pipeConn) SetDeadline(t time.Time) error      { return c.setDeadline(t, 0, 1) }
func (c *pipeConn) SetReadDeadline(t time.Time) error  { return c.setDeadline(t, 0) }
func (c *pipeConn) SetWriteDeadline(t time.Time) error { return c.setDeadline(t, 1) }
func (c *pipeConn) LocalAddr() net.Addr                { return &net.UDPAddr{} }
func (c *pipeConn) RemoteAddr() net.Addr               { return &net.UDPAddr{} }
