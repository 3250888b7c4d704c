package sctp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/nettest"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio/udp"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// makePipes makes associations of two transports, as streams of octets.
func (p *pair) makePipes(t testing.TB, cfg *Config) nettest.MakePipe {
	l := must.Get(p.b.Listen(0, nil))(t)
	return func() (c1, c2 net.Conn, stop func(), err error) {
		c, err := p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(p.bAddr, l.Port()), cfg)
		if err != nil {
			return nil, nil, nil, err
		}
		s, err := l.StreamListener().Accept()
		return c.StreamConn(), s, func() {
			c.Abort("")
			s.(*StreamConn).Association().Abort("")
		}, err
	}
}

func TestStreamConnIsANetConn(t *testing.T) {
	t.Run("mem", func(t *testing.T) { nettest.TestConn(t, newPair(t).makePipes(t, nil)) })
	t.Run("udp", func(t *testing.T) {
		p := &pair{bAddr: netip.MustParseAddr("127.0.0.1")}
		var cfg Config
		for _, to := range []**Transport{&p.a, &p.b} {
			link := must.Get(udp.Open(udp.Config{Local: p.bAddr, Port: udp.AnyPort}))(t)
			*to = must.Get(NewTransport(link, nil))(t)
			defer (*to).Close()
			cfg.EncapPort = link.Port()
		}
		nettest.TestConn(t, p.makePipes(t, &cfg))
	})
}

// ended is a Stream whose Close ends the association too, as nothing else tells the peer's reader
// of an end.
type ended struct{ *Stream }

func (s ended) Close() error {
	s.Stream.Close()
	return s.c.Close()
}

func TestStreamIsANetConn(t *testing.T) {
	p := newPair(t)
	l := must.Get(p.b.Listen(0, nil))(t)
	nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
		c, err := p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(p.bAddr, l.Port()), nil)
		if err != nil {
			return nil, nil, nil, err
		}
		s, err := l.Accept(deadlineCtx(t))
		return ended{c.Stream(3)}, ended{s.Stream(3)}, func() {
			c.Abort("")
			s.Abort("")
		}, err
	})
}

// Close of a Stream ends its calls, those that wait too, and nobody else's.
func TestCloseOfAStreamEndsItsCalls(t *testing.T) {
	waits := func(t *testing.T, f func() error) <-chan error {
		done := make(chan error, 1)
		go func() { done <- f() }()
		select {
		case err := <-done:
			t.Fatalf("returned %v, and was to wait", err)
		case <-time.After(time.Millisecond): // in virtual time: when all others wait
		}
		return done
	}
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		c, s := p.connect(t, &Config{SendBuffer: 10_000}, &Config{RecvBuffer: 10_000})
		a, other := c.Stream(1), c.Stream(2)
		fill := func(s *Stream) func() error {
			return func() (err error) {
				for err == nil {
					_, err = s.Write(make([]byte, 4000))
				}
				return err
			}
		}
		reads := func(s *Stream) func() error { return func() error { return secondOf(s.Read(make([]byte, 9))) } }
		list := []<-chan error{waits(t, reads(a)), waits(t, reads(a)), waits(t, fill(a))}
		stays := []<-chan error{waits(t, reads(other)), waits(t, fill(other))}
		must.OK(t, a.Close())
		for i, done := range list {
			check.Error(t, fmt.Sprintf("call %d that waited", i), <-done, net.ErrClosed)
		}
		for _, row := range []struct {
			name string
			call func() error
		}{
			{"Read", reads(a)}, {"Write", fill(a)}, {"an empty Read", func() error { return secondOf(a.Read(nil)) }},
			{"an empty Write", func() error { return secondOf(a.Write(nil)) }},
			{"SetDeadline", func() error { return a.SetDeadline(time.Time{}) }},
			{"SetReadDeadline", func() error { return a.SetReadDeadline(past) }},
			{"SetWriteDeadline", func() error { return a.SetWriteDeadline(past) }},
		} {
			check.Error(t, row.name+" after Close", row.call(), net.ErrClosed)
		}
		check.OK(t, a.Close())
		for i, done := range stays {
			select {
			case err := <-done:
				t.Errorf("call %d of another stream: %v", i, err)
			default:
			}
		}
		check.That(t, c.Err() == nil && c.Stream(1) != a, "the association has ended, or the stream is not given back")
		c.Abort("")
		s.Abort("")
		for i, done := range stays {
			check.Error(t, fmt.Sprintf("call %d of another stream in the end", i), <-done, net.ErrClosed)
		}
	})
}

