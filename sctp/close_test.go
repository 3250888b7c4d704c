package sctp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
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

// What the peer has sent before it shut down can be read after that.
func TestMessagesOutliveTheAssociation(t *testing.T) {
	c, s := newPair(t).connect(t, nil, nil)
	for i := range 3 {
		must.Do(fmt.Fprint(c.Stream(0), i))(t)
	}
	must.OK(t, c.Close())
	<-s.Done()
	buf := make([]byte, 10)
	for i := range 3 {
		n, _, err := s.ReadMsg(buf)
		check.That(t, err == nil && string(buf[:n]) == fmt.Sprint(i), "message %d: %q, %v", i, buf[:n], err)
	}
	_, _, err := s.ReadMsg(buf)
	check.That(t, err == io.EOF, "then %v", err)
}

// An association that nobody has accepted ends with its Listener.
func TestListenerCloseAbortsWhatNobodyAccepted(t *testing.T) {
	p := newPair(t)
	l := must.Get(p.b.Listen(0, nil))(t)
	ctx := deadlineCtx(t)
	c := must.Get(p.a.Dial(ctx, netip.AddrPortFrom(p.bAddr, l.Port()), nil))(t)
	until(t, "the COOKIE ECHO's arrival", func() bool { return l.readyCount() == 1 })
	must.OK(t, l.Close())
	select {
	case <-c.Done():
		check.Error(t, "ended", c.Err(), syscall.ECONNRESET)
	case <-ctx.Done():
		t.Error("the association lives on")
	}
}

// Dial succeeds also when the association has ended by the time it looks.
func TestDialSucceedsForAnAssociationThatEndsAtOnce(t *testing.T) {
	p := newPair(t)
	l := must.Get(p.b.Listen(0, &Config{Backlog: 300}))(t) // room for all, however late they are accepted
	ctx, served := deadlineCtx(t), make(chan struct{})
	go func() {
		defer close(served)
		for c, err := l.Accept(ctx); err == nil; c, err = l.Accept(ctx) {
			c.Abort("at once")
		}
	}()
	for range 300 {
		must.Get(p.a.Dial(ctx, netip.AddrPortFrom(p.bAddr, l.Port()), nil))(t)
	}
	must.OK(t, l.Close())
	<-served // an Abort may handle a packet that has come meanwhile
}

// A server can listen again on its port while associations that it has accepted before live on, as
// with TCP: what comes goes to the new Listener, the old ones work, and the port is given back when
// nobody has it any more.
func TestListenAgainWhileAcceptedAssociationsLive(t *testing.T) {
	one, two := netip.MustParseAddrPort("10.0.0.2:0"), netip.MustParseAddrPort("10.0.0.3:0")
	at := func(list ...netip.AddrPort) (cfg Config) {
		cfg = *quiet
		for _, a := range list {
			cfg.LocalAddrs = append(cfg.LocalAddrs, a.Addr())
		}
		return cfg
	}
	for _, row := range []struct {
		name        string
		before, now Config
	}{
		{"all addresses again", at(), at()},
		{"one address again", at(one), at(one)},
		{"all, then one", at(), at(one)},
		{"one, then all", at(one), at()},
		{"one, then another", at(two), at(one)},
		{"one, then that and another", at(one), at(two, one)},
	} {
		for _, socket := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, then as a Socket: %v", row.name, socket), func(t *testing.T) {
				la, lb := mempair.New(t, mem.Options{MTU: 1500, B: []netip.AddrPort{one, two}})
				p := joinPair(t, la, lb, la, lb)
				const port = 5000
				dial := func(a netip.AddrPort) *Conn {
					return must.Get(p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(a.Addr(), port), quiet))(t)
				}
				first := one
				if len(row.before.LocalAddrs) > 0 {
					first = netip.AddrPortFrom(row.before.LocalAddrs[0], 0)
				}
				l := must.Get(p.b.Listen(port, &row.before))(t)
				c := dial(first)
				s := must.Get(l.Accept(deadlineCtx(t)))(t)
				check.Fails(p.b.Listen(port, &row.before))(t, "two Listeners at once", rawio.ErrPortInUse)
				must.OK(t, l.Close())
				check.Fails(p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(first.Addr(), port), quiet))(t,
					"Dial when nobody listens", syscall.ECONNREFUSED)
				var accept func() *Conn
				var again io.Closer
				if socket {
					sock := must.Get(p.b.OpenSocket(port, &row.now))(t)
					again = sock
					accept = func() *Conn {
						until(t, "the association of the Socket", func() bool {
							sock.mu.Lock()
							defer sock.mu.Unlock()
							return len(sock.conns) == 1
						})
						for _, c := range sock.conns {
							return c
						}
						return nil
					}
				} else {
					next := must.Get(p.b.Listen(port, &row.now))(t)
					again = next
					accept = func() *Conn { return must.Get(next.Accept(deadlineCtx(t)))(t) }
				}
				check.Fails(p.b.Listen(port, &row.now))(t, "two of the new ones at once", rawio.ErrPortInUse)
				d := dial(one)
				for i, pair := range [][2]*Conn{{c, s}, {d, accept()}} {
					must.Do(pair[0].WriteMsg([]byte("to"), SendInfo{}))(t)
					if i == 0 || !socket {
						readOne(t, pair[1])
					}
					must.Do(pair[1].WriteMsg([]byte("from"), SendInfo{}))(t)
					readOne(t, pair[0])
				}
				must.OK(t, again.Close())
				check.Fails(p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(one.Addr(), port), quiet))(t,
					"Dial when nobody listens", syscall.ECONNREFUSED)
				for _, c := range p.b.liveConns() {
					c.Abort("")
				}
				p.b.mu.Lock()
				defer p.b.mu.Unlock()
				check.That(t, len(p.b.ports.users)+len(p.b.ports.boundAddrs)+len(p.b.ports.linkBoundAddrs) == 0,
					"users %v, addresses %v, claims %v are left", p.b.ports.users, p.b.ports.boundAddrs,
					p.b.ports.linkBoundAddrs)
				check.OK(t, lb.BindPort(port))
			})
		}
	}
}

