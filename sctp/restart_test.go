package sctp

import (
	"context"
	"fmt"
	"net/netip"
	"syscall"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
)

// A peer that has restarted is known by its new tag, also from an address that it has not named.
func TestRestartedPeerIsFoundByItsNewTag(t *testing.T) {
	clients, b, server := newReborn(t)
	l := must.Get(b.Listen(7, nil))(t)
	ctx := deadlineCtx(t)
	dial := func(i int) {
		t.Helper()
		must.Do(clients[i].Dial(ctx, netip.AddrPortFrom(server.LocalAddrs()[0].Addr(), 7), &Config{LocalPort: 5555}))(t)
	}
	dial(0)
	s := must.Get(l.Accept(context.Background()))(t)
	found := func() bool {
		p := heartbeatTo(s, "x")
		p.Remote = netip.MustParseAddrPort("10.9.9.9:0")
		b.mu.RLock()
		defer b.mu.RUnlock()
		a, _ := b.ep.Lookup(&p)
		return a != nil
	}
	a, _ := s.lock()
	before := a.LocalTag()
	s.unlock()
	until(t, "the first tag's entry", found)
	server.Life.Store(1)
	dial(1)
	until(t, "the restart", func() bool {
		a, _ := s.lock()
		defer s.unlock()
		return a.LocalTag() != before
	})
	until(t, "the new tag's entry", found)
}

// Close holds also when the peer restarts before it is through: the association ends, and the
// peer's next one goes where new ones go.
func TestCloseIsNotForgottenWhenThePeerRestarts(t *testing.T) {
	ends := []struct {
		name string
		end  func(*Conn) error
	}{
		{"Close", (*Conn).Close},
		{"a shutdown without Close, as by SCTP_EOF", func(c *Conn) error {
			a, now := c.lock()
			err := a.Shutdown(now)
			c.unlock()
			<-c.Done()
			if c.Err() != ErrSucceeded {
				return c.Err()
			}
			return err
		}},
	}
	for _, end := range ends {
		for _, unsent := range []bool{false, true} {
			for _, shape := range []string{"Listener", "Listener that was closed", "Socket"} {
				t.Run(fmt.Sprintf("%s, messages unsent: %v, %s", end.name, unsent, shape), func(t *testing.T) {
					clients, b, server := newReborn(t)
					ctx := deadlineCtx(t)
					to := netip.AddrPortFrom(server.LocalAddrs()[0].Addr(), 7)
					client := *quiet
					client.LocalPort = 5555
					dial := func(i int) (*Conn, error) { return clients[i].Dial(ctx, to, &client) }
					var l *Listener
					var sock *Socket
					cfg := *quiet
					if cfg.Events = 16; shape == "Socket" {
						sock = must.Get(b.OpenSocket(7, &cfg))(t)
						l = sock.listener
					} else {
						l = must.Get(b.Listen(7, &cfg))(t)
					}
					must.Do(must.Get(dial(0))(t).WriteMsg([]byte("hello"), SendInfo{}))(t)
					var s *Conn
					buf := make([]byte, 100)
					if sock != nil {
						_, s, _, _ = sock.ReadMsg(buf)
					} else {
						s = must.Get(l.Accept(ctx))(t)
						readOne(t, s)
					}
					if shape == "Listener that was closed" {
						must.OK(t, l.Close())
					}
					server.Life.Store(mempair.Dead)
					if unsent {
						must.Do(s.WriteMsg([]byte("nobody hears it"), SendInfo{}))(t)
					}
					ended := make(chan error, 1)
					go func() { ended <- end.end(s) }()
					until(t, "the shutdown", func() bool { return s.Stats().State != Established })
					server.Life.Store(1)
					c, err := dial(1)
					closed := <-ended
					check.That(t, (closed != nil) == (unsent && end.name == "Close"), "Close returned %v", closed)
					check.Error(t, "the association ended", s.Err(), ErrSucceeded)
					failed := 0
					for ev, err := s.NextEvent(ctx); err == nil; ev, err = s.NextEvent(ctx) {
						check.That(t, ev.Kind != EventRestart, "a restart is reported")
						if ev.Kind == EventSendFailed {
							failed++
						}
					}
					check.That(t, (failed == 1) == unsent, "%d messages are reported as failed", failed)
					if shape == "Listener that was closed" {
						check.Error(t, "the next Dial", err, syscall.ECONNREFUSED)
						return
					}
					must.OK(t, err)
					check.Equal(t, "packets of the next setup: INIT and COOKIE ECHO", c.Stats().PacketsOut, 2)
					must.Do(c.WriteMsg([]byte("hello again"), SendInfo{}))(t)
					next, n := (*Conn)(nil), 0
					if sock != nil {
						n, next, _, err = sock.ReadMsg(buf)
					} else {
						next = must.Get(l.Accept(ctx))(t)
						n, _, err = next.ReadMsg(buf)
					}
					must.That(t, err == nil && next != s && string(buf[:n]) == "hello again",
						"read %q, %v, of the association before: %v", buf[:n], err, next == s)
					must.Do(next.WriteMsg([]byte("welcome back"), SendInfo{}))(t)
					readOne(t, c)
				})
			}
		}
	}
}