// stack is SCTP as package net sees it, or TCP of package net.
type stack struct {
	listen func(port int) (net.Listener, error)
	dial   func(ctx context.Context, to net.Addr) (net.Conn, error)
	reset  func(net.Conn)
}

var tcp = stack{
	func(port int) (net.Listener, error) { return net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)) },
	func(ctx context.Context, to net.Addr) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", to.String())
	},
	func(c net.Conn) { c.(*net.TCPConn).SetLinger(0); c.Close() },
}

func (p *pair) netStack() stack {
	return stack{
		func(port int) (net.Listener, error) {
			l, err := p.b.Listen(uint16(port), nil)
			if err != nil {
				return nil, err
			}
			return l.StreamListener(), nil
		},
		func(ctx context.Context, to net.Addr) (net.Conn, error) {
			c, err := p.a.Dial(ctx, to.(Addr).AddrPort, nil)
			if err != nil {
				return nil, err
			}
			return c.StreamConn(), nil
		},
		func(c net.Conn) { c.(*StreamConn).Association().Abort("") },
	}
}

var past = time.Unix(1, 0)

// What goes wrong has the same name as in package net, over TCP.
func TestErrorsAreThoseOfPackageNet(t *testing.T) {
	read := func(c net.Conn) error { return secondOf(c.Read(make([]byte, 1))) }
	writeOn := func(c net.Conn) (err error) {
		for err == nil {
			_, err = c.Write([]byte{1})
		}
		return err
	}
	pair := func(f func(c, d net.Conn, s stack) error) func(*testing.T, stack) error {
		return func(t *testing.T, s stack) error {
			l := must.Get(s.listen(0))(t)
			defer l.Close()
			c := must.Get(s.dial(deadlineCtx(t), l.Addr()))(t)
			d := must.Get(l.Accept())(t)
			defer s.reset(d)
			defer s.reset(c)
			return f(c, d, s)
		}
	}
	ended := func(end func(context.Context) (context.Context, context.CancelFunc)) func(*testing.T, stack) error {
		return func(t *testing.T, s stack) error {
			l := must.Get(s.listen(0))(t)
			defer l.Close()
			ctx, cancel := end(context.Background())
			cancel()
			return secondOf(s.dial(ctx, l.Addr()))
		}
	}
	sctp := newPair(t).netStack()
	for _, row := range []struct {
		name string
		do   func(*testing.T, stack) error
	}{
		{"nobody listens", func(t *testing.T, s stack) error {
			l := must.Get(s.listen(0))(t)
			l.Close()
			return secondOf(s.dial(deadlineCtx(t), l.Addr()))
		}},
		{"two listen", func(t *testing.T, s stack) error {
			l := must.Get(s.listen(0))(t)
			defer l.Close()
			_, port, _ := strings.Cut(l.Addr().String(), ":")
			n, _ := net.LookupPort("tcp", port)
			return secondOf(s.listen(n))
		}},
		{"accept after close", func(t *testing.T, s stack) error {
			l := must.Get(s.listen(0))(t)
			l.Close()
			return secondOf(l.Accept())
		}},
		{"dial, canceled", ended(context.WithCancel)},
		{"dial, too late", ended(func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithDeadline(ctx, past)
		})},
		{"the peer resets", pair(func(c, d net.Conn, s stack) error { s.reset(d); return read(c) })},
		{"the peer closes", pair(func(c, d net.Conn, s stack) error { d.Close(); return read(c) })},
		{"write when the peer has closed", pair(func(c, d net.Conn, s stack) error { d.Close(); read(c); return writeOn(c) })},
		{"closed under a read", pair(func(c, d net.Conn, s stack) error {
			end := make(chan error)
			go func() { end <- read(c) }()
			c.Close()
			return <-end
		})},
		{"read after close", pair(func(c, d net.Conn, s stack) error { c.Close(); return read(c) })},
		{"read after close, and too late", pair(func(c, d net.Conn, s stack) error { c.SetReadDeadline(past); c.Close(); return read(c) })},
		{"empty read after close", pair(func(c, d net.Conn, s stack) error { c.Close(); return secondOf(c.Read(nil)) })},
		{"write after close", pair(func(c, d net.Conn, s stack) error { c.Close(); return writeOn(c) })},
		{"close after close", pair(func(c, d net.Conn, s stack) error { c.Close(); return c.Close() })},
		{"deadline after close", pair(func(c, d net.Conn, s stack) error { c.Close(); return c.SetDeadline(past) })},
		{"read too late", pair(func(c, d net.Conn, s stack) error { c.SetReadDeadline(past); return read(c) })},
		{"read too late, although something has come", pair(func(c, d net.Conn, s stack) error {
			d.Write(make([]byte, 2))
			read(c)
			c.SetReadDeadline(past)
			return read(c)
		})},
		{"write too late", pair(func(c, d net.Conn, s stack) error { c.SetWriteDeadline(past); return writeOn(c) })},
	} {
		t.Run(row.name, func(t *testing.T) { sameError(t, row.do(t, sctp), row.do(t, tcp)) })
	}
	t.Run("nobody answers", func(t *testing.T) {
		link, to := &muted{last: make(map[netip.AddrPort][]byte), closed: make(chan struct{})},
			netip.MustParseAddrPort("10.9.9.9:7")
		tr := must.Get(NewTransport(link, nil))(t)
		defer tr.Close()
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := tr.Dial(ended, to, nil)
		check.That(t, errors.Is(err, context.Canceled) && link.takeSent(to) == nil,
			"a Dial that nobody waits for: %v, and something was sent", err)
		_, err = tr.Dial(deadlineCtx(t), to, &Config{RTOInitial: time.Millisecond, RTOMin: time.Millisecond,
			MaxInitRetrans: 1})
		sameError(t, err, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ETIMEDOUT)})
	})
}

