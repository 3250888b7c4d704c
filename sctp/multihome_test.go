package sctp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// newHomes joins two transports with two addresses each: 10.1.0.1 and 10.2.0.1, 10.1.0.2 and
// 10.2.0.2.
func newHomes(t *testing.T) (p *pair, local, remote []netip.Addr, out *[2]atomic.Bool) {
	t.Helper()
	return newHomesIn(t, "10.1.0.", "10.2.0.")
}

// newHomesIn is newHomes in other networks.
func newHomesIn(t *testing.T, networks ...string) (p *pair, local, remote []netip.Addr, out *[2]atomic.Bool) {
	t.Helper()
	of := func(host string) (out []netip.AddrPort) {
		for _, s := range networks {
			out = append(out, netip.AddrPortFrom(netip.MustParseAddr(s+host), 0))
		}
		return out
	}
	la, lb := mempair.New(t, mem.Options{MTU: 1500, A: of("1"), B: of("2")})
	out = new([2]atomic.Bool)
	p = &pair{bAddr: lb.LocalAddrs()[0].Addr()}
	p.a = must.Get(NewTransport(mempair.NetworkSwitch{Link: la, Out: out}, nil))(t)
	p.b = must.Get(NewTransport(mempair.NetworkSwitch{Link: lb, Out: out}, nil))(t)
	t.Cleanup(func() {
		p.a.Close()
		p.b.Close()
	})
	for i, l := range []*mem.Link{la, lb} {
		list := []*[]netip.Addr{&local, &remote}[i]
		for _, ap := range l.LocalAddrs() {
			*list = append(*list, ap.Addr())
		}
	}
	return p, local, remote, out
}

// quickTimers has timers that a test can wait for.
func quickTimers(local []netip.Addr) *Config {
	return &Config{Events: 64, LocalAddrs: local, RTOInitial: 100 * time.Millisecond,
		RTOMin: 100 * time.Millisecond, RTOMax: 400 * time.Millisecond, SackDelay: 10 * time.Millisecond,
		HeartbeatInterval: 50 * time.Millisecond, DisablePMTUD: true}
}

// awaitEvent reads events until one of that kind, for that path if it is valid.
func awaitEvent(t *testing.T, c *Conn, k EventKind, path netip.Addr) Event {
	t.Helper()
	ctx := deadlineCtx(t)
	var seen []EventKind
	for {
		ev, err := c.NextEvent(ctx)
		must.That(t, err == nil, "no event %v but %v: %v", k, seen, err)
		if ev.Kind == k && (!path.IsValid() || ev.Path == path) {
			return ev
		}
		seen = append(seen, ev.Kind)
	}
}

func TestTransferSurvivesItsNetworks(t *testing.T) {
	// req 9260-5.4-7
	for name, networks := range map[string][]string{"IPv4": {"10.1.0.", "10.2.0."}, "IPv6": {"fd00:1::", "fd00:2::"},
		"both": {"10.1.0.", "fd00:2::"}} {
		t.Run(name, func(t *testing.T) { transferSurvives(t, networks...) })
	}
}

func transferSurvives(t *testing.T, networks ...string) {
	p, local, remote, out := newHomesIn(t, networks...)
	c, s := p.connect(t, quickTimers(local), quickTimers(remote))
	awaitEvent(t, c, EventPathUp, remote[1]) // the server's second address is confirmed
	const count = 3000
	sum := make(chan error, 1)
	go func() {
		buf := make([]byte, 2000)
		for i := range count {
			n, _, err := s.ReadMsg(buf)
			if want := fmt.Sprintf("message %d", i); err != nil || string(buf[:n]) != want {
				sum <- fmt.Errorf("%q, %v, want %q", buf[:n], err, want)
				return
			}
		}
		sum <- nil
	}()
	fail := map[int]func(){
		500:  func() { out[0].Store(true); awaitEvent(t, c, EventPathPotentiallyFailed, remote[0]) },
		1000: func() { out[0].Store(false); awaitEvent(t, c, EventPathUp, remote[0]) },
		1500: func() { out[1].Store(true); awaitEvent(t, c, EventPathPotentiallyFailed, remote[1]) },
		2000: func() { out[1].Store(false); awaitEvent(t, c, EventPathUp, remote[1]) },
	}
	for i := range count {
		must.Do(c.WriteMsg(fmt.Appendf(nil, "message %d", i), SendInfo{}))(t)
		if f := fail[i]; f != nil {
			f()
		}
	}
	check.OK(t, <-sum)
	var got []netip.AddrPort
	for _, st := range c.Paths() {
		got = append(got, netip.AddrPortFrom(st.Local.Addr(), 0), netip.AddrPortFrom(st.Remote.Addr(), 0))
	}
	var want []netip.AddrPort
	for i := range networks {
		want = append(want, netip.AddrPortFrom(local[i], 0), netip.AddrPortFrom(remote[i], 0))
	}
	check.Slice(t, "paths", got, want)
}

