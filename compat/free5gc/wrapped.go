package sctp

import (
	"net"
	"syscall"
	"time"

	"github.com/rddp-go/rddp/compat"
)

// SCTPSndRcvInfoWrappedConn is a connection whose reads and writes have an SndRcvInfo in front of
// each message.
type SCTPSndRcvInfoWrappedConn struct {
	conn *SCTPConn
}

// NewSCTPSndRcvInfoWrappedConn subscribes to SCTP_EVENT_DATA_IO; it returns nil if that fails.
func NewSCTPSndRcvInfoWrappedConn(conn *SCTPConn) *SCTPSndRcvInfoWrappedConn {
	if conn.SubscribeEvents(SCTP_EVENT_DATA_IO) != nil {
		return nil
	}
	return &SCTPSndRcvInfoWrappedConn{conn}
}

// Write sends what follows the SndRcvInfo as one message.
func (c *SCTPSndRcvInfoWrappedConn) Write(b []byte) (int, error) {
	if len(b) < compat.SndRcvInfoSize {
		return 0, syscall.EINVAL
	}
	in := compat.ParseSndRcvInfo(b)
	n, err := c.conn.SCTPWrite(b[compat.SndRcvInfoSize:], named(&in))
	if err != nil {
		return 0, err
	}
	return n + compat.SndRcvInfoSize, nil
}

// Read reads a message and puts its SndRcvInfo in front of it.
func (c *SCTPSndRcvInfoWrappedConn) Read(b []byte) (int, error) {
	if len(b) < compat.SndRcvInfoSize {
		return 0, syscall.EINVAL
	}
	n, info, _, err := c.conn.SCTPRead(b[compat.SndRcvInfoSize:])
	if err != nil {
		return max(n, 0), err
	}
	clear(b[:compat.SndRcvInfoSize])
	if info != nil {
		out := plain(info)
		out.AppendTo(b[:0])
	}
	return n + compat.SndRcvInfoSize, nil
}

// Close closes the connection. It and all methods below are those of the connection.
func (c *SCTPSndRcvInfoWrappedConn) Close() error { return c.conn.Close() }

// LocalAddr returns the addresses of this end.
func (c *SCTPSndRcvInfoWrappedConn) LocalAddr() net.Addr { return c.conn.LocalAddr() }

// RemoteAddr returns the addresses of the peer.
func (c *SCTPSndRcvInfoWrappedConn) RemoteAddr() net.Addr { return c.conn.RemoteAddr() }

// SetDeadline sets both deadlines.
func (c *SCTPSndRcvInfoWrappedConn) SetDeadline(t time.Time) error { return c.conn.SetDeadline(t) }

// SetReadDeadline sets the deadline of reads.
func (c *SCTPSndRcvInfoWrappedConn) SetReadDeadline(t time.Time) error {
	return c.conn.SetReadDeadline(t)
}

// SetWriteDeadline sets the deadline of writes.
func (c *SCTPSndRcvInfoWrappedConn) SetWriteDeadline(t time.Time) error {
	return c.conn.SetWriteDeadline(t)
}

// SetWriteBuffer sets SO_SNDBUF.
func (c *SCTPSndRcvInfoWrappedConn) SetWriteBuffer(bytes int) error {
	return c.conn.SetWriteBuffer(bytes)
}

// GetWriteBuffer returns SO_SNDBUF.
func (c *SCTPSndRcvInfoWrappedConn) GetWriteBuffer() (int, error) { return c.conn.GetWriteBuffer() }

// SetReadBuffer sets SO_RCVBUF.
func (c *SCTPSndRcvInfoWrappedConn) SetReadBuffer(bytes int) error {
	return c.conn.SetReadBuffer(bytes)
}

// GetReadBuffer returns SO_RCVBUF.
func (c *SCTPSndRcvInfoWrappedConn) GetReadBuffer() (int, error) { return c.conn.GetReadBuffer() }
