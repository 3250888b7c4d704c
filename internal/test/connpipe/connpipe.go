// Package connpipe joins two net.Conns in memory that keep packets apart, as DTLS does: for tests
// of what runs over any connection. Like DTLS, they lose packets for which nobody has room.
package connpipe

import (
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// Conn is one end.
type Conn struct {
	peer *Conn

	mu      sync.Mutex
	changed sync.Cond
	inbox   [][]byte // guarded by mu: packets to read
	closed  bool     // guarded by mu
	ended   bool     // guarded by mu: the peer is closed
	blocked bool     // guarded by mu: Write does not return
	readErr error    // guarded by mu: what the next Reads return, before any packet
	// guarded by mu: what becomes of a packet that is written; nil: it arrives
	filter func(p []byte) (arrives bool)

	readDeadline, writeDeadline deadline
}

// room is how many packets wait to be read before more are lost.
const room = 1024

// New returns both ends.
func New() (a, b *Conn) {
	a, b = new(Conn), new(Conn)
	a.peer, b.peer = b, a
	for _, c := range []*Conn{a, b} {
		c.changed.L = &c.mu
		c.readDeadline.c, c.writeDeadline.c = c, c
	}
	return a, b
}

// deadline is that of Read or of Write. The lock of its Conn guards it.
type deadline struct {
	c       *Conn
	timer   *time.Timer
	expired bool
}

func (d *deadline) set(t time.Time) error {
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	if d.c.closed {
		return net.ErrClosed
	}
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.expired = false
	if wait := time.Until(t); !t.IsZero() && wait <= 0 {
		d.expired = true
	} else if !t.IsZero() {
		var own *time.Timer
		own = time.AfterFunc(wait, func() {
			d.c.mu.Lock()
			defer d.c.mu.Unlock()
			if d.timer == own {
				d.expired = true
				d.c.changed.Broadcast()
			}
		})
		d.timer = own
	}
	d.c.changed.Broadcast()
	return nil
}

// Read reads a packet. One that p does not hold is lost, and the error is io.ErrShortBuffer.
func (c *Conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case c.closed:
			return 0, net.ErrClosed
		case c.readDeadline.expired:
			return 0, os.ErrDeadlineExceeded
		case c.readErr != nil:
			return 0, c.readErr
		case len(c.inbox) > 0:
			b := c.inbox[0]
			c.inbox = slices.Delete(c.inbox, 0, 1)
			if n := copy(p, b); n < len(b) {
				return n, io.ErrShortBuffer
			}
			return len(b), nil
		case c.ended:
			return 0, io.EOF
		}
		c.changed.Wait()
	}
}

// Write sends a packet.
func (c *Conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	for c.blocked && !c.closed && !c.writeDeadline.expired {
		c.changed.Wait()
	}
	closed, expired, filter := c.closed, c.writeDeadline.expired, c.filter
	c.mu.Unlock()
	switch {
	case closed:
		return 0, io.ErrClosedPipe
	case expired:
		return 0, os.ErrDeadlineExceeded
	}
	if filter == nil || filter(p) {
		c.peer.Inject(p)
	}
	return len(p), nil
}

// Inject has a packet arrive that the peer has not sent.
func (c *Conn) Inject(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed && len(c.inbox) < room {
		c.inbox = append(c.inbox, slices.Clone(p))
		c.changed.Broadcast()
	}
}

// Block makes Write block, or go on.
func (c *Conn) Block(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blocked = on
	c.changed.Broadcast()
}

// FailReads makes Read return an error, nil for no more.
func (c *Conn) FailReads(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readErr = err
	c.changed.Broadcast()
}

// Filter says what becomes of each packet that is written here.
func (c *Conn) Filter(f func(p []byte) (arrives bool)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.filter = f
}

// Close ends both ends: the peer reads what has arrived, and then io.EOF.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return net.ErrClosed
	}
	c.closed = true
	for _, d := range []*deadline{&c.readDeadline, &c.writeDeadline} {
		if d.timer != nil {
			d.timer.Stop()
		}
	}
	c.changed.Broadcast()
	c.mu.Unlock()
	c.peer.mu.Lock()
	defer c.peer.mu.Unlock()
	c.peer.ended = true
	c.peer.changed.Broadcast()
	return nil
}

// IsClosed says whether Close was called.
func (c *Conn) IsClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

type addr struct{}

func (addr) Network() string { return "pipe" }
func (addr) String() string  { return "pipe" }

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return addr{} }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return addr{} }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.readDeadline.set(t); err != nil {
		return err
	}
	return c.writeDeadline.set(t)
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.readDeadline.set(t) }

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.writeDeadline.set(t) }