func TestPathsOfAConn(t *testing.T) {
	p, local, remote, _ := newHomes(t)
	cfg := quickTimers(local)
	cfg.RemoteAddrs = remote // the first again, which Dial names: once is enough
	c, _ := p.connect(t, cfg, quickTimers(remote))
	for i, st := range c.Paths() { // req 9260-11.1-2, 9260-5.4-1: both are confirmed at once
		check.That(t, st.State == assoc.PathActive && st.Primary == (i == 0) && st.Remote.Addr() == remote[i] &&
			st.Local.Addr() == local[i], "%+v", st)
	}
	err := c.SetPrimary(remote[1])
	check.That(t, err == nil && c.RemoteAddr().(Addr).Addr() == remote[1], "SetPrimary: %v, now %v", err,
		c.RemoteAddr())
	for name, err := range map[string]error{
		"SetPrimary": c.SetPrimary(local[0]), "SetHeartbeat": c.SetHeartbeat(local[0], 0),
		"RequestHeartbeat": c.RequestHeartbeat(local[0]),
		"SetDSCP":          c.SetDSCP(local[0], 1), "SetFlowLabel": c.SetFlowLabel(local[0], 1),
	} {
		// req 9260-11.1-6
		check.That(t, errors.Is(err, assoc.ErrNoPath), "%s of an address that the peer does not have: %v", name, err)
	}
	check.OK(t, c.SetHeartbeat(remote[0], time.Hour))
	check.OK(t, c.RequestHeartbeat(remote[0]))
}

func TestLocalAddrsMustBeTheLinks(t *testing.T) {
	p := newPair(t)
	for _, row := range []struct {
		addr string
		ok   bool
	}{{"10.77.0.1", false}, {"fe80::1", true}, {"2001:db8::1", false}, {"::ffff:" + p.bAddr.String(), true}} {
		own, bad := netip.MustParseAddr(row.addr),
			[]error{p.b.checkLocalAddrs([]netip.Addr{p.bAddr, netip.MustParseAddr(row.addr)})}
		cfg := &Config{LocalAddrs: []netip.Addr{own}}
		if !row.ok {
			_, dial := p.b.Dial(deadlineCtx(t), netip.AddrPortFrom(p.a.localAddr(), 7), cfg)
			_, listen := p.b.Listen(7, cfg)
			bad = append(bad, dial, listen)
		}
		for _, err := range bad {
			var le *LocalAddrError
			is := errors.As(err, &le) && le.Addr == own && errors.Is(err, syscall.EADDRNOTAVAIL)
			check.That(t, is != row.ok && is != (err == nil), "%s: %v", row.addr, err)
		}
	}
	// a link that does not say what it has
	check.OK(t, (&Transport{link: struct{ rawio.Link }{}}).checkLocalAddrs([]netip.Addr{p.bAddr}))
	loop := &Transport{link: addressed{own: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}}}
	for addr, ok := range map[string]bool{"127.0.0.2": true, "10.77.0.1": false, "::1": false} {
		err := loop.checkLocalAddrs([]netip.Addr{netip.MustParseAddr(addr)})
		check.That(t, (err == nil) == ok, "%s of the loopback interface: %v", addr, err)
	}
}

