package sctp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
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
	"github.com/rddp-go/rddp/sctp/endpoint"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestDialErrors(t *testing.T) {
	p := newPair(t)
	nobody := netip.AddrPortFrom(p.bAddr, 9)
	var dial *DialError
	_, err := p.a.Dial(deadlineCtx(t), nobody, nil)
	var abort *assoc.AbortError
	check.That(t, errors.As(err, &dial) && dial.Remote == nobody && errors.As(err, &abort) && abort.ByPeer &&
		!dial.Temporary(),
		"nobody listens: %v", err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	check.Fails(p.a.Dial(ctx, nobody, nil))(t, "context ended", context.Canceled)
	l := must.Get(p.a.Listen(0, nil))(t)
	check.Fails(l.Accept(ctx))(t, "Accept when the context has ended", context.Canceled)
	p.a.Close()
	check.Fails(p.a.Dial(deadlineCtx(t), nobody, nil))(t, "transport closed", net.ErrClosed)
	check.Equal(t, "address of a link without any", (&Transport{link: nowhere{}}).localAddr(), netip.Addr{})
	_, err = p.a.Listen(0, nil)
	check.That(t, err == ErrTransportClosed, "Listen when the transport is closed: %v", err)
}

// An association that is up when its Dial is given up is given up too, or returned.
func TestDialReturnsNoAssociationThatItHasAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		l := must.Get(p.b.Listen(0, nil))(t)
		for range 30 { // of two that are ready a select takes any
			ctx, cancel := context.WithCancel(t.Context())
			c, err := p.a.Dial(belated{ctx, cancel}, netip.AddrPortFrom(p.bAddr, l.Port()), nil)
			must.That(t, (c != nil) == (err == nil) && (err == nil || errors.Is(err, context.Canceled)), "%v, %v", c,
				err)
			check.That(t, c == nil || !isClosed(c.Done()), "it has been aborted")
		}
	})
}

// A host that has refused by one link may be silent by the other: it has the time of one
// retransmission.
func TestSilenceBesideARefusalIsWaitedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		la, lb := mempair.New(t, mem.Options{MTU: 1500})
		defer lb.Close()
		silent := must.Get(NewTransport(la, nil))(t)
		defer silent.Close()
		to, began := netip.AddrPortFrom(p.bAddr, 9), time.Now()
		_, _, err := raceAttempts(t.Context(), []dialAttempt{{p.a, rawLink, to, localRoute{}, nil},
			{silent, rawLink, to, localRoute{}, nil}}, &Config{RTOInitial: 2 * time.Second}, time.Hour)
		took := time.Since(began)
		check.That(t, errors.Is(err, syscall.ECONNREFUSED) && took >= 6*time.Second && took < 7*time.Second,
			"%v after %v", err, took)
		l := must.Get(p.b.Listen(9, nil))(t)
		began = time.Now()
		must.Two(raceAttempts(t.Context(), []dialAttempt{{silent, rawLink, to, localRoute{}, nil},
			{p.a, rawLink, to, localRoute{}, nil}}, &Config{}, 0))(t)
		check.Equal(t, "the second attempt by default comes after", time.Since(began), 250*time.Millisecond)
		must.OK(t, l.Close())
		closed := newPair(t).a
		closed.Close()
		for _, row := range []struct { // the reason is the first, but a refusal goes before silence
			first, last *Transport
			want        error
			took        time.Duration // that silence which nobody has refused is waited out
		}{{closed, p.a, ErrTransportClosed, 0}, {p.a, closed, syscall.ECONNREFUSED, 0},
			{silent, p.a, syscall.ECONNREFUSED, 7}, {silent, closed, syscall.ETIMEDOUT, 7},
			{closed, silent, ErrTransportClosed, 7}} {
			began := time.Now()
			_, _, err := raceAttempts(t.Context(), []dialAttempt{{row.first, rawLink, to, localRoute{}, nil},
				{row.last, rawLink, to, localRoute{}, nil}}, &Config{MaxInitRetrans: 2}, time.Hour)
			check.Error(t, "why", err, row.want)
			check.Equal(t, "took seconds", time.Since(began)/time.Second, row.took)
		}
	})
}

// Of attempts that have failed the error is not that one was overtaken by another.
func TestOvertakenIsNoReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, links := apiPair(t)
		links[0].Chunk.Store(10) // COOKIE ECHO
		var list []dialAttempt
		for range 2 {
			l := must.Get(b.Listen(0, nil))(t)
			list = append(list, dialAttempt{a, rawLink, netip.AddrPortFrom(addrsB[0].Addr(), l.Port()), localRoute{},
				nil})
		}
		_, _, err := raceAttempts(t.Context(), list, &Config{}, time.Millisecond)
		check.That(t, errors.Is(err, syscall.ETIMEDOUT) && !errors.Is(err, assoc.ErrOvertaken), "%v", err)
		time.AfterFunc(2*time.Second, func() { links[0].Chunk.Store(0) }) // behind the last COOKIE ECHO of the first
		_, by := must.Two(raceAttempts(t.Context(), list, &Config{MaxInitRetrans: 1}, time.Hour))(t)
		check.That(t, by == &list[1], "not the attempt that began when the one that was answered had failed")
	})
}

