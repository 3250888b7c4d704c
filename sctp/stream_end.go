package sctp

import (
	"maps"
	"slices"

	"github.com/rddp-go/rddp/sctp/wire"
)

// endStreams ends the Streams that the peer has begun anew (RFC 6525): reads return io.EOF behind
// what came before. What comes later is for another Stream. Owner only.
func (c *Conn) endStreams(of *StreamChange) {
	t := c.recv.streams
	if t == nil {
		return
	}
	var ended []*Stream
	if len(of.Streams) == 0 { // all
		ended = slices.Collect(maps.Values(t.open))
	}
	for _, id := range of.Streams {
		if s := t.get(wire.StreamID(id)); s != nil {
			ended = append(ended, s)
		}
	}
	for _, s := range ended {
		s.inbox.isReset, s.inbox.resetAt = true, of.PeerTSN
	}
	for c.distributeMessage() { // some may have come before, and some later
	}
	for _, s := range ended { // in whatever order
		t.detach(s)
		c.afterUnlock.wakeStream(s)
	}
}

// detach takes a stream out of the table. One that was reset stays among those that may have
// something to read.
func (t *streamTable) detach(s *Stream) {
	if t.get(s.id) == s {
		if delete(t.open, s.id); s.inbox.first() != nil && s.inbox.isReset {
			if t.reset == nil {
				t.reset = make(map[*Stream]bool)
			}
			t.reset[s] = true
		}
	}
}

// forgetReset forgets a stream that was reset, of which nothing is left to read.
func (s *Stream) forgetReset() {
	s.c.lock()
	defer s.c.unlock()
	delete(s.c.recv.streams.reset, s)
}

// IsReset reports whether the peer has reset the stream, its own direction of it (RFC 6525). What
// came before may still be unread.
func (s *Stream) IsReset() bool {
	s.c.lock()
	defer s.c.unlock()
	return s.inbox.isReset
}