// expectEvent wants the next event to be of that kind.
func expectEvent(t *testing.T, c *Conn, k EventKind) Event {
	t.Helper()
	ev, err := c.NextEvent(deadlineCtx(t))
	must.That(t, err == nil && ev.Kind == k, "event %v, %v, want %v", ev.Kind, err, k)
	return ev
}

func TestEventsOfALife(t *testing.T) {
	// req 9260-11.2-1, 9260-11.2-2, 5061-4.2.6-1, 5061-4.2.6-3
	eachFamily(t, eventsOfALife)
}

func eventsOfALife(t *testing.T, p *pair) {
	layer := uint32(77)
	client := &Config{Events: 8, EventKinds: AllEvents(), DisablePMTUD: true}
	server := &Config{Events: 8, Adaptation: &layer, DisablePMTUD: true}
	c, s := p.connect(t, client, server)
	if ev := expectEvent(t, c, EventUp); ev.Path != p.bAddr {
		t.Errorf("%+v", ev)
	}
	if ev := expectEvent(t, c, EventAdaptation); ev.Adaptation != layer {
		t.Errorf("%+v", ev)
	}
	expectEvent(t, s, EventUp) // the client announced none
	must.Do(c.WriteMsg([]byte("hello"), SendInfo{}))(t)
	expectEvent(t, c, EventSenderDry)
	go c.Close()
	expectEvent(t, s, EventPeerShutdown)
	if ev := expectEvent(t, s, EventDown); !errors.Is(ev.Err, assoc.ErrShutdown) {
		t.Errorf("%+v", ev)
	}
	expectEvent(t, c, EventDown)
	_, err := s.NextEvent(context.Background())
	check.That(t, err == io.EOF, "after the last: %v", err)
}

func TestEventsAreBounded(t *testing.T) {
	p := newPair(t)
	c, s := p.connect(t, &Config{Events: 3, EventKinds: AllEvents(), DisablePMTUD: true}, nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	expectEvent(t, c, EventUp)
	check.Fails(c.NextEvent(ctx))(t, "with nothing to report", context.Canceled)
	cause := func(n int) {
		for range n {
			c.lock()
			c.queueEvent(assoc.Event{Kind: EventPrimary})
			c.unlock()
		}
	}
	told := func(want int, kind EventKind) {
		t.Helper()
		check.Equal(t, "events lost", expectEvent(t, c, kind).Lost, want)
	}
	cause(10)
	told(0, EventPrimary)
	cause(1)
	cause(2)
	c.Abort("enough")
	told(0, EventPrimary)
	told(0, EventPrimary)
	told(7, EventPrimary)
	told(2, EventDown)
	check.Equal(t, "events lost in all", p.a.Stats().EventsLost, 9)
	check.Fails(s.NextEvent(context.Background()))(t, "without Config.Events", ErrNoEvents)
}

// That all has been acknowledged is told once, however often it comes to that before anybody asks:
// it leaves room for what else there is to tell.
func TestDryIsToldOnce(t *testing.T) {
	p := newPair(t)
	c, s := p.connect(t, &Config{Events: 3, EventKinds: AllEvents(), DisablePMTUD: true}, nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	expectEvent(t, c, EventUp)
	for range 2 {
		for range 10 {
			must.Do(c.WriteMsg([]byte("x"), SendInfo{SackNow: true}))(t)
			readOne(t, s)
			for c.Stats().Outstanding > 0 { // each look serves the association
			}
		}
		expectEvent(t, c, EventSenderDry)
		check.Fails(c.NextEvent(ctx))(t, "with nothing more to report", context.Canceled)
	}
	check.Equal(t, "events lost", p.a.Stats().EventsLost, 0)
}

func TestFailedMessagesComeBack(t *testing.T) {
	p, local, remote, out := newHomes(t)
	cfg := quickTimers(local)
	cfg.AssocMaxRetrans, cfg.EventKinds = 2, AllEvents()
	c, _ := p.connect(t, cfg, quickTimers(remote))
	expectEvent(t, c, EventUp)
	awaitEvent(t, c, EventPathUp, remote[1])
	must.Do(c.WriteMsg([]byte("arrives"), SendInfo{}))(t)
	awaitEvent(t, c, EventSenderDry, netip.Addr{})
	out[0].Store(true)
	out[1].Store(true)
	const count = 40
	message := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 1000+i) }
	for i := range count {
		must.Do(c.WriteMsg(message(i), SendInfo{Stream: uint16(i % 3), PPID: uint32(i), Unordered: i%2 == 1}))(t)
	}
	unsent := 0
	for i := range count { // req 9260-11.1-10, 9260-8.1-4, 9260-11.2-1: oldest first, sent ones too
		ev := awaitEvent(t, c, EventSendFailed, netip.Addr{})
		must.That(t, bytes.Equal(ev.Message, message(i)) &&
			ev.Info == (SendInfo{Stream: uint16(i % 3), PPID: uint32(i), Unordered: i%2 == 1}),
			"message %d: %d octets, %+v", i, len(ev.Message), ev.Info)
		if ev.Unsent {
			unsent++
		} else if unsent > 0 {
			t.Errorf("message %d was sent, one before it was not", i)
		}
	}
	check.That(t, unsent != 0 && unsent != count, "%d of %d were never transmitted", unsent, count)
	ev := awaitEvent(t, c, EventDown, netip.Addr{})
	check.That(t, errors.Is(ev.Err, assoc.ErrTimeout), "%+v", ev)
}

