package assoc

import (
	"net/netip"

	"github.com/rddp-go/rddp/sctp/wire"
)

// EventKind says what an Event reports.
type EventKind uint8

// eventSenderFailed stands for the EventSendFailed of all messages of the first sender in
// rareState.failedSenders.
const eventSenderFailed EventKind = 0

// The notifications of RFC 9260 section 11.2.
const (
	// EventUp: the association is established (COMMUNICATION UP). Path is the primary path.
	EventUp EventKind = iota + 1
	// EventDown: the association has ended; Err says how. It is the last event.
	EventDown
	// EventRestart: the peer has lost its state and set the association up anew (section 5.2.4
	// action A). Tags, TSNs and SSNs start afresh. EventSendFailed has reported every message that
	// was not acknowledged before.
	EventRestart
	// EventPathUp and EventPathDown: the reachability of Path changed (NETWORK STATUS CHANGE). A
	// path is also up when its address is confirmed (section 5.4). It is also down when too many
	// probes of an unconfirmed address went unanswered.
	EventPathUp
	EventPathDown
	// EventPeerShutdown: the peer has started a graceful shutdown. Send fails from now on. What is
	// queued is still delivered.
	EventPeerShutdown
	// EventSendFailed: the message with Token on Stream will not be acknowledged. Its life or that
	// of the association has ended. Its memory is free. Unsent says that no part of it was ever
	// transmitted.
	EventSendFailed
	// EventSenderDry: everything handed to Send is acknowledged or has failed.
	EventSenderDry
	// EventMTUChanged: the path MTU changed; MaxPayload has a new value.
	EventMTUChanged
	// EventPeerError: an ERROR chunk arrived (COMMUNICATION ERROR); Err is a *PeerError.
	EventPeerError
	// EventPathPotentiallyFailed: Path is potentially failed (RFC 7829), as it has stopped
	// answering. EventPathUp or EventPathDown follows.
	EventPathPotentiallyFailed
	// EventPrimary: Path has become the primary path because the one before failed (RFC 7829
	// section 5).
	EventPrimary
	// EventAdaptation: the peer has announced the adaptation layer Adaptation (RFC 5061 section
	// 4.2.6). It did so in the setup that the preceding EventUp or EventRestart reports.
	EventAdaptation
	// EventSendLow: Stream has fallen to its mark of SetLowMark.
	EventSendLow
	// EventStreamsReset: the streams of Change were reset, or Err says why not (RFC 6525).
	EventStreamsReset
	// EventTSNsReset: all TSNs and streams were reset, or Err says why not.
	EventTSNsReset
	// EventStreamsAdded: streams were added, as Change says, or Err says why not.
	EventStreamsAdded
	// EventLocalAddrAdded, EventLocalAddrRemoved and EventPeerPrimarySet: the peer has done what
	// was asked of it about the own address Path (RFC 5061), or Err says why not.
	EventLocalAddrAdded
	EventLocalAddrRemoved
	EventPeerPrimarySet
)

var eventNames = [...]string{"none", "up", "down", "restart", "path up", "path down", "peer shutdown",
	"send failed", "sender dry", "MTU changed", "peer error", "path potentially failed", "primary path changed",
	"adaptation", "send low", "streams reset", "TSNs reset", "streams added", "local address added",
	"local address removed", "peer primary set"}

// String returns a short name for the kind, for traces.
func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return "unknown"
}

// Event is one notification of an association to its owner.
type Event struct {
	Kind       EventKind
	Unsent     bool           // EventSendFailed
	Stream     wire.StreamID  // EventSendFailed, EventSendLow
	Adaptation uint32         // EventAdaptation
	Token      uint64         // EventSendFailed
	Path       netip.AddrPort // EventUp, EventRestart, EventMTUChanged and those of paths: the peer's address
	Err        error          // EventDown, EventPeerError and those of Change
	Change     *StreamChange  // EventStreamsReset, EventTSNsReset, EventStreamsAdded
}

// maxPeerErrors bounds how many EventPeerError wait to be polled: a peer must not be able to grow
// the queue.
const maxPeerErrors = 16

// eventQueue is a ring that grows with what the association itself has to report. Events that the
// peer can cause at will are bounded at their origin.
type eventQueue struct {
	head, n    int32
	peerErrors int32
	ring       []Event
}

func (q *eventQueue) push(e Event) {
	if e.Kind == EventPeerError {
		q.peerErrors++
	}
	if size := int32(len(q.ring)); q.n == size {
		bigger := make([]Event, max(2, 2*size))
		for i := range q.n {
			bigger[i] = q.ring[(q.head+i)%size]
		}
		q.ring, q.head = bigger, 0
	}
	q.ring[(q.head+q.n)%int32(len(q.ring))] = e
	q.n++
}

func (q *eventQueue) pop() (Event, bool) {
	if q.n == 0 {
		return Event{}, false
	}
	e := q.ring[q.head]
	q.ring[q.head] = Event{}
	q.head = (q.head + 1) % int32(len(q.ring))
	q.n--
	if e.Kind == EventPeerError {
		q.peerErrors--
	}
	return e, true
}

// HasEvents says whether PollEvent has something to return, or memory to give back. It is for
// callers that ask often. Without a ring it looks no further, because the rest lies elsewhere in
// memory.
func (a *Assoc) HasEvents() bool {
	return a.events.n > 0 || len(a.events.ring) > 0 && len(a.events.ring) > a.spareEventSlots()
}

// spareEventSlots returns how many events have space while there are none. If those that come with
// what is sent are left out, the others are rare.
func (a *Assoc) spareEventSlots() int {
	if a.hints.ignoresDry {
		return 0
	}
	return maxSpareEvents
}

// PollEvent returns the oldest event not yet returned.
func (a *Assoc) PollEvent() (Event, bool) {
	for a.events.n > 0 && a.events.ring[a.events.head].Kind == eventSenderFailed {
		rare := a.rareState
		if f, ok := rare.failedSenders[0].NextFailed(); ok {
			if a.stats.workSteps++; f.Token == keyToken {
				continue // no message of the program
			}
			return Event{Kind: EventSendFailed, Stream: f.Stream, Token: f.Token, Unsent: !f.Sent}, true
		}
		rare.failedSenders = rare.failedSenders[1:]
		a.events.pop()
	}
	e, ok := a.events.pop()
	if !ok && a.HasEvents() {
		a.events.ring = nil
	}
	return e, ok
}