// A peer that does not answer is left after CloseTimeout; calls that wait end at once.
func TestCloseDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, links := apiPair(t)
		c, s := connectTransports(t, a, b, &Config{SendBuffer: 3000}, nil)
		defer s.Abort("")
		links[0].Lose.Store(true)
		must.Do(c.WriteMsg(make([]byte, 3000), SendInfo{}))(t)
		read := startBlocked(func() error { _, _, err := c.ReadMsg(nil); return err })
		write := startBlocked(func() error { _, err := c.WriteMsg([]byte("no room for it"), SendInfo{}); return err })
		began := time.Now()
		closed := startBlocked(c.Close)
		r, w := <-read, <-write
		check.That(t, r == net.ErrClosed && w == net.ErrClosed, "reader: %v, writer: %v", r, w)
		check.Equal(t, "they wait for", time.Since(began), 0)
		_, err := c.WriteMsg([]byte("more"), SendInfo{})
		check.That(t, err == net.ErrClosed, "while it ends: %v", err)
		err = <-closed
		check.That(t, err == os.ErrDeadlineExceeded && time.Since(began) == 10*time.Second && isClosed(c.Done()),
			"%v after %v, ended: %v", err, time.Since(began), isClosed(c.Done()))
	})
}

func TestCloseDeliversWhatWasWritten(t *testing.T) { eachFamily(t, closeDeliversWhatWasWritten) }

func closeDeliversWhatWasWritten(t *testing.T, p *pair) {
	c, s := p.connect(t, nil, nil)
	want := patternOf(3, 50_000)
	must.Do(c.WriteMsg(want, SendInfo{}))(t)
	closed := make(chan error)
	go func() { closed <- c.Close() }()
	buf := make([]byte, len(want))
	n, _, err := s.ReadMsg(buf)
	must.That(t, err == nil && bytes.Equal(buf[:n], want), "%d octets, %v", n, err)
	_, _, err = s.ReadMsg(buf)
	check.That(t, err == io.EOF, "error %v after the peer's graceful end, want io.EOF", err)
	check.Error(t, "close", <-closed, nil)
	check.Error(t, "second close", c.Close(), nil)
	check.Fails(c.WriteMsg(want, SendInfo{}))(t, "write after close", net.ErrClosed)
	check.Fails(c.WriteMsg(nil, SendInfo{}))(t, "an empty write after close", assoc.ErrEmptyMessage)
	_, _, err = c.ReadMsg(buf)
	check.That(t, errors.Is(err, net.ErrClosed), "read after close: %v", err)
}

