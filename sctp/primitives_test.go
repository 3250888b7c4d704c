package sctp

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/simlink"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

var (
	addrsA = []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:0"), netip.MustParseAddrPort("10.1.0.1:0")}
	addrsB = []netip.AddrPort{netip.MustParseAddrPort("10.0.0.2:0"), netip.MustParseAddrPort("10.1.0.2:0")}
)

// apiPair has two addresses on either side; the links can be made to lose packets.
func apiPair(t *testing.T) (a, b *Transport, links [2]*mempair.LossyLink) {
	t.Helper()
	la, lb := mempair.New(t, mem.Options{MTU: 1500, A: addrsA, B: addrsB})
	links = [2]*mempair.LossyLink{{Link: la}, {Link: lb}}
	a = must.Get(NewTransport(links[0], nil))(t)
	b = must.Get(NewTransport(links[1], nil))(t)
	t.Cleanup(func() {
		a.Close()
		b.Close()
	})
	return a, b, links
}

// overRoad returns the ends of a simulated road, at addrsA[0] and addrsB[0]. Call it in a bubble of
// synctest. wrap, unless it is nil, puts something before each link.
func overRoad(t *testing.T, road simnet.Params, wrap func(*simlink.Link) rawio.Link) (ends [2]*Transport) {
	t.Helper()
	net, at := simlink.New(1), [2]netip.Addr{addrsA[0].Addr(), addrsB[0].Addr()}
	net.Connect(at[0], at[1], road)
	for i := range ends {
		bare := net.Link(at[i])
		link := rawio.Link(bare)
		if wrap != nil {
			link = wrap(bare)
		}
		ends[i] = must.Get(NewTransport(link, nil))(t)
		t.Cleanup(func() { ends[i].Close() })
	}
	return ends
}

// connectTransports dials from a to a listener on b.
func connectTransports(t *testing.T, a, b *Transport, client, server *Config) (c, s *Conn) {
	t.Helper()
	l := must.Get(b.Listen(0, server))(t)
	c = must.Get(a.Dial(deadlineCtx(t), netip.AddrPortFrom(addrsB[0].Addr(), l.Port()), client))(t)
	s = must.Get(l.Accept(deadlineCtx(t)))(t)
	return c, s
}

// nextOfKind returns the next event of the kind, passing over others.
func nextOfKind(t *testing.T, c *Conn, kind EventKind) Event {
	t.Helper()
	for {
		ev, err := c.NextEvent(deadlineCtx(t))
		must.That(t, err == nil, "no %v: %v", kind, err)
		if ev.Kind == kind {
			return ev
		}
	}
}

