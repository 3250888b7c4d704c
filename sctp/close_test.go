package sctp

import (
	"fmt"
	"io"
	"net/netip"
	"syscall"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
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
	until(t, "the COOKIE ECHO's arrival", func() bool { return l.waits() == 1 })
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
	ctx := deadlineCtx(t)
	go func() {
		for c, err := l.Accept(ctx); err == nil; c, err = l.Accept(ctx) {
			c.Abort("at once")
		}
	}()
	for range 300 {
		must.Get(p.a.Dial(ctx, netip.AddrPortFrom(p.bAddr, l.Port()), nil))(t)
	}
	must.OK(t, l.Close())
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
						skim(t, pair[1])
					}
					must.Do(pair[1].WriteMsg([]byte("from"), SendInfo{}))(t)
					skim(t, pair[0])
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
