package sctp

import (
	"context"
	"io"
	"iter"
	"slices"
	"unsafe"

	"github.com/rddp-go/rddp/sctp/wire"
)

// streamTable is the streams that are in use as a Stream. Most associations have none, and a nil
// one is empty. Owner only.
type streamTable struct {
	open    map[wire.StreamID]*Stream
	reset   map[*Stream]bool // that the peer has reset, with something to read
	accepts bool             // AcceptStream was called: each stream that the peer uses becomes one
	waiting []*Stream        // for AcceptStream, the one that was used first in front
}

// get returns the Stream with that identifier, nil if it is not in use.
func (t *streamTable) get(id wire.StreamID) *Stream {
	if t == nil {
		return nil
	}
	return t.open[id]
}

// all are those in use, or with something to read, in whatever order.
func (t *streamTable) all() iter.Seq[*Stream] {
	return func(yield func(*Stream) bool) {
		if t == nil {
			return
		}
		for _, s := range t.open {
			if !yield(s) {
				return
			}
		}
		for s := range t.reset {
			if !yield(s) {
				return
			}
		}
	}
}

// count returns how many there are.
func (t *streamTable) count() int {
	if t == nil {
		return 0
	}
	return len(t.open) + len(t.reset)
}

// streamOctets is the memory of a Stream, with its place in the table and its channel.
const streamOctets = int(unsafe.Sizeof(Stream{})) + 256

// AcceptStream returns the next stream that the peer uses and this side does not: a message has
// come by it, and it is not in use as a Stream. From the first call on, messages of such streams
// wait there, and no longer for ReadMsg. It fails as ReadMsg does, or with the error of ctx.
func (c *Conn) AcceptStream(ctx context.Context) (*Stream, error) {
	stop := context.AfterFunc(ctx, c.t.wakeLinkReader)
	defer stop()
	for {
		s, left, err := c.takeNewStream()
		switch {
		case s != nil && left, err != nil:
			c.recv.readable.Set() // for others that wait
		}
		if s != nil || err != nil {
			return s, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c.recv.readable.Wait(ctx.Done(), nil)
	}
}

// takeNewStream takes the first stream that waits, and says whether others do. Without one, err
// says whether there may still be any.
func (c *Conn) takeNewStream() (s *Stream, left bool, err error) {
	c.lock()
	defer c.unlock()
	t := c.ensureStreams()
	if !t.accepts {
		t.accepts = true
		c.distributeUnread()
	}
	if len(t.waiting) == 0 || c.end.closing {
		return nil, false, c.end.readErr()
	}
	s = t.waiting[0]
	t.waiting = slices.Delete(t.waiting, 0, 1)
	return s, len(t.waiting) > 0, nil
}

// distributeUnread makes new streams of all that messages wait for ReadMsg by, but for one of which
// something has been read. Owner only.
func (c *Conn) distributeUnread() {
	in := &c.recv.inbox
	for i := in.head; i < len(in.queue); {
		if r := in.queue[i]; (i > in.head || in.readOffset == 0) && c.recv.streams.get(r.Stream) == nil {
			c.beginStream(r.Stream)
			i = in.head // the queue is another now
			continue
		}
		i++
	}
}

// ensureStreams returns the table of streams in use, which there is from then on. Owner only.
func (c *Conn) ensureStreams() *streamTable {
	if c.recv.streams == nil {
		c.recv.streams = &streamTable{open: make(map[wire.StreamID]*Stream)}
	}
	return c.recv.streams
}

// beginStream makes a Stream for which messages have come, and that AcceptStream is to return.
// Owner only.
func (c *Conn) beginStream(id wire.StreamID) *Stream {
	s := c.openStream(id)
	c.recv.streams.waiting = append(c.recv.streams.waiting, s)
	c.afterUnlock.tasks |= taskWakeReaders
	return s
}

// ReadMsg reads one message of the stream, or the next piece of one that is longer than p, as
// Conn.ReadMsg does. What is there is read although the deadline is over. When the peer has reset
// the stream (RFC 6525) it returns io.EOF behind what came before. What comes later is for another
// Stream.
func (s *Stream) ReadMsg(p []byte) (n int, info RecvInfo, err error) {
	n, info, err = s.c.readFrom(p, &s.inbox, &s.readable, &s.readDeadline, false)
	if err == io.EOF {
		s.forgetReset()
	}
	return n, info, err
}

// WriteMsg sends p as one message of the stream, whatever stream info names, as Conn.WriteMsg does.
// The deadline ends it while it waits for the send buffer.
func (s *Stream) WriteMsg(p []byte, info SendInfo) (n int, err error) {
	info.Stream = uint16(s.id)
	return s.c.writeMessage(p, info, &s.writeDeadline)
}
