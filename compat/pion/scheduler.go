package sctp

import "github.com/rddp-go/rddp/sctp/sched"

// scheduling is which stream sends next (RFC 8260 section 3), the next message or the next chunk.
type scheduling struct {
	roundRobin bool
	weights    map[uint16]uint16 // of weighted fair queueing, by stream; 1 where there is none
	custom     InterleavingStreamSchedulerFactory
}

// newScheduler makes the scheduler of an association.
func (s *scheduling) newScheduler() sched.Scheduler {
	switch {
	case s.custom != nil:
		if c := s.custom(); c != nil {
			c.Reset()
			return &customScheduler{of: c, tokens: make(map[uint16]*streamToken), turns: sched.RoundRobin()}
		}
	case s.roundRobin:
		return sched.RoundRobin()
	}
	w := sched.WeightedFairQueueing()
	for stream, weight := range s.weights {
		w.SetValue(stream, weight)
	}
	return w
}

// customScheduler is a scheduler of the program as one of the stack. The stack has no chunks before
// they are sent. So each stream with something to send has one token in the program's scheduler.
type customScheduler struct {
	of     InterleavingStreamScheduler
	tokens map[uint16]*streamToken
	turns  sched.Scheduler // for when the program's scheduler has no token of use
}

// streamToken stands for the next chunk of a stream.
type streamToken struct {
	stream   uint16
	isQueued bool // it is in the program's scheduler
	isActive bool // the stream has something to send
}

// tokenOctets is the length of a chunk for all that is known before it is cut.
const tokenOctets = 1024

func (t *streamToken) StreamIdentifier() uint16 { return t.stream }
func (t *streamToken) UserDataLen() int         { return tokenOctets }
func (t *streamToken) IsStreamReset() bool      { return false }
func (t *streamToken) isChunk()                 {}

func (c *customScheduler) Activate(stream uint16) {
	c.turns.Activate(stream)
	t := c.tokens[stream]
	if t == nil {
		t = &streamToken{stream: stream}
		c.tokens[stream] = t
	}
	t.isActive = true
	c.queue(t)
}

func (c *customScheduler) queue(t *streamToken) {
	if !t.isQueued {
		t.isQueued = true
		c.of.Push(t)
	}
}

// Deactivate leaves the token where it is: the program's scheduler lets go of none but the first.
func (c *customScheduler) Deactivate(stream uint16) {
	c.turns.Deactivate(stream)
	c.tokens[stream].isActive = false
}

func (c *customScheduler) Next(bundled bool) (stream uint16, ok bool) {
	for range len(c.tokens) + 1 {
		t, ok := c.of.Peek().(*streamToken)
		switch {
		case !ok:
			return c.turns.Next(bundled)
		case t.isActive:
			return t.stream, true
		}
		c.dequeue(t)
	}
	return c.turns.Next(bundled)
}

// dequeue takes off the token that Peek has returned.
func (c *customScheduler) dequeue(t *streamToken) {
	if c.of.Pop(t) == nil {
		t.isQueued = false
	}
}

// Sent queues the next chunk of the stream behind the one that was sent.
func (c *customScheduler) Sent(stream uint16, octets int, endOfMessage bool) {
	c.turns.Sent(stream, octets, endOfMessage)
	if t := c.tokens[stream]; t.isQueued && c.of.Peek() == StreamSchedulerChunk(t) {
		c.dequeue(t)
		c.queue(t)
	}
}

// SetValue has no meaning for it.
func (c *customScheduler) SetValue(uint16, uint16) {}