// Close throws messages of the peer away that are unread, and does not let the peer take that for a
// graceful end: it hears of an ABORT, once it has all that was written here. A peer whose messages
// were all read, or come too late, is told of nothing.
func TestCloseWithMessagesUnreadTellsThePeer(t *testing.T) {
	small := &Config{RecvBuffer: 20_000, SendBuffer: 200_000}
	for _, row := range []struct {
		name   string
		before func(t *testing.T, c, s *Conn)
		unread bool
	}{
		{"nothing has come", func(t *testing.T, c, s *Conn) {}, false},
		{"a message was read", func(t *testing.T, c, s *Conn) {
			must.Do(s.WriteMsg([]byte("read"), SendInfo{}))(t)
			readOne(t, c)
		}, false},
		{"a message was not", func(t *testing.T, c, s *Conn) { must.OK(t, s.probePeer()) }, true},
		{"one was read in part", func(t *testing.T, c, s *Conn) {
			must.Do(s.WriteMsg([]byte("not all"), SendInfo{}))(t)
			must.Do(io.ReadFull(c.Stream(0), make([]byte, 3)))(t)
		}, true},
		{"one of a Stream was not", func(t *testing.T, c, s *Conn) {
			c.Stream(0)
			must.OK(t, s.probePeer())
		}, true},
		{"the peer has much more to send than there is room for", func(t *testing.T, c, s *Conn) {
			for range 150 {
				must.Do(s.WriteMsg(patternOf(1, 1000), SendInfo{}))(t)
			}
			until(t, "the first of it", func() bool { return c.Stats().Buffered > 0 })
		}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, s := newPair(t).connect(t, small, small)
			row.before(t, c, s)
			const answer = 100_000
			must.Do(c.Stream(1).Write(make([]byte, answer)))(t)
			got := make(chan int)
			go func() {
				n, _ := io.Copy(io.Discard, s.Stream(1))
				got <- int(n)
			}()
			check.Error(t, "close", c.Close(), nil)
			check.Equal(t, "octets of what was written before", <-got, answer)
			<-s.Done()
			if row.unread {
				var abort *AbortError
				check.That(t, errors.As(s.Err(), &abort) && abort.ByPeer &&
					string(abort.Reason()) == closedUnreadReason, "the peer hears of %v", s.Err())
			} else {
				check.Error(t, "the peer hears", s.Err(), ErrShutdown)
			}
		})
	}
}

// Associations whose peers are gone take one CloseTimeout to close, and not one each, together or
// one after the other.
func TestAssociationsThatCloseShareTheGracePeriod(t *testing.T) {
	for _, together := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			lossy := new(mempair.LossyLink)
			la, lb := mempair.New(t, mem.Options{MTU: 1500})
			lossy.Link = la
			p := joinPair(t, la, lb, lossy, lb)
			l := must.Get(p.b.Listen(7, quiet))(t)
			var list []*Conn
			for range 100 {
				list = append(list, must.Get(p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(p.bAddr, 7), quiet))(t))
				must.Do(l.Accept(deadlineCtx(t)))(t)
			}
			lossy.Lose.Store(true)
			began := time.Now()
			var wg sync.WaitGroup
			for _, c := range list {
				closes := func() { check.Error(t, "close", c.Close(), os.ErrDeadlineExceeded) }
				if together {
					wg.Go(closes)
				} else {
					closes()
				}
			}
			wg.Wait()
			took := time.Since(began)
			check.That(t, took >= 10*time.Second && took <= 11*time.Second, "together: %v: took %v", together, took)
		})
	}
}

// Close goes on beyond CloseTimeout while the peer acknowledges what was written, up to a limit,
// and not for a peer that hardly does.
func TestCloseGoesOnWhileThereIsProgress(t *testing.T) {
	for _, row := range []struct {
		name   string
		rate   int // octets a second that the peer reads
		takes  time.Duration
		result error
	}{
		{"2,000 octets a second", 2000, 50 * time.Second, nil},
		{"500 octets a second", 500, 10 * time.Second, os.ErrDeadlineExceeded},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := *quiet
				cfg.RecvBuffer = 2500
				c, s := newPair(t).connect(t, quiet, &cfg)
				const octets = 100_000
				for range octets / 500 {
					must.Do(c.WriteMsg(make([]byte, 500), SendInfo{}))(t)
				}
				var reader sync.WaitGroup
				reader.Go(func() {
					for err := error(nil); err == nil; time.Sleep(500 * time.Second / time.Duration(row.rate)) {
						_, _, err = s.ReadMsg(make([]byte, 500))
					}
				})
				defer reader.Wait()
				began := time.Now()
				err := c.Close()
				took := time.Since(began)
				check.Error(t, "close", err, row.result)
				check.That(t, took > row.takes*3/4 && took < row.takes*5/4, "took %v, want about %v", took, row.takes)
			})
		})
	}
}