// An INIT for which there is no way goes to the next address at once, whatever its timer says.
func TestDialTakesTheAddressThatThereIsAWayTo(t *testing.T) {
	p := newPair(t)
	l := must.Get(p.b.Listen(0, nil))(t)
	cfg := &Config{RemoteAddrs: []netip.Addr{p.bAddr}, RTOInitial: time.Hour, RTOMax: time.Hour}
	must.Do(p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(netip.MustParseAddr("10.9.9.9"), l.Port()), cfg))(t)
	must.Do(l.Accept(deadlineCtx(t)))(t)
}

func secondOf[T any](_ T, err error) error { return err }

// sameError compares an error to one of package net.
func sameError(t *testing.T, got, want error) {
	t.Helper()
	for _, is := range []error{syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ENETUNREACH, syscall.EHOSTUNREACH,
		syscall.ETIMEDOUT, syscall.EADDRINUSE, syscall.EPIPE,
		os.ErrDeadlineExceeded, net.ErrClosed, io.EOF, context.Canceled, context.DeadlineExceeded} {
		check.That(t, errors.Is(got, is) == errors.Is(want, is), "%v: is it %q? That of package net is: %v", got, is,
			want)
	}
	late := func(err error) bool { var n net.Error; return errors.As(err, &n) && n.Timeout() }
	check.That(t, late(got) == late(want), "%v: does it say that time is over? That of package net: %v", got, want)
}

