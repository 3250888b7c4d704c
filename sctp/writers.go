package sctp

import (
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// waitingWriter is a call that waits for space in the send buffer.
//
// Without a scheduler calls are served in the order in which they came. Under one the first of all
// is served when there is room for it. Before that the first of another stream goes ahead, by the
// reserve of the send buffer, if that stream has little there.
type waitingWriter struct {
	stream wire.StreamID
	octets int
	ahead  int            // how many of its stream have come before
	ready  *signal        // set when it is to look again
	next   *waitingWriter // that has come behind it
}

// queueWriter queues a call behind those that wait, unless it is there, and returns the signal to
// wait for. Owner only.
func (c *Conn) queueWriter(w *waitingWriter) *signal {
	s := &c.send
	last, ahead := &s.firstWriter, 0
	for ; *last != nil && *last != w; last = &(*last).next {
		if (*last).stream == w.stream {
			ahead++
		}
	}
	*last, w.ahead = w, ahead
	switch {
	case s.isByStream() && (w.ready == nil || w.ready == &s.writable):
		w.ready = c.t.newSignal()
	case !s.isByStream():
		if w.ready = &s.writable; s.writable.tokenCh == nil {
			s.writable.init(c.t)
		}
	}
	return w.ready
}

// unqueueWriter takes a call off the queue, if it is there. Owner only.
func (s *sendSide) unqueueWriter(w *waitingWriter) {
	for at := &s.firstWriter; *at != nil; at = &(*at).next {
		if *at != w {
			continue
		}
		*at = w.next
		for behind := w.next; behind != nil; behind = behind.next {
			if behind.stream == w.stream {
				behind.ahead--
			}
		}
		w.next = nil
		return
	}
}

// isFirst reports whether no other call has come before w, nil: one that comes now. Owner only.
func (s *sendSide) isFirst(w *waitingWriter) bool { return s.firstWriter == nil || s.firstWriter == w }

// noneAhead reports whether no other call of a stream has come before w. Owner only.
func (s *sendSide) noneAhead(w *waitingWriter, stream wire.StreamID) bool {
	if w != nil {
		return w.ahead == 0
	}
	for at := s.firstWriter; at != nil; at = at.next {
		if at.stream == stream {
			return false
		}
	}
	return true
}

// isTurnOf reports whether a call may write m now as far as others are concerned. If that is by the
// reserve it says so in m. Owner only.
func (c *Conn) isTurnOf(w *waitingWriter, m *assoc.Message, octets int) bool {
	s := &c.send
	isFirst := s.isFirst(w)
	if c.origin.maxUnsent > 0 && !(isFirst && c.hasSentEnough()) {
		return false
	}
	m.Reserve = s.isByStream() && !(isFirst && c.core.HasRoom(octets))
	if m.Reserve {
		return s.noneAhead(w, m.Stream) && c.core.HasReserve(m.Stream, octets)
	}
	return isFirst
}

// firstWriterFits reports whether there is space for several messages, and for the first waiting
// call. Owner only.
func (c *Conn) firstWriterFits() bool {
	w := c.send.firstWriter
	if w == nil || !c.hasSentEnough() {
		return false
	}
	if c.send.loose != nil && !c.core.HasRoom(max(w.octets, c.core.SendBuffer()/4)) {
		return false
	}
	return c.send.isByStream() || c.sendBufferHasRoom() && c.send.buffer.hasRoomFor(w.octets)
}

// noteRoom wakes calls that wait, if there may be room for one of them. Owner only.
func (c *Conn) noteRoom() {
	if c.send.firstWriter != nil && (c.send.isByStream() || c.firstWriterFits()) {
		c.afterUnlock.tasks |= taskWakeWriters
	}
}

// hasSentEnough says whether less than Config.MaxUnsent has not been sent. Owner only.
func (c *Conn) hasSentEnough() bool {
	return c.origin.maxUnsent == 0 || c.core.Unsent() < int(c.origin.maxUnsent)
}

// noteSent wakes the first call when Config.MaxUnsent lets it write on. Owner only.
func (c *Conn) noteSent() {
	if c.origin.maxUnsent > 0 && c.firstWriterFits() {
		c.afterUnlock.tasks |= taskWakeWriters
	}
}

// wakeWritersOfStreams wakes the calls whose turn it is, under a scheduler: all of them at the end
// of the association. Owner only.
func (c *Conn) wakeWritersOfStreams() {
	ended, firstFits := c.end.closedErr() != nil, c.firstWriterFits()
	for w := c.send.firstWriter; w != nil; w = w.next {
		if ended || w == c.send.firstWriter && firstFits || w.ahead == 0 && c.core.HasReserve(w.stream, w.octets) {
			w.ready.Set()
		}
	}
}

// serveByStream says whether a scheduler chooses among streams from now on. Owner only.
func (c *Conn) serveByStream(is bool) {
	if c.send.isByStream() == is {
		return
	}
	for w := c.send.firstWriter; w != nil; w = w.next {
		w.ready.Set()
	}
	c.send.looseBuffer().byStream = is
}