func TestInitializePrimitive(t *testing.T) {
	// req 9260-11.1-1
	a, b, _ := apiPair(t)
	c, s := connectTransports(t, a, b, &Config{LocalPort: 4711, LocalAddrs: []netip.Addr{addrsA[0].Addr()}}, nil)
	got := s.RemoteAddr().String()
	check.That(t, got == "10.0.0.1:4711" && c.LocalAddr().String() == got, "the peer sees %s, the own address is %v",
		got, c.LocalAddr())
	for _, p := range s.Paths() {
		check.That(t, p.Remote.Addr() == addrsA[0].Addr(), "the peer learned of %v, which is not in the list", p.Remote)
	}
	_, err := a.Dial(deadlineCtx(t), netip.AddrPortFrom(addrsB[0].Addr(), 1), &Config{LocalPort: 4711})
	check.That(t, errors.Is(err, rawio.ErrPortInUse), "the same port twice: %v", err)
	l, err := b.Listen(0, nil)
	check.That(t, err == nil && l.Port() != 0, "no port was picked: %v", err)
	var ls []*Listener
	for i, size := range []int{0, -1, 0} { // what has failed at an address leaves the port to others there
		at := &Config{LocalAddrs: []netip.Addr{addrsB[min(i, 1)].Addr()}, MaxMessage: size}
		l, err := b.Listen(4712, at)
		ls = append(ls, l)
		check.That(t, (err != nil) == (size < 0), "listener %d: %v", i, err)
		if size < 0 {
			_, err = b.Dial(deadlineCtx(t), netip.AddrPortFrom(addrsA[0].Addr(), 1),
				&Config{LocalPort: 4712, LocalAddrs: at.LocalAddrs, MaxMessage: size})
			check.That(t, errors.As(err, new(*assoc.ConfigError)), "a Dial with a bad configuration: %v", err)
		}
	}
	for i, at := range addrsB { // each has its own, until it is closed
		to := netip.AddrPortFrom(at.Addr(), 4712)
		must.Do(a.Dial(deadlineCtx(t), to, nil))(t)
		must.Do(ls[2*i].Accept(deadlineCtx(t)))(t)
		must.OK(t, ls[2*i].Close())
		check.Fails(a.Dial(deadlineCtx(t), to, nil))(t, "where nobody listens any more", syscall.ECONNREFUSED)
	}
	elsewhere := netip.MustParseAddr("192.0.2.1")
	var bad *LocalAddrError
	_, err = a.Dial(deadlineCtx(t), netip.AddrPortFrom(addrsB[0].Addr(), 1),
		&Config{LocalAddrs: []netip.Addr{elsewhere}})
	check.That(t, errors.As(err, &bad), "an address that is not ours: %v", err)
}

func TestAssociatePrimitive(t *testing.T) {
	// req 9260-11.1-2
	a, b, _ := apiPair(t)
	c, s := connectTransports(t, a, b, &Config{RemoteAddrs: []netip.Addr{addrsB[1].Addr()}, OutStreams: 7}, nil)
	n, m := c.Stats().OutStreams, s.Stats().InStreams
	check.That(t, n == 7 && m == 7, "%d outbound streams, %d inbound at the peer, want 7", n, m)
	var has [2]bool
	for _, p := range c.Paths() {
		for i := range has {
			has[i] = has[i] || p.Remote.Addr() == addrsB[i].Addr()
		}
	}
	check.Equal(t, "paths to each address given", has, [2]bool{true, true})
	_, err := a.Dial(deadlineCtx(t), netip.AddrPortFrom(addrsB[0].Addr(), 9), nil)
	check.That(t, err != nil, "an association with nobody")
}

func TestReceivePrimitive(t *testing.T) {
	// req 9260-11.1-7
	a, b, _ := apiPair(t)
	c, s := connectTransports(t, a, b, nil, nil)
	for range 3 {
		must.Do(c.WriteMsg([]byte("0123456789"), SendInfo{Stream: 5, PPID: 77}))(t)
	}
	buf := make([]byte, 6)
	first := uint32(0)
	for i := range uint16(6) {
		n, info, err := s.ReadMsg(buf)
		if i == 0 {
			first = info.TSN
		}
		want := RecvInfo{Stream: 5, SSN: i / 2, TSN: first + uint32(i/2), PPID: 77, Size: 10, More: i%2 == 0}
		cum := info.CumTSN
		info.CumTSN = 0
		check.That(t, err == nil && n == []int{6, 4}[i%2] && info == want && cum-info.TSN < 3,
			"read %d: %d octets, %+v, %v; want %+v", i, n, info, err, want)
	}
}