// newReborn returns the two lives of a client, and the server that takes them for one.
func newReborn(t *testing.T) (clients [2]*Transport, b *Transport, server *mempair.RestartLink) {
	t.Helper()
	server = &mempair.RestartLink{In: make(chan rawio.Packet), Intr: make(chan struct{}, 1)}
	for i := range clients {
		la, lb := mempair.New(t, mem.Options{MTU: 1500})
		clients[i] = must.Get(NewTransport(la, nil))(t)
		t.Cleanup(func() { clients[i].Close() })
		server.Link, server.Lives[i] = lb, lb
	}
	go server.Run()
	b = must.Get(NewTransport(server, nil))(t)
	t.Cleanup(func() { b.Close() })
	return clients, b, server
}

// A peer that restarts takes nothing along: what it had not acknowledged is reported, and the room
// in the send buffer comes back.
func TestSendBufferAfterARestart(t *testing.T) {
	clients, b, server := newReborn(t)
	cfg := quickTimers(nil)
	cfg.SendBuffer, cfg.Events = 8000, 16
	l := must.Get(b.Listen(7, cfg))(t)
	ctx := deadlineCtx(t)
	to := netip.AddrPortFrom(server.LocalAddrs()[0].Addr(), 7)
	client := &Config{LocalPort: 5555}
	must.Do(clients[0].Dial(ctx, to, client))(t)
	s := must.Get(l.Accept(ctx))(t)
	expectEvent(t, s, EventUp)
	server.Life.Store(mempair.Dead) // the host crashes: nobody acknowledges these
	message := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 1000) }
	for i := range 8 {
		must.Do(s.WriteMsg(message(i), SendInfo{}))(t)
	}
	waits := make(chan error, 1)
	go func() { _, err := s.WriteMsg(message(9), SendInfo{}); waits <- err }()
	stacks := make([]byte, 1<<20)
	until(t, "a writer for whom there is no room", func() bool {
		return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("(*signal).Wait("))
	})
	server.Life.Store(1)
	c := must.Get(clients[1].Dial(ctx, to, client))(t)
	for i := range 8 {
		ev := awaitEvent(t, s, EventSendFailed, netip.Addr{})
		// req 9260-5.2.4-7
		must.That(t, bytes.Equal(ev.Message, message(i)) && ev.Kind == EventSendFailed, "message %d: % x", i,
			ev.Message[:4])
	}
	expectEvent(t, s, EventRestart)
	buf := make([]byte, 2000)
	n, _, err := c.ReadMsg(buf)
	check.That(t, err == nil && bytes.Equal(buf[:n], message(9)) && <-waits == nil,
		"who has waited for room: %d octets, %v", n, err)
	for i := range 20 { // more than the buffer holds: it is free again
		must.Do(s.WriteMsg(message(i), SendInfo{}))(t)
		n, _, err := c.ReadMsg(buf)
		must.That(t, err == nil && bytes.Equal(buf[:n], message(i)), "message %d: %d octets, %v", i, n, err)
	}
}

