package sctp

import (
	"errors"

	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/sched"
	"github.com/rddp-go/rddp/sctp/wire"
)

// AbandonPolicy says when a message is given up although it was sent: see SendInfo.Abandon.
type AbandonPolicy = assoc.AbandonPolicy

// Policies of SendInfo.Abandon.
const (
	AbandonNever   = assoc.AbandonNever
	AbandonExpired = assoc.AbandonExpired
	AbandonResent  = assoc.AbandonResent
)

// Extensions are what both ends have agreed on beyond RFC 9260: see Conn.Extensions.
type Extensions = assoc.Extensions

// PartialReliability lets a message be given up after it was sent (RFC 3758).
const PartialReliability = assoc.PartialReliability

// Errors of messages with a policy.
var (
	// ErrNoPartialReliability: SendInfo.Abandon needs a peer that has agreed to it.
	ErrNoPartialReliability = assoc.ErrNoPartialReliability
	// ErrAbandonPolicy: SendInfo.Abandon is no policy, or AbandonExpired without a Lifetime.
	ErrAbandonPolicy = errors.New("sctp: no such policy of abandoning, or AbandonExpired without a Lifetime")
)

// Extensions returns what both ends have agreed on (RFC 3758 section 3.3). It is 0 before the
// association is established.
func (c *Conn) Extensions() Extensions {
	a, _ := c.lock()
	defer c.unlock()
	return a.Extensions()
}

// SetScheduler sets what chooses the stream that sends next, from the next message on (RFC 8260
// section 3). nil stands for the order in which messages were written. Values of streams stay. The
// scheduler belongs to the association from then on.
func (c *Conn) SetScheduler(s sched.Scheduler) error {
	a, _ := c.lock()
	defer c.unlock()
	if err := c.end.closedErr(); err != nil {
		return err
	}
	a.SetScheduler(s)
	return nil
}

// SetStreamValue sets what the scheduler has for a stream (RFC 8260 section 4.3.3): its priority
// under sched.Priority, 0 the most important, or its weight under sched.WeightedFairQueueing.
func (c *Conn) SetStreamValue(stream, value uint16) error {
	a, _ := c.lock()
	defer c.unlock()
	if err := c.end.closedErr(); err != nil {
		return err
	}
	return a.SetStreamValue(wire.StreamID(stream), value)
}

// StreamValue returns it.
func (c *Conn) StreamValue(stream uint16) uint16 {
	a, _ := c.lock()
	defer c.unlock()
	return a.StreamValue(wire.StreamID(stream))
}