// An attempt is not overtaken by itself: it goes on when its cookie has become stale, and the peer
// answers once more.
func TestAttemptIsAnsweredTwice(t *testing.T) {
	for at := range 2 {
		synctest.Test(t, func(t *testing.T) {
			a, b, links := apiPair(t)
			links[0].Chunk.Store(10) // COOKIE ECHO
			l := must.Get(b.Listen(0, &Config{CookieLife: 100 * time.Millisecond}))(t)
			// where nobody is
			list := slices.Repeat([]dialAttempt{{a, rawLink, netip.AddrPortFrom(addrsB[0].Addr(), 9), localRoute{},
				nil}}, 2)
			list[at].remote = netip.AddrPortFrom(addrsB[0].Addr(), l.Port())
			end := startBlocked(func() error {
				_, _, err := raceAttempts(t.Context(), list, &Config{}, time.Millisecond)
				return err
			})
			time.Sleep(500 * time.Millisecond) // of virtual time
			links[0].Chunk.Store(0)
			check.That(t, <-end == nil && b.Stats().Endpoint.StaleCookies > 0, "it fails, or no cookie was stale")
		})
	}
}

// Where the peer listens by a port of UDP of its own, packets over UDP go there, unless the program
// says where they go, and no others.
func TestEncapsulationPortIsOfAttemptsByUDP(t *testing.T) {
	for _, row := range []struct {
		kind       linkKind
		told, want uint16
	}{{udpLink, 0, 7}, {udpLink, 5, 5}, {rawLink, 0, 0}, {rawLink, 5, 5}} {
		b := newBesieged(t, 0, nil)
		_, _, err := raceAttempts(t.Context(),
			[]dialAttempt{{b.Transport, row.kind, netip.MustParseAddrPort("10.0.0.2:1"), localRoute{encapPort: 7},
				nil}},
			&Config{EncapPort: row.told, RTOInitial: time.Millisecond, RTOMin: time.Millisecond, MaxInitRetrans: 1},
			time.Hour)
		check.Error(t, "by a link that says nothing", err, syscall.ETIMEDOUT)
		check.Equal(t, "port of UDP by "+string(row.kind), b.link.encap, row.want)
	}
}

func TestPortInUse(t *testing.T) {
	p := newPair(t)
	l := must.Get(p.b.Listen(4000, nil))(t)
	p.a.mu.Lock()
	for range 65536 - 49152 { // whoever asks for any port gets a dynamic one, until there are none
		port, err := p.a.bindListenPort(0)
		must.That(t, err == nil && port >= 49152 && p.a.ports.users[port] == 1, "port %d, %v", port, err)
	}
	port, err := p.a.bindListenPort(0)
	check.That(t, errors.Is(err, rawio.ErrPortInUse), "port %d, %v with none free", port, err)
	p.a.releasePort(50_000, time.Hour)
	port, err = p.a.bindListenPort(0)
	check.That(t, errors.Is(err, rawio.ErrPortInUse), "port %d, %v where only one that lingers is free", port, err)
	p.a.mu.Unlock()
	bad := &Config{LocalPort: 4001, MaxMessage: -1}
	for range 2 { // the port of what has failed is free
		var wrong *assoc.ConfigError
		_, err := p.b.Listen(4001, bad)
		check.That(t, errors.As(err, &wrong), "Listen with a bad configuration: %v", err)
		_, err = p.b.Dial(deadlineCtx(t), netip.AddrPortFrom(p.a.localAddr(), 1), bad)
		check.That(t, errors.As(err, &wrong), "Dial with a bad configuration: %v", err)
	}
	check.Equal(t, "ports of Dials that have failed", len(p.b.ports.dialUsers), 0)
	_, err = p.b.Listen(4000, nil)
	check.That(t, errors.Is(err, rawio.ErrPortInUse) && errors.Is(err, syscall.EADDRINUSE), "second listener: %v", err)
	l.Close()
	_, err = p.b.Listen(4000, nil)
	check.That(t, err == nil, "the port is not free after Close: %v", err)
	check.Fails(l.Accept(context.Background()))(t, "accept on a closed listener", net.ErrClosed)
}