// Of a host with addresses of both families one may not answer. Dial goes on to the next address
// when T1-init expires, by a name 250 ms later and beside the first (RFC 8305), and whichever
// family answers carries the association. Where this host tells both of its addresses, the other
// family is a path as soon as it works.
func TestDialByTheFamilyThatAnswers(t *testing.T) {
	for _, row := range []struct {
		name  string
		first int // the address that is tried first, 0 is of IPv4
		dead  int
		tells bool // this host has a list of both
		byTwo bool // the addresses are those of a name
		after time.Duration
	}{
		{"IPv4 is silent", 0, 0, false, false, time.Second},
		{"IPv6 is silent", 1, 1, false, false, time.Second},
		{"IPv4 is silent, and tried last", 1, 0, false, false, 0},
		{"IPv6 is silent, and tried last", 0, 1, false, false, 0},
		{"IPv4 is silent, both are told", 0, 0, true, false, time.Second},
		{"IPv6 is silent, both are told", 1, 1, true, false, time.Second},
		{"IPv4 is silent, by a name", 0, 0, false, true, 250 * time.Millisecond},
		{"IPv6 is silent, by a name", 1, 1, false, true, 250 * time.Millisecond},
		{"IPv6 is silent, by a name, both are told", 1, 1, true, true, 250 * time.Millisecond},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, local, remote, out := newHomesIn(t, "10.1.0.", "fd00:2::")
				out[row.dead].Store(true)
				l := must.Get(p.b.Listen(7, &Config{LocalAddrs: remote}))(t)
				defer l.Close()
				cfg, began := &Config{Events: 8, HeartbeatInterval: time.Second}, time.Now()
				if row.tells {
					cfg.LocalAddrs = local
				}
				to := func(i int) netip.AddrPort { return netip.AddrPortFrom(remote[i], 7) }
				var c *Conn
				if row.byTwo {
					c,
						_ = must.Two(raceAttempts(t.Context(),
						[]dialAttempt{{p.a, rawLink, to(row.first), localRoute{}, nil},
							{p.a, rawLink, to(1 - row.first), localRoute{}, nil}}, cfg, 0))(t)
				} else {
					cfg.RemoteAddrs = remote[1-row.first : 2-row.first]
					c = must.Get(p.a.Dial(t.Context(), to(row.first), cfg))(t)
				}
				defer c.Abort("")
				check.Equal(t, "Dial has taken", time.Since(began), row.after)
				s := must.Get(l.Accept(t.Context()))(t)
				defer s.Abort("")
				must.Do(c.WriteMsg([]byte("x"), SendInfo{}))(t)
				readOne(t, s)
				must.Do(s.WriteMsg([]byte("x"), SendInfo{}))(t)
				readOne(t, c)
				check.Equal(t, "the peer's address", c.RemoteAddr().(Addr).Addr(), remote[1-row.dead])
				out[row.dead].Store(false)
				time.Sleep(time.Minute) // of virtual time
				paths := 1
				if row.tells {
					paths = 2
				}
				for _, x := range c.Paths() {
					check.That(t, x.State == assoc.PathActive && (row.tells || x.Remote.Addr() == remote[1-row.dead]),
						"%+v", x)
				}
				check.Equal(t, "paths", len(c.Paths()), paths)
				check.That(t, s.Err() == nil && c.Err() == nil && l.acceptQueue.readyCount() == 0,
					"ended by %v and %v, or there are two", c.Err(), s.Err())
			})
		})
	}
}
