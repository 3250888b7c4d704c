package sctp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"

	"github.com/rddp-go/rddp/sctp/assoc"
)

// EventKind says what an Event reports.
type EventKind = assoc.EventKind

// The notifications of RFC 9260 section 11.2. Fields of Event that a kind does not name are zero.
const (
	// EventUp: the association is established. Path is the primary path.
	EventUp = assoc.EventUp
	// EventRestart: the peer has restarted and set the association up anew. EventSendFailed has
	// reported messages that the peer had not acknowledged. Path is the primary path.
	EventRestart = assoc.EventRestart
	// EventAdaptation: the peer announced an adaptation layer, Adaptation (RFC 5061). It comes
	// behind EventUp or EventRestart.
	EventAdaptation = assoc.EventAdaptation
	// EventPathUp: Path is reachable again, or its address is confirmed (section 5.4).
	EventPathUp = assoc.EventPathUp
	// EventPathPotentiallyFailed: Path has stopped answering; data avoids it (RFC 7829).
	EventPathPotentiallyFailed = assoc.EventPathPotentiallyFailed
	// EventPathDown: Path exceeded Path.Max.Retrans.
	EventPathDown = assoc.EventPathDown
	// EventPrimary: Path has become the primary path because the one before failed (RFC 7829
	// section 5).
	EventPrimary = assoc.EventPrimary
	// EventMTUChanged: Path carries packets of another size now.
	EventMTUChanged = assoc.EventMTUChanged
	// EventPeerShutdown: the peer has started a graceful shutdown; no more messages are taken.
	EventPeerShutdown = assoc.EventPeerShutdown
	// EventSendFailed: Message, written with Info, was not acknowledged before the association
	// ended or restarted. Or it was not sent within SendInfo.Lifetime, or SendInfo.Abandon has
	// given it up. Unsent says that no part of it was ever transmitted.
	EventSendFailed = assoc.EventSendFailed
	// EventSenderDry: every message written so far is acknowledged or has failed. It is kept once,
	// until it is read or another event comes.
	EventSenderDry = assoc.EventSenderDry
	// EventSendLow: so much of Info.Stream is acknowledged that no more than Conn.SetLowMark has
	// said is left.
	EventSendLow = assoc.EventSendLow
	// EventPeerError: the peer reports an error; Err is an *assoc.PeerError.
	EventPeerError = assoc.EventPeerError
	// EventStreamsReset: streams were reset, as Change says (RFC 6525), or Err says why not.
	EventStreamsReset = assoc.EventStreamsReset
	// EventTSNsReset: all streams and TSNs were reset, or Err says why not.
	EventTSNsReset = assoc.EventTSNsReset
	// EventStreamsAdded: streams were added, as Change says, or Err says why not.
	EventStreamsAdded = assoc.EventStreamsAdded
	// EventLocalAddrAdded, EventLocalAddrRemoved and EventPeerPrimarySet: the peer has done what
	// was asked of it about the own address Path, or Err says why not.
	EventLocalAddrAdded   = assoc.EventLocalAddrAdded
	EventLocalAddrRemoved = assoc.EventLocalAddrRemoved
	EventPeerPrimarySet   = assoc.EventPeerPrimarySet
	// EventDown: the association has ended; Err says how. It is the last event.
	EventDown = assoc.EventDown
)

// AllEvents returns every kind of event, EventSenderDry among them, for Config.EventKinds and
// KeepEvents.
func AllEvents() []EventKind {
	return []EventKind{EventUp, EventRestart, EventAdaptation, EventPathUp, EventPathPotentiallyFailed, EventPathDown,
		EventPrimary, EventMTUChanged, EventPeerShutdown, EventSendFailed, EventSenderDry, EventSendLow,
		EventPeerError, EventStreamsReset, EventTSNsReset, EventStreamsAdded, EventLocalAddrAdded,
		EventLocalAddrRemoved, EventPeerPrimarySet, EventDown}
}

// Event is one notification of an association to its user. See Conn.NextEvent.
type Event struct {
	Kind       EventKind
	Path       netip.Addr // the peer's address, or the own one of EventLocalAddrAdded and its like
	Adaptation uint32
	Message    []byte
	Info       SendInfo
	Unsent     bool
	Err        error
	Change     *StreamChange
	// Lost counts the events that were dropped right before this one, because the Config.Events
	// before them were unread.
	Lost int
}

// ErrNoEvents is returned by NextEvent of a Conn that keeps no events.
var ErrNoEvents = errors.New("sctp: Config.Events is 0: no events are kept")

