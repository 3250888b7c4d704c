package sctp

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// listTracer keeps what it hears. As it asks for the state of each association, it could not be
// called while a gate is held.
type listTracer struct {
	t    *Transport
	mu   sync.Mutex
	list []TraceEvent
}

func (l *listTracer) Trace(e *TraceEvent) {
	l.t.Snapshot()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, *e)
}

// storyOf is the events but metrics, in the order of their times.
func (l *listTracer) storyOf() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.SortStableFunc(l.list, func(a, b TraceEvent) int { return a.At.Compare(b.At) })
	var s []string
	for _, e := range l.list {
		switch e.Kind {
		case TraceStarted:
			s = append(s, fmt.Sprintf("start %d", e.Assoc))
		case TraceState:
			s = append(s, fmt.Sprintf("%v to %v", e.Old, e.Stats.State))
		case TraceNotice:
			s = append(s, e.Event.Kind.String())
		}
	}
	return strings.Join(s, ", ")
}

// A Tracer hears the life of an association with no gate held, and what it has moved.
func TestTracerHearsTheLifeOfAnAssociation(t *testing.T) {
	p := newPair(t)
	heard := &listTracer{t: p.a}
	p.a.cfg.Tracer = heard
	c, s := p.connect(t, nil, nil)
	must.Get(c.WriteMsg(make([]byte, 5000), SendInfo{}))(t)
	n, _, err := s.ReadMsg(make([]byte, 5000))
	must.That(t, n == 5000 && err == nil, "%v, %v", n, err)
	must.OK(t, c.Close())
	until(t, "the end is heard", func() bool { return strings.Contains(heard.storyOf(), ", down") })
	story := heard.storyOf()
	check.That(t, strings.HasPrefix(story, "start 1, COOKIE-WAIT to ") &&
		strings.Contains(story, " to ESTABLISHED, ") && strings.Contains(story, "up, ") &&
		strings.HasSuffix(story, "to CLOSED, down"), "%s", story)
	heard.mu.Lock()
	last := heard.list[slices.IndexFunc(heard.list, func(e TraceEvent) bool { return e.Event.Kind == EventDown })]
	heard.mu.Unlock()
	check.That(t, last.Stats.DataOut >= 1 && last.Remote.Addr() == p.bAddr && !last.Passive &&
		last.Event.Err == assoc.ErrShutdown,
		"%+v", last)
}

// Where much happens there is a look every 4 ms, after a silence there are some more at once; a
// loss between two looks is in the next.
func TestTracerIsNotFlooded(t *testing.T) {
	p := newPair(t)
	c, _ := p.connect(t, nil, nil)
	a, _ := c.lock()
	defer func() { c.observers.trace = nil; c.unlock() }()
	c.observers.trace = new(traceState)
	now := rawio.Time(time.Hour)
	c.traceChanges(now)
	c.takeTraceEvents()
	looks := func(n int, every time.Duration) (count int) {
		for range n {
			now = now.Add(every)
			c.observers.trace.stats.SacksIn = ^uint64(0) // something is not as it was
			c.traceChanges(now)
			count += len(c.takeTraceEvents())
		}
		return count
	}
	check.Equal(t, "looks at once", looks(1000, 0), traceBurst-1)
	check.Equal(t, "looks in 40 ms", looks(1000, 40*time.Microsecond), 10)
	looks(1, time.Second)
	check.Equal(t, "looks at once after a second", looks(1000, 0), traceBurst-1)
	c.end.ended = true
	check.Equal(t, "looks at what has moved at the end", looks(1, 0), 1)
	c.end.ended = false
	check.Equal(t, "looks at what is as it was", func() int {
		c.traceChanges(now.Add(time.Second))
		c.takeTraceEvents()
		c.traceChanges(now.Add(2 * time.Second))
		return len(c.takeTraceEvents())
	}(), 0)
	c.traceAssocEvent(now, assoc.Event{Kind: EventSendFailed})
	c.traceAssocEvent(now, assoc.Event{Kind: EventSenderDry})
	check.Equal(t, "events of messages", len(c.takeTraceEvents()), 0)
	old := c.observers.trace.stats
	for i, n := range []*uint64{&old.Retransmits, &old.FastRetransmits, &old.Timeouts, &old.TailProbes,
		&old.WindowProbes, &old.Reneged} {
		*n -= uint64(6 - i)
	}
	c.observers.trace.stats = old
	c.traceChanges(now.Add(3 * time.Second))
	list := c.takeTraceEvents()
	check.That(t, len(list) == 2 && list[0].Kind == TraceLoss && list[0].Lost == (TraceLost{6, 5, 4, 3, 2, 1}) &&
		list[1].Stats == a.Stats(), "%+v", list)
	heard := &listTracer{t: p.a}
	p.a.cfg.Tracer, c.observers.trace.stats.SacksIn = heard, ^uint64(0)
	c.unlockAfterRead(now)
	heard.mu.Lock()
	check.That(t, len(heard.list) > 0, "who reads does not look")
	heard.mu.Unlock()
	c.lock()
}