// A port serves associations of Dial with different peers, and nobody else; where few are free a
// Dial gets one that others have.
func TestDialsShareAPort(t *testing.T) {
	p := newPair(t)
	ctx := deadlineCtx(t)
	var to [3]netip.AddrPort
	for i := range to {
		l := must.Get(p.b.Listen(uint16(7+i), nil))(t)
		defer l.Close()
		to[i] = netip.AddrPortFrom(p.bAddr, l.Port())
	}
	own := &Config{LocalPort: 60_000}
	first, second := must.Get(p.a.Dial(ctx, to[0], own))(t), must.Get(p.a.Dial(ctx, to[1], own))(t)
	check.Fails(p.a.Dial(ctx, to[0], own))(t, "a second association between the same", endpoint.ErrExists)
	check.Fails(p.a.Dial(ctx, to[2], &Config{LocalPort: 60_000, LocalAddrs: []netip.Addr{p.a.localAddr()}}))(t,
		"a Dial from one address alone", rawio.ErrPortInUse)
	alone := &Config{LocalPort: 60_001, LocalAddrs: []netip.Addr{p.a.localAddr()}}
	for _, peer := range to[:2] {
		must.Do(p.a.Dial(ctx, peer, alone))(t)
	}
	check.Fails(p.a.Dial(ctx, to[2], &Config{LocalPort: 60_001}))(t,
		"a Dial from all addresses beside those from one", rawio.ErrPortInUse)
	check.Fails(p.a.Listen(60_000, nil))(t, "a listener on the port", rawio.ErrPortInUse)
	check.Fails(p.b.Dial(ctx, netip.AddrPortFrom(p.a.localAddr(), 1), &Config{LocalPort: 7}))(t,
		"a Dial from the port of a listener", rawio.ErrPortInUse)
	check.Equal(t, "ports of Dials that have failed", len(p.b.ports.dialUsers), 0)
	p.a.mu.Lock()
	for err := error(nil); err == nil; { // the others are for whoever has no other use for them
		_, err = p.a.bindListenPort(0)
	}
	p.a.mu.Unlock()
	any := must.Get(p.a.Dial(ctx, to[2], nil))(t)
	check.Equal(t, "port", any.RemoteAddr().(Addr).Port(), 9)
	check.Equal(t, "own port", any.LocalAddr().(Addr).Port(), 60_000)
	_, err := p.a.Dial(ctx, to[2], nil)
	check.That(t, errors.Is(err, rawio.ErrPortInUse) && !errors.Is(err, endpoint.ErrExists),
		"one more with a peer: %v, and the port is said to be free", err)
	for i, c := range []*Conn{first, any, second} {
		c.Abort("")
		<-c.Done()
		p.a.mu.Lock()
		// it lingers
		check.That(t, p.a.ports.users[60_000] == max(2-i, 1) && p.a.ports.dialUsers[60_000] == 2-i,
			"%d users of the port, %d of Dial", p.a.ports.users[60_000], p.a.ports.dialUsers[60_000])
		p.a.mu.Unlock()
	}
}

// Nobody accepts: associations beyond the backlog are refused before the COOKIE ACK, so that no
// Dial succeeds for nothing, and no message is acknowledged that nobody can read.
func TestDialBeyondTheBacklogIsRefused(t *testing.T) {
	// req 9260-5.1-9
	p := newPair(t)
	l := must.Get(p.b.Listen(0, &Config{Backlog: 3}))(t)
	to := netip.AddrPortFrom(p.bAddr, l.Port())
	for range 3 {
		must.OK(t, must.Get(p.a.Dial(deadlineCtx(t), to, nil))(t).probePeer())
	}
	check.That(t, l.readyCount() == 3 && !l.slots.IsFullFor(netip.MustParseAddr("10.9.9.9")),
		"%d wait, or they keep other hosts out", l.readyCount())
	before := p.b.Totals().DataIn
	for range 3 {
		_, err := p.a.Dial(deadlineCtx(t), to, nil)
		var refused *AbortError
		check.That(t, errors.As(err, &refused) && refused.Setup &&
			refused.Causes[0].Code == wire.CauseOutOfResource && errors.Is(err, syscall.ECONNREFUSED), "one more: %v",
			err)
	}
	check.Equal(t, "associations", len(p.b.liveConns()), 3)
	check.That(t, p.b.Totals().DataIn == before && p.b.Stats().AcceptRefused == 3,
		"DATA of those that were refused has come, or %d are counted", p.b.Stats().AcceptRefused)
	must.Do(l.Accept(deadlineCtx(t)))(t)
	must.Do(p.a.Dial(deadlineCtx(t), to, nil))(t)
	check.Fails(p.a.Dial(deadlineCtx(t), to, nil))(t, "one that is accepted leaves more than one place",
		syscall.ECONNREFUSED)
}
