package sctp

import (
	"io"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/upper"
)

// The list of all kinds has each once.
func TestAllEventsAreListed(t *testing.T) {
	all := AllEvents()
	slices.Sort(all)
	check.Equal(t, "kinds", len(slices.Compact(all)), len(AllEvents()))
	for k := EventUp; k.String() != "unknown"; k++ {
		check.That(t, slices.Contains(all, k), "%v is not listed", k)
	}
}

// Once EventDown is read Err says why: it comes when the association is known to have ended.
func TestErrIsThereWhenTheEndIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		c, _ := p.connect(t, &Config{Events: 1, EventKinds: []EventKind{}, DisablePMTUD: true}, quiet)
		c.lock()
		c.observers.events.push(Event{Kind: EventDown})
		c.unlock()
		read := make(chan error, 1)
		go func() {
			must.Get(c.NextEvent(t.Context()))(t)
			read <- c.Err()
		}()
		synctest.Wait()
		check.Equal(t, "ends read before the association is known to have ended", len(read), 0)
		c.Abort("over")
		check.That(t, <-read != nil, "the end is read and Err is nil")
	})
}

// Of an association's life those notifications are kept that the program has chosen, and its end.
func TestChosenEventsAreKept(t *testing.T) {
	for _, row := range []struct {
		name  string
		kinds []EventKind
		later []EventKind // chosen once the association is up; nil: nothing is
		want  []EventKind
	}{
		{"by default all but that of an empty queue", nil, nil, []EventKind{EventUp, EventDown}},
		{"none: the end comes all the same", []EventKind{}, nil, []EventKind{EventDown}},
		{"that of an empty queue", []EventKind{EventSenderDry}, nil, []EventKind{EventSenderDry, EventDown}},
		{"all", AllEvents(), nil, []EventKind{EventUp, EventSenderDry, EventDown}},
		{"all, then only the end", AllEvents(), []EventKind{}, []EventKind{EventUp, EventDown}},
		{"none, then all", []EventKind{}, AllEvents(), []EventKind{EventSenderDry, EventDown}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t)
				c, s := p.connect(t, &Config{Events: 9, EventKinds: row.kinds, DisablePMTUD: true}, quiet)
				if row.later != nil {
					must.OK(t, c.KeepEvents(row.later...))
				}
				must.Do(c.WriteMsg([]byte("x"), SendInfo{SackNow: true}))(t)
				must.Two(s.ReadMsg(make([]byte, 9)))(t)
				synctest.Wait()
				c.Abort("over")
				var got []EventKind
				for {
					ev, err := c.NextEvent(t.Context())
					if err != nil {
						check.That(t, err == io.EOF, "behind the last event: %v", err)
						break
					}
					got = append(got, ev.Kind)
				}
				check.Slice(t, "events", got, row.want)
			})
		})
	}
	check.Error(t, "a Conn that keeps none", new(Conn).KeepEvents(EventUp), ErrNoEvents)
}

// A protocol above hears of an empty queue whatever the program keeps.
func TestChoiceOfEventsIsTheProgramsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, u := newPair(t), new(above)
		c, _ := p.connect(t, &Config{Events: 9, DisablePMTUD: true,
			NewUpper: func(*Conn, *assoc.Assoc) upper.Protocol { return u }}, quiet)
		must.OK(t, c.KeepEvents())
		a, now := c.lock()
		must.OK(t, a.Send(now, &assoc.Message{Body: [2][]byte{{1}}, SackNow: true}))
		c.unlock()
		synctest.Wait()
		check.That(t, slices.Contains(u.events, EventSenderDry), "events of the protocol: %v", u.events)
	})
}

// The MTU of a path is that of its IP packets, MaxPacket that of what is within.
func TestMTUOfAPathCountsTheIPHeader(t *testing.T) {
	eachFamily(t, func(t *testing.T, p *pair) {
		c, _ := p.connect(t, quiet, quiet)
		for _, path := range c.Paths() {
			want := 40
			if path.Remote.Addr().Is4() {
				want = 20
			}
			check.Equal(t, path.Remote.String()+": octets of IP header", path.MTU-path.MaxPacket, want)
			check.That(t, path.MTU >= 1480 && path.MTU <= 1500, "%v: an MTU of %d", path.Remote, path.MTU)
		}
	})
}

// A line of a log says what an event or a path is about.
func TestEventsAndPathsAsText(t *testing.T) {
	peer := netip.MustParseAddr("10.0.0.1")
	for _, row := range []struct {
		event Event
		want  string
	}{
		{Event{Kind: EventPathUp, Path: peer}, "path up path=10.0.0.1"},
		{Event{Kind: EventAdaptation, Adaptation: 1}, "adaptation adaptation=0x1"},
		{Event{Kind: EventSendFailed, Message: make([]byte, 7), Info: SendInfo{Stream: 3}, Unsent: true}, "send failed stream=3 octets=7 unsent=true"},
		{Event{Kind: EventDown, Err: ErrTimeout, Lost: 2}, "down: " + ErrTimeout.Error() + " (2 before it were dropped)"},
	} {
		check.Equal(t, "an event", row.event.String(), row.want)
	}
	path := PathStats{Local: netip.MustParseAddrPort("10.0.0.2:0"), Remote: netip.AddrPortFrom(peer, 0),
		State:   PathActive,
		Primary: true, Suspected: true, MTU: 1500, SRTT: time.Millisecond, RTO: time.Second, Cwnd: 4380, Flight: 5,
		Errors: 6}
	check.Equal(t, "a path", path.String(),
		"10.0.0.2 -> 10.0.0.1 active primary suspected mtu=1500 srtt=1ms rto=1s cwnd=4380 flight=5 errors=6")
}
