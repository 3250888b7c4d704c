package sctp

import (
	"context"
	"errors"
	"slices"

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
// their messages wait until the peer has answered: then they go in the new numbering, or, if it has
// refused, in the old one. EventStreamsReset tells of each direction, on
// both sides. A peer that refuses is a *StreamResetError. When ctx ends first the request goes on.
//
// Both sides must have set Config.StreamReset. Only one request is under way at a time. Others wait
// for their turn, and the messages behind them too; when ctx ends first they are not begun.
func (c *Conn) ResetStreams(ctx context.Context, side StreamSide, streams ...uint16) error {
	if side&^(Outgoing|Incoming) != 0 || side == 0 {
		return ErrStreamRequest
	}
	var list []wire.StreamID
	for _, s := range streams {
		list = append(list, wire.StreamID(s))
	}
	return c.askPeer(ctx, assoc.StreamRequest{ResetOut: side&Outgoing != 0, ResetIn: side&Incoming != 0, Streams: list})
}

// ResetTSNs has all messages and DATA chunks be numbered anew, in both directions (RFC 6525 section
// 5.1.4). What was written before is acknowledged first. It waits for the peer's answer, as
// ResetStreams does, and is possible once in 30 seconds. What the peer has sent and is lost on its
// way is not sent again, and a peer may cut a message there (section 5.2.4). A peer that answers
// nothing ends the association (ErrTSNResetUnanswered). What has come since the request is lost
// then: nobody can tell its order.
func (c *Conn) ResetTSNs(ctx context.Context) error {
	return c.askPeer(ctx, assoc.StreamRequest{ResetTSNs: true})
}

// AddStreams adds streams that go out, and asks the peer to add some that come in. It waits for the
// peer's answer, as ResetStreams does. EventStreamsAdded tells of each direction.
func (c *Conn) AddStreams(ctx context.Context, outgoing, incoming int) error {
	return c.askPeer(ctx, assoc.StreamRequest{AddOut: outgoing, AddIn: incoming})
}

// streamRequests are those of a Conn that calls wait for. Owner only.
type streamRequests struct{ list []*streamRequest }

// streamRequest is one of them.
type streamRequest struct {
	id     assoc.StreamRequestID
	doneCh chan struct{}
	errs   []error // what was refused, once it is done
}

// requestsAboutStreams returns what there is of them, nil if nobody waits. Owner only.
func (c *Conn) requestsAboutStreams() *streamRequests {
	if !c.end.asksForStreams {
		return nil
	}
	r, _ := c.t.streamRequests.Load(c)
	return r.(*streamRequests)
}

// askPeer asks for something, in several requests if its list is long, and waits until all of it
// has ended.
func (c *Conn) askPeer(ctx context.Context, r assoc.StreamRequest) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	a, now := c.lock()
	var own []*streamRequest
	var failed error
	for list, isFirst := r.Streams, true; failed == nil && (isFirst || len(list) > 0); isFirst = false {
		r.Streams = list[:min(len(list), a.MaxStreamList())]
		list = list[len(r.Streams):]
		var id assoc.StreamRequestID
		if id, failed = a.StartInTurn(now, r); failed == nil {
			own = append(own, &streamRequest{id: id, doneCh: make(chan struct{})})
		}
	}
	if len(own) > 0 {
		c.ensureStreamRequests().list = append(c.ensureStreamRequests().list, own...)
	}
	c.unlock()
	errs := []error{failed}
	for i, q := range own {
		select {
		case <-q.doneCh:
			errs = append(errs, q.errs...)
		case <-ctx.Done():
			c.stopWaitingFor(own[i:])
			return ctx.Err()
		}
	}
	return errors.Join(errs...)
}

// ensureStreamRequests makes them if there are none. Owner only.
func (c *Conn) ensureStreamRequests() *streamRequests {
	r := c.requestsAboutStreams()
	if r == nil {
		r = new(streamRequests)
		c.t.streamRequests.Store(c, r)
		c.end.asksForStreams = true
	}
	return r
}

// stopWaitingFor forgets requests: those that wait for their turn are not begun.
func (c *Conn) stopWaitingFor(own []*streamRequest) {
	a, now := c.lock()
	defer c.unlock()
	if r := c.requestsAboutStreams(); r != nil {
		r.list = slices.DeleteFunc(r.list, func(q *streamRequest) bool {
			if !slices.Contains(own, q) {
				return false
			}
			a.StopWaiting(now, q.id)
			return true
		})
	}
}

// noteStreamChange notes how a part of an own request has ended. Owner only.
func (c *Conn) noteStreamChange(ev assoc.Event) {
	r := c.requestsAboutStreams()
	if r == nil || ev.Change.Request == 0 || ev.Err == nil {
		return
	}
	for _, q := range r.list {
		if q.id == ev.Change.Request {
			q.errs = append(q.errs, ev.Err)
		}
	}
}

// endStreamRequests wakes those that wait for the end of a request. Owner only.
func (c *Conn) endStreamRequests() {
	r := c.requestsAboutStreams()
	if r == nil || c.core.HasEvents() {
		return
	}
	r.list = slices.DeleteFunc(r.list, func(q *streamRequest) bool {
		hasEnded := !c.core.IsStreamRequestUnderWay(q.id)
		if hasEnded {
			close(q.doneCh)
		}
		return hasEnded
	})
	if len(r.list) == 0 {
		c.t.streamRequests.Delete(c)
		c.end.asksForStreams = false
	}
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