// NextEvent returns the oldest event not yet returned and blocks for one. After EventDown it
// returns io.EOF, and the context's error when that ends first. A Conn keeps Config.Events events.
// Further ones are dropped and counted in Event.Lost of the next, but EventDown always comes.
func (c *Conn) NextEvent(ctx context.Context) (Event, error) {
	n := c.observers.events
	if n == nil {
		return Event{}, ErrNoEvents
	}
	for {
		c.lock()
		ev, ok := n.pop()
		left, ended := len(n.events) > 0, c.end.ended
		c.unlock()
		switch {
		case ok:
			if left {
				sendToken(n.arrivedCh) // for the next reader
			}
			if ev.Kind == EventDown {
				<-c.Done() // so that Err says how: who has ended it closes that next
			}
			return ev, nil
		case ended:
			return Event{}, io.EOF
		}
		select {
		case <-n.arrivedCh:
		case <-c.Done():
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

// KeepEvents changes which notifications are kept from now on (RFC 6458 section 6.2), as
// Config.EventKinds chose them before. EventDown is always one of them. It fails with ErrNoEvents
// if Config.Events is 0.
func (c *Conn) KeepEvents(kinds ...EventKind) error {
	if c.observers.events == nil {
		return ErrNoEvents
	}
	c.lock()
	defer c.unlock()
	c.observers.events.kinds = kindSet(kinds)
	c.chooseSenderDry()
	return nil
}

// chooseSenderDry has the core report EventSenderDry if anybody wants it: the protocol above, or
// the program. Owner only.
func (c *Conn) chooseSenderDry() {
	n := c.observers.events
	c.core.ReportSenderDry(c.upper.protocol != nil || n != nil && n.wants(EventSenderDry))
}

// String names the kind of the event and what it reports, for logs.
func (e Event) String() string {
	b := []byte(e.Kind.String())
	if e.Path.IsValid() {
		b = fmt.Appendf(b, " path=%v", e.Path)
	}
	switch e.Kind {
	case EventAdaptation:
		b = fmt.Appendf(b, " adaptation=%#x", e.Adaptation)
	case EventStreamsReset, EventTSNsReset, EventStreamsAdded:
		b = fmt.Appendf(b, " %s", describeChange(e.Change))
	case EventSendFailed:
		b = fmt.Appendf(b, " stream=%d octets=%d unsent=%v", e.Info.Stream, len(e.Message), e.Unsent)
	case EventSendLow:
		b = fmt.Appendf(b, " stream=%d", e.Info.Stream)
	}
	if e.Err != nil {
		b = fmt.Appendf(b, ": %v", e.Err)
	}
	if e.Lost > 0 {
		b = fmt.Appendf(b, " (%d before it were dropped)", e.Lost)
	}
	return string(b)
}

// eventKinds returns the kinds of events that are kept, as kindSet makes them.
func (c *Config) eventKinds() uint32 {
	if c.EventKinds == nil {
		return ^uint32(1 << EventSenderDry)
	}
	return kindSet(c.EventKinds)
}

// kindSet is a set of kinds of events, as bits.
func kindSet(kinds []EventKind) (set uint32) {
	for _, k := range kinds {
		set |= 1 << k
	}
	return set | 1<<EventDown
}

// eventQueue holds unread events. Owner only, but for what never changes.
type eventQueue struct {
	arrivedCh    chan struct{} // one token
	limit        int           // at least one
	kinds        uint32        // that are kept, as kindSet makes them
	events       []Event
	lostEvents   int
	queuedOctets int // of memory that queue keeps
}

// wants says whether events of a kind are kept.
func (n *eventQueue) wants(k EventKind) bool { return n.kinds>>k&1 != 0 }

// push queues an event and says whether there was a place for it.
func (n *eventQueue) push(ev Event) bool {
	if len(n.events) >= n.limit && ev.Kind != EventDown {
		n.lostEvents++
		return false
	}
	ev.Lost, n.lostEvents = n.lostEvents, 0
	n.events = append(n.events, ev)
	n.queuedOctets += ev.heldOctets()
	return true
}

// endsSenderDry says that the last unread event is EventSenderDry: another one would say no more.
func (n *eventQueue) endsSenderDry() bool {
	i := len(n.events) - 1
	return i >= 0 && n.events[i].Kind == EventSenderDry
}

func (n *eventQueue) pop() (ev Event, ok bool) {
	if len(n.events) == 0 {
		return Event{}, false
	}
	ev = n.events[0]
	n.queuedOctets -= ev.heldOctets()
	n.events = slices.Delete(n.events, 0, 1)
	return ev, true
}

// heldOctets is the memory of an event in octets.
func (e *Event) heldOctets() int {
	n := eventStructOctets + cap(e.Message) + changeOctets(e.Change)
	var p *assoc.PeerError
	if errors.As(e.Err, &p) {
		for _, c := range p.Causes {
			n += cap(c.Info) + 64
		}
	}
	return n
}

// queueEvent queues an event of the association for NextEvent. Owner only.
func (c *Conn) queueEvent(ev assoc.Event) {
	if c.observers.events == nil || !c.observers.events.wants(ev.Kind) ||
		ev.Kind == EventSenderDry && c.observers.events.endsSenderDry() {
		return
	}
	out := Event{Kind: ev.Kind, Path: ev.Path.Addr(), Adaptation: ev.Adaptation, Unsent: ev.Unsent, Err: ev.Err,
		Change: ev.Change}
	if ev.Kind == EventSendFailed && c.upper.protocol == nil {
		m := c.send.get(ev.Token)
		// The copy is the user's; the memory is used again after a restart.
		out.Info, out.Message = m.info, slices.Concat(m.body[0], m.body[1])
	}
	if ev.Kind == EventSendLow {
		out.Info.Stream = uint16(ev.Stream)
	}
	if !c.observers.events.push(out) {
		c.t.stats.eventsLost.Add(1)
	}
	c.afterUnlock.tasks |= taskNotifyEvents
}