func TestMessageConn(t *testing.T) {
	p := newPair(t)
	for _, row := range []struct {
		name string
		send []int // lengths of messages
		do   func(c, s *MessageConn) error
		buf  int
		n    int // read after that
		want error
	}{
		{"a message a call", []int{3, 4}, nil, 100, 3, nil},
		{"a buffer that is just long enough", []int{4, 3}, nil, 4, 4, nil},
		{"one octet too many", []int{5, 3}, nil, 4, 4, ErrTruncated},
		{"what is cut off never comes", []int{5000, 3}, func(c, s *MessageConn) error { s.Read(make([]byte, 4)); return nil }, 4, 3, nil},
		{"longer than the receive buffer", []int{20_000}, nil, 4, 4, syscall.EMSGSIZE},
		{"and its rest never comes", []int{20_000, 3}, func(c, s *MessageConn) error { s.Read(make([]byte, 4)); return nil }, 4, 3, nil},
		{"an empty message is refused", []int{3}, func(c, s *MessageConn) error {
			if n, err := c.Write(nil); n != 0 || !errors.Is(err, assoc.ErrEmptyMessage) {
				return fmt.Errorf("%d, %v", n, err)
			}
			return nil
		}, 100, 3, nil},
		{"an empty buffer takes nothing", []int{3}, func(c, s *MessageConn) error { return secondOf(s.Read(nil)) }, 100, 3, nil},
		{"nor of one without an order", nil, func(c, s *MessageConn) error {
			for _, n := range []int{20_000, 3} {
				c.Association().WriteMsg(make([]byte, n), SendInfo{Unordered: true})
			}
			s.Read(make([]byte, 4))
			return nil
		}, 4, 3, nil},
		{"too late, although one has come", []int{3}, func(c, s *MessageConn) error { return s.SetReadDeadline(past) }, 100, 0, os.ErrDeadlineExceeded},
		{"the peer's last message", []int{3}, func(c, s *MessageConn) error { go c.Close(); return nil }, 100, 3, nil},
		{"the peer has closed", nil, func(c, s *MessageConn) error { return c.Close() }, 100, 0, io.EOF},
		{"the peer has reset", nil, func(c, s *MessageConn) error { c.Association().Abort(""); return nil }, 100, 0, syscall.ECONNRESET},
		{"after close", nil, func(c, s *MessageConn) error { return s.Close() }, 100, 0, net.ErrClosed},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := must.Get(p.b.Listen(0, &Config{RecvBuffer: 8000}))(t)
			defer l.Close()
			a := must.Get(p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(p.bAddr, l.Port()), nil))(t)
			b := must.Get(l.MessageListener().Accept())(t)
			c, s := a.MessageConn(), b.(*MessageConn)
			defer s.Association().Abort("")
			defer a.Abort("")
			for i, n := range row.send {
				must.Do(c.Write(patternOf(i, n)))(t)
			}
			if row.do != nil {
				must.OK(t, row.do(c, s))
			}
			buf := make([]byte, row.buf)
			n, err := s.Read(buf)
			check.That(t, n == row.n && errors.Is(err, row.want), "%d octets, %v; want %d, %v", n, err, row.n, row.want)
		})
	}
}

// A stream of octets has what came before anybody had it, and ends where its peer has lost a part
// of it.
func TestStreamConnEndsWithARestart(t *testing.T) {
	clients, b, server := newReborn(t)
	l := must.Get(b.Listen(7, nil))(t)
	dial := func(i int) (*Conn, error) {
		return clients[i].Dial(deadlineCtx(t), netip.AddrPortFrom(server.LocalAddrs()[0].Addr(), 7),
			&Config{LocalPort: 5555})
	}
	c := must.Get(dial(0))(t)
	must.Do(c.StreamConn().Write([]byte("octets")))(t)
	a := must.Get(l.Accept(deadlineCtx(t)))(t)
	until(t, "their arrival", func() bool { return a.Stats().Buffered == 6 })
	s, buf := a.StreamConn(), make([]byte, 4)
	n, err := s.Read(buf)
	check.That(t, n == 4 && err == nil, "%d octets, %v", n, err)
	server.Life.Store(1)
	dial(1) // which fails, or is ended at once
	<-a.Done()
	n, err = s.Read(buf)
	check.That(t, n == 0 && errors.Is(err, ErrRestarted) && errors.Is(err, syscall.ECONNRESET),
		"%d octets of two lives, %v", n, err)
	check.Fails(s.Write(buf))(t, "written for the next life", ErrRestarted)
	check.Do(s.Read(nil))(t)
	c.lock() // its end has not been told yet
	defer c.unlock()
	c.abortOnRestart(c.t.now())
	check.Error(t, "why there is no more", c.end.closedErr(), ErrRestarted)
}
