package sctp

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
)

// pair is two transports joined by memory.
type pair struct {
	a, b  *Transport
	bAddr netip.Addr
	links [2]*mem.Link
}

func newPair(t testing.TB) *pair {
	t.Helper()
	la, lb, err := mem.Pair(mem.Options{MTU: 1500})
	if err != nil {
		t.Fatal(err)
	}
	return joinPair(t, la, lb, la, lb)
}

// joinPair runs the transports over a and b, which are la and lb or stand before them.
func joinPair(t testing.TB, la, lb *mem.Link, a, b rawio.Link) *pair {
	t.Helper()
	p := &pair{bAddr: lb.LocalAddrs()[0].Addr(), links: [2]*mem.Link{la, lb}}
	var err error
	if p.a, err = NewTransport(a, nil); err != nil {
		t.Fatal(err)
	}
	if p.b, err = NewTransport(b, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.a.Close()
		p.b.Close()
		for i, l := range p.links {
			if n := l.Outstanding(); n != 0 {
				t.Errorf("link %d: %d packet buffers were never released", i, n)
			}
		}
	})
	return p
}

// connect sets up one association.
func (p *pair) connect(t testing.TB, client, server *Config) (c, s *Conn) {
	t.Helper()
	l, err := p.b.Listen(0, server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	ctx := deadlineCtx(t)
	if c, err = p.a.Dial(ctx, netip.AddrPortFrom(p.bAddr, l.Port()), client); err != nil {
		t.Fatal(err)
	}
	if s, err = l.Accept(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // what a test leaves unread is given back
		c.Abort("")
		s.Abort("")
	})
	return c, s
}

// deadlineCtx keeps a broken test from hanging; no test waits for it.
func deadlineCtx(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}