func TestStatusPrimitive(t *testing.T) {
	// req 9260-11.1-8
	a, b, links := apiPair(t)
	c, s := connectTransports(t, a, b, &Config{Events: 10, EventKinds: AllEvents()}, &Config{RecvBuffer: 40_000})
	must.Do(c.WriteMsg(make([]byte, 10_000), SendInfo{}))(t)
	nextOfKind(t, c, EventSenderDry)
	st := c.Stats()
	check.That(t, st.State == assoc.Established && st.OutStreams == 10 && st.PeerWindow == 30_000 &&
		st.Unacked == 0 && st.Outstanding == 0 && st.Queued == 0, "%+v", st)
	st = s.Stats()
	check.That(t, st.Buffered == 10_000 && st.RecvWindow == 30_000, "%d octets wait to be read, window %d",
		st.Buffered, st.RecvWindow)
	p := c.Paths()[st.Primary]
	check.That(t, p.Remote == addrsB[0] && p.Primary && p.State == assoc.PathActive && p.SRTT > 0 &&
		p.RTO >= time.Second && p.Cwnd >= 4000,
		"primary path %+v", p)
	links[0].Lose.Store(true)
	must.Do(c.WriteMsg(make([]byte, 20_000), SendInfo{}))(t)
	st = c.Stats()
	check.That(t, st.Unacked >= 2 && st.Outstanding >= 2000 && st.Outstanding+st.Queued == 20_000,
		"%d chunks of %d octets unacknowledged, %d pending", st.Unacked, st.Outstanding, st.Queued)
}

func TestParametersAndHeartbeatPrimitives(t *testing.T) {
	// req 9260-11.1-9
	a, b, links := apiPair(t)
	c, _ := connectTransports(t, a, b, &Config{Events: 10, PathMaxRetrans: 1, RTOInitial: 50 * time.Millisecond,
		RTOMin: 10 * time.Millisecond, RTOMax: 50 * time.Millisecond,
		HeartbeatInterval: -1, PotentiallyFailedMaxRetrans: 1}, nil)
	peer := addrsB[0].Addr()
	before := c.Stats().HeartbeatsOut
	err := c.RequestHeartbeat(peer)
	check.That(t, err == nil && c.Stats().HeartbeatsOut == before+1, "request: %v, %d HEARTBEATs", err,
		c.Stats().HeartbeatsOut-before)
	links[0].Lose.Store(true)
	check.OK(t, c.SetHeartbeat(peer, time.Millisecond))
	check.Equal(t, "which path is down", nextOfKind(t, c, EventPathDown).Path, peer)
	stranger := netip.MustParseAddr("192.0.2.9")
	for i, err := range []error{c.RequestHeartbeat(stranger), c.SetHeartbeat(stranger, time.Second),
		c.SetPrimary(stranger)} {
		check.That(t, errors.Is(err, assoc.ErrNoPath), "call %d for an address that is not the peer's: %v", i, err)
	}
}

