package sctp

import (
	"context"
	"errors"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// StreamReconfiguration resets streams, and adds some (RFC 6525): see Conn.Extensions.
const StreamReconfiguration = assoc.StreamReconfiguration

// StreamSide says whether streams are meant that go out, that come in, or both.
type StreamSide uint8

// The sides of an association's streams.
const (
	Outgoing StreamSide = 1 << iota
	Incoming
)

// ResetStreams has the messages of streams be numbered from 0 on again (RFC 6525), and so tells the
// peer's program that a stream begins anew. No list means all streams. It waits for the peer's
// answer; with Incoming, until the peer has agreed to reset its side.
//
// Messages that were written before go in the old numbering. Writes to these streams go on, and
// their messages wait until the peer has answered. EventStreamsReset tells of each direction, on
// both sides. A peer that refuses is a *StreamResetError. When ctx ends first the request goes on.
//
// Both sides must have set Config.StreamReset. Only one request is under way at a time, and others
// wait for it.
func (c *Conn) ResetStreams(ctx context.Context, side StreamSide, streams ...uint16) error {
	if side&^(Outgoing|Incoming) != 0 || side == 0 {
		return ErrStreamRequest
	}
	var list []wire.StreamID
	for _, s := range streams {
		list = append(list, wire.StreamID(s))
	}
	for {
		most := len(list)
		err := c.askPeer(ctx, func(a *assoc.Assoc, now rawio.Time) error {
			most = min(len(list), a.MaxStreamList())
			return a.ResetStreams(now, side&Outgoing != 0, side&Incoming != 0, list[:most])
		})
		if list = list[most:]; err != nil || len(list) == 0 {
			return err
		}
	}
}

// ResetTSNs has all messages and DATA chunks be numbered anew, in both directions (RFC 6525 section
// 5.1.4). What was written before is acknowledged first. It waits for the peer's answer, as
// ResetStreams does, and is possible once in 30 seconds. What the peer has sent and is lost on its
// way is not sent again, and a peer may cut a message there (section 5.2.4).
func (c *Conn) ResetTSNs(ctx context.Context) error {
	return c.askPeer(ctx, func(a *assoc.Assoc, now rawio.Time) error { return a.ResetTSNs(now) })
}

// AddStreams adds streams that go out, and asks the peer to add some that come in. It waits for the
// peer's answer, as ResetStreams does. EventStreamsAdded tells of each direction.
func (c *Conn) AddStreams(ctx context.Context, outgoing, incoming int) error {
	return c.askPeer(ctx, func(a *assoc.Assoc, now rawio.Time) error {
		return a.AddStreams(now, outgoing, incoming)
	})
}

// streamRequests is what there is of a Conn while calls wait for requests to reset or add streams.
// Owner only.
type streamRequests struct {
	current *streamRequest // the one under way that a call waits for, or nil
	endedCh chan struct{}  // closed when none is under way any more
}

// requestsAboutStreams returns what there is of them, nil if nobody waits. Owner only.
func (c *Conn) requestsAboutStreams() *streamRequests {
	if !c.end.asksForStreams {
		return nil
	}
	r, _ := c.t.streamRequests.Load(c)
	return r.(*streamRequests)
}

// streamRequest is a call that waits for the peer's answer.
type streamRequest struct {
	doneCh chan struct{}
	errs   []error // what was refused, once it is done
}

// askPeer begins with a request when no other is under way, and waits for its end.
func (c *Conn) askPeer(ctx context.Context, start func(*assoc.Assoc, rawio.Time) error) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		a, now := c.lock()
		r := c.requestsAboutStreams()
		err := assoc.ErrStreamResetBusy
		if r == nil || r.current == nil {
			err = start(a, now)
		}
		if err != nil && !errors.Is(err, ErrStreamResetBusy) {
			c.unlock()
			return err
		}
		if r == nil {
			r = &streamRequests{endedCh: make(chan struct{})}
			c.t.streamRequests.Store(c, r)
			c.end.asksForStreams = true
		}
		own, endedCh := (*streamRequest)(nil), r.endedCh
		if err == nil {
			own = &streamRequest{doneCh: make(chan struct{})}
			r.current, endedCh = own, own.doneCh
		}
		c.unlock()
		select {
		case <-endedCh:
		case <-ctx.Done():
			return ctx.Err()
		}
		if own != nil {
			return errors.Join(own.errs...)
		}
	}
}

// noteStreamChange notes how a part of the own request has ended. Owner only.
func (c *Conn) noteStreamChange(ev assoc.Event) {
	if r := c.requestsAboutStreams(); r != nil && r.current != nil && !ev.Change.ByPeer && ev.Err != nil {
		r.current.errs = append(r.current.errs, ev.Err)
	}
}

// endStreamRequests wakes those that wait for the end of a request. Owner only.
func (c *Conn) endStreamRequests() {
	r := c.requestsAboutStreams()
	if r == nil || c.core.StreamResetUnderWay() {
		return
	}
	if r.current != nil {
		close(r.current.doneCh)
	}
	close(r.endedCh)
	c.t.streamRequests.Delete(c)
	c.end.asksForStreams = false
}

// changeOctets is the memory of a change in octets.
func changeOctets(c *StreamChange) int {
	if c == nil {
		return 0
	}
	return 64 + 2*cap(c.Streams)
}

// describeChange tells of a change, for logs.
func describeChange(c *StreamChange) string {
	s := "outgoing"
	if c.Incoming {
		s = "incoming"
	}
	if c.ByPeer {
		s += " by the peer"
	}
	return s
}
