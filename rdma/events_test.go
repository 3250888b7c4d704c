package rdma

import (
	"context"
	"errors"
	"math"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/quota"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// event waits for the next event of a kind and returns it.
func event(t *testing.T, d *Device, kind EventKind) Event {
	t.Helper()
	for {
		ev, err := d.NextEvent(ctx(t))
		must.That(t, err == nil, "no event %q: %v", kind, err)
		if ev.Kind == kind {
			return ev
		}
	}
}

func TestEventsTellOfAssociations(t *testing.T) {
	x := newLab(t, nil)
	a, b := x.join(nil)
	ev := event(t, x.a, EventAssocUp)
	check.That(t, ev.Remote == x.addr && ev.Err == nil, "%+v", ev)
	check.Equal(t, "remote address of the association", event(t, x.b, EventAssocUp).Remote, b.qp.RemoteAddr())
	must.OK(t, a.qp.Disconnect(ctx(t)))
	for _, d := range []*Device{x.a, x.b} { // and nothing else happened: no QP failed
		ev, err := d.NextEvent(ctx(t))
		check.That(t, err == nil && ev.Kind == EventAssocDown && ev.Err == nil, "%+v, %v", ev, err)
	}
	_, b = x.join(nil)
	event(t, x.b, EventAssocUp)
	x.a.Close()
	ev = event(t, x.b, EventQPFatal)
	check.That(t, ev.QP == b.qp && ev.Err != nil, "%+v", ev)
	ev = event(t, x.b, EventAssocDown)
	check.That(t, ev.Err != nil, "%+v", ev)
	if _, err := x.a.NextEvent(ctx(t)); err != nil { // what is left of before comes first
		t.Errorf("first event after Close: %v", err)
	}
	x.b.Close()
	for err := error(nil); !errors.Is(err, net.ErrClosed); {
		_, err = x.b.NextEvent(ctx(t))
		must.That(t, err == nil || errors.Is(err, net.ErrClosed), "%v", err)
	}
	check.Fails(newLab(t, nil).a.NextEvent(must.Ended()))(t, "without an event", context.Canceled)
}

func TestEventQPFatal(t *testing.T) {
	x := newLab(t, nil)
	a, b := x.join(nil)
	a.post(SendWR{Op: OpWrite, Inline: []byte("x"), RemoteSTag: b.mr.STag() ^ 1})
	for _, s := range []*side{a, b} {
		ev := event(t, s.dev, EventQPFatal)
		var e *rdmap.StreamError
		check.That(t, ev.QP == s.qp && errors.As(ev.Err, &e) && e.Remote == (s == a) &&
			e.Terminate.Code == ddp.CodeInvalidSTag, "%+v", ev)
	}
}

func TestEventCQError(t *testing.T) {
	x := newLab(t, nil)
	small := must.Get(x.a.CreateCQ(1))(t)
	a, b := x.join(func(c *QPConfig) {
		if c.PD.dev == x.a {
			c.SendCQ, c.MaxSend = small, 1
		}
	})
	var err error
	for err == nil || errors.Is(err, rdmap.ErrQueueFull) {
		err = a.qp.PostSend(&SendWR{Op: OpWrite, RemoteSTag: b.mr.STag()})
	}
	ev := event(t, x.a, EventCQError)
	check.That(t, ev.CQ == small && ev.Err == ErrCQOverflow, "%+v", ev)
	ev = event(t, x.a, EventQPFatal)
	check.That(t, ev.QP == a.qp && errors.Is(ev.Err, ErrCQOverflow), "%+v", ev)
}

func TestEventSRQLimit(t *testing.T) {
	// req 5042-6.4.3.1-2
	x := newLab(t, nil)
	pd := x.b.AllocPD()
	srq := must.Get(pd.CreateSRQ(8, 1))(t)
	post := func(n int) {
		for range n {
			must.OK(t, srq.PostRecv(&RecvWR{}))
		}
	}
	post(4)
	a, b := x.joinIn(nil, pd, func(c *QPConfig) {
		if c.PD == pd {
			c.SRQ = srq
		}
	})
	event(t, x.b, EventAssocUp)
	send := func(n int) {
		for range n {
			a.post(SendWR{Op: OpSend})
			a.good()
			b.good()
		}
	}
	none := func(when string) {
		t.Helper()
		ev, some := x.b.events.pop()
		check.That(t, !some, "%s: %+v", when, ev)
	}
	srq.SetLimit(3)
	send(1)
	none("as many buffers as the limit")
	send(1)
	ev := event(t, x.b, EventSRQLimit)
	check.That(t, ev.SRQ == srq && ev.QP == b.qp && srq.Len() == 2, "%+v, %d buffers", ev, srq.Len())
	send(1)
	none("told once")
	srq.SetLimit(2)
	ev = event(t, x.b, EventSRQLimit)
	check.That(t, ev.SRQ == srq && ev.QP == nil, "few buffers when asked: %+v", ev)
	post(3)
	srq.SetLimit(3)
	srq.SetLimit(0)
	send(4)
	none("nobody asks")
}

func TestEventHighWater(t *testing.T) {
	// req 5042-6.4.3.1-3
	x := newLab(t, nil)
	a, b := x.join(nil)
	b.recv(1, 0, 100)
	b.qp.SetHighWater(0)
	a.post(SendWR{Op: OpSend, Inline: []byte("x")})
	ev := event(t, x.b, EventHighWater)
	check.That(t, ev.QP == b.qp && ev.Remote == b.qp.RemoteAddr(), "%+v", ev)
	b.good()
	check.Equal(t, "octets in process once all is delivered", b.qp.InProcess(), 0)
}

// A report that took a gate would wait for itself: who gives a gate up reports what happened to its
// QPs.
func TestEventsAreReportedWhoeverHoldsTheGate(t *testing.T) {
	x := newLab(t, nil)
	a, _ := x.join(nil)
	p := a.qp.lockCore().sctp()
	x.a.reportEvent(Event{Kind: EventHighWater, QP: a.qp})
	p.reportAssoc(false, nil)
	left := len(x.a.Peers())
	p.reportAssoc(true, nil)
	check.That(t, left == 0 && len(x.a.Peers()) == 1, "%d peers after the end of one, %d after its return", left,
		len(x.a.Peers()))
	a.qp.unlockCore(&p.peer)
	event(t, x.a, EventHighWater)
}

// Events come in their order, and half of the places are for one address, or one.
func TestEventQueueIsARing(t *testing.T) {
	var who []netip.Addr
	apart := quota.RateLimiter{All: math.MaxInt, Each: 1} // addresses that share a place of its table count as one
	for a, now := netip.MustParseAddr("10.0.0.1"), time.Now(); len(who) < 16; a = a.Next() {
		if apart.Allow(now, a) {
			who = append(who, a)
		}
	}
	for size, each := range map[int]int{1: 1, 2: 1, 5: 2} {
		var q eventQueue
		q.init(size)
		n := 0
		for range 3 {
			began := n
			for range size {
				q.push(Event{Remote: netip.AddrPortFrom(who[n], 1)})
				n++
			}
			q.push(Event{Kind: EventCQError}) // there is no place for it
			for i := began; i < n; i++ {
				for len(q.ready) > 0 {
					<-q.ready
				}
				ev, some := q.pop() // and wakes the next reader, if there is something for it
				check.That(t, ev.Remote.Addr() == who[i] && some && (len(q.ready) == 1) == (i < n-1) && ev.Lost <= 1,
					"%d places: event %d is of %v, woken: %d", size, i, ev.Remote, len(q.ready))
			}
			ev, some := q.pop()
			check.That(t, !some && q.lost == 1, "%d places: one more is %+v", size, ev)
		}
		check.That(t, !slices.ContainsFunc(q.ring, func(w queuedEvent) bool { return w != queuedEvent{} }) &&
			q.lostEvents() == 3,
			"%d were lost; %+v is kept", q.lostEvents(), q.ring)
		for i := range size {
			q.push(Event{Remote: netip.AddrPortFrom(who[15], 1)})
			check.That(t, q.n == min(i+1, each), "%d places, %d events about one address: %d wait", size, i+1, q.n)
		}
	}
}

func TestEventsAreBounded(t *testing.T) {
	// req 5042-2.2.7-1: a peer brings about as many events as it likes; the Device keeps a few,
	// says that there were more, and works on.
	x := newLab(t, &Config{Limits: Limits{MaxEvents: 6}})
	_, stays := x.join(nil) // keeps the association up
	const n = 10
	for range n {
		a, b := x.join(nil)
		a.post(SendWR{Op: OpSend, Inline: []byte("no receive for it")})
		<-b.qp.Done()
	}
	check.Equal(t, "state of another QP", stays.qp.State(), StateRTS)
	kinds := map[EventKind]int{}
	for range 3 {
		ev, err := x.b.NextEvent(ctx(t))
		check.That(t, err == nil && ev.Lost == 0, "%+v, %v", ev, err)
		kinds[ev.Kind]++
	}
	ev, some := x.b.events.pop()
	check.That(t, !some, "a fourth was kept: %+v", ev)
	who := Event{Remote: netip.MustParseAddrPort("10.0.0.77:1")}
	for i := range 20 { // however fast they are read
		x.b.events.push(who)
		ev, some := x.b.events.pop()
		check.That(t, some == (i < 6) && (i != 0 || ev.Lost == n-2),
			"event %d of a second: %v, %d lost before it, want %d", i, some, ev.Lost, n-2)
	}
	check.That(t, kinds[EventAssocUp] == 1 && kinds[EventQPFatal] == 2, "events %v", kinds)
	a, b := x.join(nil)
	a.post(SendWR{Op: OpSend, Inline: []byte("no receive for it")})
	ev = event(t, x.b, EventQPFatal)
	check.That(t, ev.QP == b.qp && ev.Lost == 14, "%+v, want 14 lost before it", ev)
}