func TestNotifications(t *testing.T) {
	t.Run("COMMUNICATION UP, DATA ARRIVE, SHUTDOWN COMPLETE", func(t *testing.T) {
		a, b, _ := apiPair(t)
		c, s := connectTransports(t, a, b, &Config{Events: 10}, &Config{Events: 10})
		for _, x := range []*Conn{c, s} {
			ev := nextOfKind(t, x, EventUp)
			st, paths := x.Stats(), x.Paths()
			check.That(t, ev.Path == paths[st.Primary].Remote.Addr() && st.OutStreams == 10 && st.InStreams == 10,
				"up with %v, %d and %d streams", ev.Path, st.OutStreams, st.InStreams) // req 9260-11.2-2
		}
		arrived := make(chan string)
		go func() {
			buf := make([]byte, 10)
			n, _, _ := s.ReadMsg(buf) // blocks: the notification of DATA ARRIVE
			arrived <- string(buf[:n])
		}()
		must.Do(c.WriteMsg([]byte("hello"), SendInfo{}))(t)
		check.Equal(t, "what arrived", <-arrived, "hello")
		c.Close()
		nextOfKind(t, s, EventPeerShutdown)
		for _, x := range []*Conn{c, s} {
			check.Equal(t, "ended by", nextOfKind(t, x, EventDown).Err, assoc.ErrShutdown) // req 9260-11.2-1
			_, err := x.NextEvent(deadlineCtx(t))
			check.That(t, err == io.EOF, "after the last event: %v", err)
		}
	})
	t.Run("SEND FAILURE gives the messages back", func(t *testing.T) {
		a, b, links := apiPair(t)
		c, _ := connectTransports(t, a, b, &Config{Events: 10}, &Config{RecvBuffer: 3000})
		links[0].Lose.Store(true)
		sent, unsent := patternOf(1, 2000), patternOf(2, 2000) // the second does not fit the peer's window
		for i, m := range [][]byte{sent, unsent} {
			must.Do(c.WriteMsg(m, SendInfo{Stream: uint16(i), PPID: 9}))(t)
		}
		c.Abort("gone")
		// req 9260-11.1-10, 9260-11.2-1
		ev := nextOfKind(t, c, EventSendFailed)
		check.That(t, !ev.Unsent && bytes.Equal(ev.Message, sent) && ev.Info.Stream == 0 && ev.Info.PPID == 9,
			"first message: unsent %v, %d octets, %+v", ev.Unsent, len(ev.Message), ev.Info)
		ev = nextOfKind(t, c, EventSendFailed)
		check.That(t, bytes.Equal(ev.Message, unsent) && ev.Info.Stream == 1,
			"second message: unsent %v, %d octets, %+v", ev.Unsent, len(ev.Message), ev.Info)
	})
	t.Run("RESTART, COMMUNICATION ERROR, COMMUNICATION LOST with the peer's reason", func(t *testing.T) {
		// req 9260-11.2-3
		a, b, links := apiPair(t)
		cfg := &Config{LocalPort: 4711, LocalAddrs: []netip.Addr{addrsA[0].Addr()}}
		c, s := connectTransports(t, a, b, cfg, &Config{Events: 10})
		links[0].Chunk.Store(int32(wire.ChunkAbort))
		c.Abort("the peer does not hear of it")
		<-c.Done()
		to := netip.AddrPortFrom(addrsB[0].Addr(), uint16(s.LocalAddr().(Addr).Port()))
		c = must.Get(a.Dial(deadlineCtx(t), to, cfg))(t)
		check.Equal(t, "who restarted", nextOfKind(t, s, EventRestart).Path, addrsA[0].Addr())
		core, _ := s.lock()
		tag := core.LocalTag()
		s.unlock()
		pkt := wire.AppendHeader(nil, 4711, to.Port(), tag)
		pkt = append(pkt, wire.CloseChunk(wire.AppendInvalidStreamCause(wire.AppendError(nil), 3), 0)...)
		wire.PutChecksum(pkt, wire.ChecksumBytes(pkt))
		must.Do(links[0].WriteBatch([]rawio.Packet{{Vec: [][]byte{pkt}, Local: addrsA[0], Remote: addrsB[0]}}))(t)
		var peer *assoc.PeerError
		if ev := nextOfKind(t, s, EventPeerError); !errors.As(ev.Err, &peer) ||
			peer.Causes[0].Code != wire.CauseInvalidStream {
			t.Errorf("error %v", ev.Err)
		}
		links[0].Chunk.Store(0)
		c.Abort("the reason")
		ev := nextOfKind(t, s, EventDown)
		var abort *assoc.AbortError
		check.That(t, errors.As(ev.Err, &abort) && abort.ByPeer && string(abort.Reason()) == "the reason",
			"ended by %v", ev.Err)
	})
}

func TestNothingIsKeptOfAClosedAssociation(t *testing.T) {
	// req 9260-14-1
	a, b, _ := apiPair(t)
	for i := range 4 {
		c, s := connectTransports(t, a, b, nil, nil)
		if i%2 == 0 {
			c.Close()
		} else {
			c.Abort("")
		}
		<-c.Done()
		<-s.Done()
	}
	for _, x := range []*Transport{a, b} {
		x.mu.RLock()
		check.That(t, x.ep.Len() == 0 && len(x.conns) == 0,
			"%d associations in the endpoint, %d in the transport", x.ep.Len(), len(x.conns))
		x.mu.RUnlock()
	}
}
