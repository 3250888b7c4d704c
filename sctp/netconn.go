package sctp

import (
	"context"
	"io"
	"net"
	"os"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// StreamConn is an association as a net.Conn that carries a stream of octets, as TCP does. What is
// written goes out as ordered messages of stream 0, and is read without their boundaries. A program
// made for TCP runs over it: net/http, crypto/tls, gRPC.
//
// It differs from a *net.TCPConn in two ways. There is no CloseWrite, since SCTP has no half-open
// state (RFC 9260 section 1.5.1): the peer's Close ends both directions. And Close waits until the
// peer has all that was written, because the stack ends with the process. It waits for
// [TransportConfig] CloseTimeout at most. A restart of the peer ends the association, as octets of
// before and after it are no one stream.
type StreamConn struct {
	netConn
	s *Stream
}

// MessageConn is an association as a net.Conn that carries messages, as UDP does, but in order and
// without loss. A Write is one message on stream 0. A Read returns one message of any stream. If a
// message is longer than the buffer of Read, or than Config.RecvBuffer, Read returns its first
// octets and ErrTruncated. There is no empty message: Write refuses it by ErrEmptyMessage. Close is
// that of a StreamConn.
type MessageConn struct{ netConn }

var _, _ net.Conn = (*StreamConn)(nil), (*MessageConn)(nil)

// StreamConn returns the association as a stream of octets. From then on stream 0 belongs to it,
// with what was not read of it yet.
func (c *Conn) StreamConn() *StreamConn {
	s := c.Stream(0)
	c.lock()
	c.end.failsOnRestart = true
	c.unlock()
	return &StreamConn{netConn{c, &s.readDeadline, &s.writeDeadline}, s}
}

// MessageConn returns the association as a net.Conn of one message a call. Its deadlines are those
// of c.
func (c *Conn) MessageConn() *MessageConn {
	return &MessageConn{netConn{c, &c.recv.deadline, &c.send.deadline}}
}

// Read reads octets. It returns io.EOF when the peer has closed.
func (s *StreamConn) Read(p []byte) (n int, err error) {
	if err = s.checkDeadline(s.readDeadline, p); err == nil && len(p) > 0 {
		if n, err = s.s.Read(p); err == ErrCutOff { // why it is comes next
			n, err = s.s.Read(p)
		}
	}
	return n, s.wrapError("read", err)
}

// Write writes octets. It returns when all of them are in the send buffer.
func (s *StreamConn) Write(p []byte) (n int, err error) {
	if err = s.checkDeadline(s.writeDeadline, p); err == nil {
		n, err = s.s.Write(p)
	}
	return n, s.wrapError("write", err)
}

// Read reads one message.
func (m *MessageConn) Read(p []byte) (n int, err error) {
	if err = m.checkDeadline(m.readDeadline, p); err == nil && len(p) > 0 {
		var info RecvInfo
		n, info, err = m.c.readFrom(p, &m.c.recv.inbox, &m.c.recv.readable, m.readDeadline, true)
		if err == nil && info.More {
			err = ErrTruncated
		}
	}
	return n, m.wrapError("read", err)
}

// Write sends p as one message. It returns when that is in the send buffer.
func (m *MessageConn) Write(p []byte) (n int, err error) {
	if err = m.checkDeadline(m.writeDeadline, p); err == nil {
		n, err = m.c.writeMessage(p, SendInfo{}, m.writeDeadline)
	}
	return n, m.wrapError("write", err)
}

// netConn is what both forms have in common. It returns errors as package net does, in a
// *net.OpError.
type netConn struct {
	c                           *Conn
	readDeadline, writeDeadline *deadline
}

// Association returns the association, for its counters, paths and events.
func (n *netConn) Association() *Conn { return n.c }

// checkDeadline says whether a call comes after its deadline. The deadline also ends calls that
// need not wait. For an empty call it says whether that comes after Close. For any other the
// association does.
func (n *netConn) checkDeadline(d *deadline, p []byte) error {
	expired := d.hasExpired()
	switch {
	case (expired || len(p) == 0) && n.c.isClosing():
		return net.ErrClosed
	case expired:
		return os.ErrDeadlineExceeded
	}
	return nil
}

func (n *netConn) wrapError(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: "sctp", Source: n.LocalAddr(), Addr: n.RemoteAddr(), Err: err}
}

// Close ends the association, see Conn.Close. Calls that are under way fail by net.ErrClosed, and
// so do further calls of Close.
func (n *netConn) Close() error {
	first, err := n.c.closeGracefully()
	if !first {
		err = net.ErrClosed
	}
	return n.wrapError("close", err)
}

// LocalAddr returns the local address and SCTP port.
func (n *netConn) LocalAddr() net.Addr { return n.c.LocalAddr() }

// RemoteAddr returns the address of the peer's primary path and its SCTP port.
func (n *netConn) RemoteAddr() net.Addr { return n.c.RemoteAddr() }

// SetDeadline sets the read and the write deadline.
func (n *netConn) SetDeadline(t time.Time) error {
	return n.setDeadlines(t, n.readDeadline, n.writeDeadline)
}

// SetReadDeadline makes reads past t fail with os.ErrDeadlineExceeded, even if data is there. The
// zero time means no deadline.
func (n *netConn) SetReadDeadline(t time.Time) error { return n.setDeadlines(t, n.readDeadline) }

// SetWriteDeadline makes writes past t fail with os.ErrDeadlineExceeded.
func (n *netConn) SetWriteDeadline(t time.Time) error { return n.setDeadlines(t, n.writeDeadline) }

func (n *netConn) setDeadlines(t time.Time, ds ...*deadline) error {
	if n.c.isClosing() {
		return n.wrapError("set", net.ErrClosed)
	}
	for _, d := range ds {
		d.set(t)
	}
	return nil
}

// isClosing says whether this side has closed the association.
func (c *Conn) isClosing() bool {
	c.lock()
	defer c.unlock()
	return c.end.closing
}

// StreamListener returns the listener as a net.Listener whose connections are a *StreamConn each.
func (l *Listener) StreamListener() net.Listener {
	return &netListener{l, func(c *Conn) net.Conn { return c.StreamConn() }}
}

// MessageListener returns the listener as a net.Listener whose connections are a *MessageConn each.
func (l *Listener) MessageListener() net.Listener {
	return &netListener{l, func(c *Conn) net.Conn { return c.MessageConn() }}
}

type netListener struct {
	*Listener
	wrapConn func(*Conn) net.Conn
}

func (l *netListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept(context.Background())
	if err != nil {
		return nil, &net.OpError{Op: "accept", Net: "sctp", Addr: l.Addr(), Err: err}
	}
	return l.wrapConn(c), nil
}

// abortOnRestart ends an association whose octets are one stream: a part of them is missing. Owner
// only.
func (c *Conn) abortOnRestart(now rawio.Time) {
	c.end.unreadLostErr, c.end.failed = ErrRestarted, true
	c.wakeAll()
	c.dropUnread()
	c.core.Abort(now, []byte("a stream of octets does not outlive a restart"))
}
