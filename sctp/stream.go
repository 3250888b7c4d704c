package sctp

import (
	"net"
	"os"
	"sync"
	"time"

	"github.com/rddp-go/rddp/sctp/wire"
)

// Stream is one SCTP stream of an association as a net.Conn. Writes become ordered messages, and
// reads see their octets without boundaries. An SCTP stream has no end of its own. Close ends the
// calls of this side alone and gives the stream's messages back to Conn.ReadMsg. Reads return
// io.EOF when the association ends, or when the peer has reset the stream (see ReadMsg).
type Stream struct {
	c  *Conn
	id wire.StreamID

	inbox   inbox      // owner of the association only
	writeMu sync.Mutex // held by a Write: its octets stay together

	readable                    signal
	readDeadline, writeDeadline deadline // the latter of calls that wait for the writable of c
}

var _ net.Conn = (*Stream)(nil)

// Stream returns the stream with this identifier; the same one at each call until it is closed.
// From then on its messages, those that wait for ReadMsg included, go to it and no longer to
// ReadMsg.
func (c *Conn) Stream(id uint16) *Stream {
	c.lock()
	defer c.unlock()
	if s := c.recv.streams.get(wire.StreamID(id)); s != nil {
		return s
	}
	return c.openStream(wire.StreamID(id))
}

// openStream makes a Stream, with what waits for it. Owner only.
func (c *Conn) openStream(id wire.StreamID) *Stream {
	s := &Stream{c: c, id: id}
	s.readable.init(c.t)
	s.readDeadline.t, s.writeDeadline.t, s.readDeadline.signal = c.t, c.t, &s.readable
	c.ensureStreams().open[id] = s
	if s.inbox.takeStream(&c.recv.inbox, s.id); s.inbox.first() != nil {
		s.readable.Set()
	}
	return s
}

// ID returns the stream identifier.
func (s *Stream) ID() uint16 { return uint16(s.id) }

// Read reads octets of the stream's messages, in order.
func (s *Stream) Read(p []byte) (int, error) {
	if err := s.checkDeadline(&s.readDeadline, p); err != nil || len(p) == 0 {
		return 0, err
	}
	n, _, err := s.ReadMsg(p)
	return n, err
}

// checkDeadline says whether a call comes after its deadline. The deadline also ends calls that
// need not wait. For an empty call it says whether that comes after Close.
func (s *Stream) checkDeadline(d *deadline, p []byte) error {
	expired := d.hasExpired()
	switch {
	case (expired || len(p) == 0) && s.wasClosed():
		return net.ErrClosed
	case expired:
		return os.ErrDeadlineExceeded
	}
	return nil
}

// wasClosed says whether the stream, or the association, was closed.
func (s *Stream) wasClosed() bool {
	s.c.lock()
	defer s.c.unlock()
	return s.inbox.streamClosed || s.c.end.closing
}

// streamChunkOctets is how many octets of one Write go into one message.
const streamChunkOctets = 64 << 10

// Write sends p as ordered messages of at most 64 KiB.
func (s *Stream) Write(p []byte) (n int, err error) {
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	if err := s.checkDeadline(&s.writeDeadline, p); err != nil {
		return 0, err
	}
	for n < len(p) {
		k, err := s.c.writeMessage(p[n:min(n+streamChunkOctets, len(p))], SendInfo{Stream: uint16(s.id)},
			&s.writeDeadline)
		n += k
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// Close stops the stream from taking messages; unread ones are dropped. The association stays open.
// Calls that are under way fail with net.ErrClosed, and so do those that follow. Closing again
// returns nil.
func (s *Stream) Close() error {
	a, _ := s.c.lock()
	s.inbox.discardAll(a)
	s.c.recv.streams.detach(s)
	delete(s.c.recv.streams.reset, s)
	s.inbox.streamClosed, s.writeDeadline.streamClosed = true, true
	s.c.afterUnlock.wakeStream(s)
	s.c.unlock()
	s.writeDeadline.set(time.Unix(1, 0)) // for a Write that waits
	return nil
}

// LocalAddr returns the association's local address.
func (s *Stream) LocalAddr() net.Addr { return s.c.LocalAddr() }

// RemoteAddr returns the association's peer address.
func (s *Stream) RemoteAddr() net.Addr { return s.c.RemoteAddr() }

// SetDeadline sets the stream's read and write deadline. It fails with net.ErrClosed after Close,
// of the stream or the association.
func (s *Stream) SetDeadline(t time.Time) error {
	return s.setDeadlines(t, &s.readDeadline, &s.writeDeadline)
}

// SetReadDeadline makes reads past t fail with os.ErrDeadlineExceeded, even if data is there. The
// zero time means no deadline.
func (s *Stream) SetReadDeadline(t time.Time) error { return s.setDeadlines(t, &s.readDeadline) }

// SetWriteDeadline makes writes past t fail with os.ErrDeadlineExceeded.
func (s *Stream) SetWriteDeadline(t time.Time) error { return s.setDeadlines(t, &s.writeDeadline) }

func (s *Stream) setDeadlines(t time.Time, ds ...*deadline) error {
	if s.wasClosed() {
		return net.ErrClosed
	}
	for _, d := range ds {
		d.set(t)
	}
	return nil
}
