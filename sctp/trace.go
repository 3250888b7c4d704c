package sctp

import (
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// Tracer hears what becomes of the associations of a Transport. Trace is called from the goroutines
// that send and receive, with no lock held, several at a time. It must not block, and keeps nothing
// of the event. Package sctp/qlog has one that writes files.
type Tracer interface {
	Trace(e *TraceEvent)
}

// TraceKind says what a TraceEvent reports.
type TraceKind uint8

const (
	// TraceStarted: setting the association up has begun.
	TraceStarted TraceKind = iota
	// TraceState: the association has gone from the state Old to Stats.State.
	TraceState
	// TraceMetrics: what is in Stats or Path has changed. If much happens there are 250 of these a
	// second and association at most, each with all changes since the last.
	TraceMetrics
	// TraceLoss: since the last event something was sent again, or a timer for that has expired.
	// Lost says what.
	TraceLoss
	// TraceNotice: the association has given Event to its user.
	TraceNotice
)

// TraceEvent is one thing that a Tracer hears.
type TraceEvent struct {
	Kind    TraceKind
	At      time.Time
	Assoc   uint64         // the number of the association in its Transport, from 1 on
	Remote  netip.AddrPort // the peer's primary address, and its SCTP port
	Local   uint16         // own SCTP port
	Passive bool           // set up by the peer
	Stats   assoc.Stats
	Path    assoc.PathStats // TraceMetrics: one that has changed; TraceNotice: that of Event; else the primary
	Old     assoc.State     // TraceState
	Lost    TraceLost       // TraceLoss
	Event   assoc.Event     // TraceNotice, without its Token
}

// TraceLost counts what was done about losses.
type TraceLost struct {
	Chunks         uint64 // DATA chunks sent again
	FastRecoveries uint64
	Timeouts       uint64 // T3-rtx
	TailProbes     uint64
	WindowProbes   uint64
	Reneged        uint64
}

// observers is what an association keeps for those that observe it. Owner only.
type observers struct {
	trace  *traceState // nil: there is no Tracer
	events *eventQueue // nil: no notifications are kept
}

// An association is looked at in detail 250 times a second at most. After a silence it may be more
// often for a moment, so that each step of something slow is seen.
const (
	traceInterval = 4 * time.Millisecond
	traceBurst    = 64
)

// observers.trace is what a Conn keeps for its Tracer. Owner only.
type traceState struct {
	state         assoc.State
	stats         assoc.Stats       // when it was looked at last
	paths         []assoc.PathStats // then
	observedAt    rawio.Time        // then
	observeCredit time.Duration     // for looking again
	events        []TraceEvent      // wait for the unlock
	hasBegun      bool
}

// traceChanges notes what has changed. Owner only, and only with a Tracer.
func (c *Conn) traceChanges(now rawio.Time) {
	t := c.observers.trace
	if d := now.Sub(t.observedAt); d > 0 { // an owner may come with the time of before another's
		t.observeCredit, t.observedAt = min(t.observeCredit+d, traceBurst*traceInterval), now
	}
	moved := c.core.State() != t.state || !t.hasBegun
	if t.observeCredit < traceInterval && !moved && !c.end.ended {
		return
	}
	t.observeCredit -= min(t.observeCredit, traceInterval)
	s := c.core.Stats()
	at := c.t.startedAt.Add(time.Duration(now))
	if !t.hasBegun {
		t.hasBegun, t.state = true, assoc.CookieWait
		if c.origin.listener != nil {
			t.state = s.State
		}
		c.addTraceEvent(TraceEvent{Kind: TraceStarted, At: at, Stats: s})
	}
	if s.State != t.state {
		c.addTraceEvent(TraceEvent{Kind: TraceState, At: at, Stats: s, Old: t.state})
		t.state = s.State
	}
	if lost := lossesBetween(&t.stats, &s); lost != (TraceLost{}) {
		c.addTraceEvent(TraceEvent{Kind: TraceLoss, At: at, Stats: s, Lost: lost})
	}
	changed := s != t.stats
	t.stats = s
	for i := range c.core.NumPaths() {
		p := c.core.PathStats(i)
		if i == len(t.paths) {
			t.paths = append(t.paths, assoc.PathStats{})
		}
		if p != t.paths[i] || changed && i == s.Primary {
			t.paths[i] = p
			c.addTraceEvent(TraceEvent{Kind: TraceMetrics, At: at, Stats: s, Path: p})
		}
	}
}

// traceAssocEvent notes an event of the association. Owner only, and only with a Tracer.
func (c *Conn) traceAssocEvent(now rawio.Time, ev assoc.Event) {
	switch ev.Kind {
	case EventSendFailed, EventSenderDry, EventSendLow: // of messages, not of the association
		return
	}
	if !c.observers.trace.hasBegun || ev.Kind == EventDown { // that comes first, and this last
		c.traceChanges(now)
	}
	c.addTraceEvent(TraceEvent{Kind: TraceNotice, At: c.t.startedAt.Add(time.Duration(now)), Stats: c.core.Stats(),
		Event: ev})
}

// addTraceEvent keeps an event until the unlock.
func (c *Conn) addTraceEvent(e TraceEvent) {
	e.Assoc, e.Local, e.Passive = c.origin.assocNumber, c.core.LocalPort(), c.origin.listener != nil
	e.Remote = netip.AddrPortFrom(c.core.PeerAddr().Addr(), c.core.PeerPort())
	if e.Kind != TraceMetrics {
		e.Path = c.core.PathStats(c.pathNumberTo(e.Event.Path, e.Stats.Primary))
	}
	c.observers.trace.events = append(c.observers.trace.events, e)
}

// pathNumberTo returns the number of the path to an address, or the other number if there is none.
func (c *Conn) pathNumberTo(remote netip.AddrPort, other int) int {
	for i := range c.core.NumPaths() {
		if c.core.PathStats(i).Remote == remote {
			return i
		}
	}
	return other
}

// takeTraceEvents takes what was kept. Owner only.
func (c *Conn) takeTraceEvents() []TraceEvent {
	list := c.observers.trace.events
	c.observers.trace.events = nil
	return list
}

func lossesBetween(a, b *assoc.Stats) TraceLost {
	return TraceLost{b.Retransmits - a.Retransmits, b.FastRetransmits - a.FastRetransmits, b.Timeouts - a.Timeouts,
		b.TailProbes - a.TailProbes, b.WindowProbes - a.WindowProbes, b.Reneged - a.Reneged}
}
