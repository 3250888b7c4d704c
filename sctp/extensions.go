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
	AbandonForRoom = assoc.AbandonForRoom
)

// Extensions are what both ends have agreed on beyond RFC 9260: see Conn.Extensions.
type Extensions = assoc.Extensions

const (
	// PartialReliability lets a message be given up after it was sent (RFC 3758).
	PartialReliability = assoc.PartialReliability
	// Interleaving sends I-DATA, so that messages of several streams may alternate (RFC 8260).
	Interleaving = assoc.Interleaving
	// ZeroChecksum leaves the checksum of packets 0 (RFC 9653). Both ends agree on it over links
	// that say that they detect errors: see rawio.ErrorDetector.
	ZeroChecksum = assoc.ZeroChecksum
)

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
	c.serveByStream(s != nil)
	return nil
}

// Unacked returns how many octets of messages that were written are not acknowledged.
func (c *Conn) Unacked() int {
	a, _ := c.lock()
	defer c.unlock()
	return a.Unacked()
}

// UnackedOf returns those of a stream. It is 0 for a stream that does not exist.
func (c *Conn) UnackedOf(stream uint16) int {
	a, _ := c.lock()
	defer c.unlock()
	return a.UnackedOf(wire.StreamID(stream))
}

// SetLowMark has EventSendLow tell when a stream has no more than octets that are not acknowledged,
// and had more. A new mark takes the place of the one before; a negative one ends it. It fails with
// ErrNoEvents if Config.Events is 0, and ErrInvalidStream.
func (c *Conn) SetLowMark(stream uint16, octets int) error {
	a, _ := c.lock()
	defer c.unlock()
	if err := c.end.closedErr(); err != nil {
		return err
	}
	if c.observers.events == nil {
		return ErrNoEvents
	}
	return a.SetLowMark(wire.StreamID(stream), octets)
}

// AbandonCounts counts messages that were given up, by SendInfo.Abandon: those of which a part was
// sent, and others.
type AbandonCounts = assoc.AbandonCounts

// Abandoned returns how many messages of all streams were given up (RFC 7496 section 4.5).
func (c *Conn) Abandoned() AbandonCounts {
	a, _ := c.lock()
	defer c.unlock()
	return a.Abandoned()
}

// AbandonedOf returns how many messages of a stream were.
func (c *Conn) AbandonedOf(stream uint16) AbandonCounts {
	a, _ := c.lock()
	defer c.unlock()
	return a.AbandonedOf(wire.StreamID(stream))
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
