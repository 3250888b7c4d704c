package sctp

import (
	"context"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
)

// pair is two transports joined by memory.
type pair struct {
	a, b  *Transport
	bAddr netip.Addr
	links [2]*mem.Link
	lists []netip.Addr // that b tells of, where the server's Config says nothing
}

// eachFamily runs a test between hosts of each family of addresses, and with a dual-stack one.
func eachFamily(t *testing.T, f func(t *testing.T, p *pair)) {
	for _, fam := range mempair.Families() {
		t.Run(fam.Name, func(t *testing.T) {
			la, lb := mempair.New(t, mem.Options{MTU: 1500, A: fam.A, B: fam.B})
			p := joinPair(t, la, lb, la, lb)
			p.lists = fam.Listed
			f(t, p)
		})
	}
}

func newPair(t testing.TB) *pair {
	t.Helper()
	la, lb := mempair.New(t, mem.Options{MTU: 1500})
	return joinPair(t, la, lb, la, lb)
}

// joinPair runs the transports over a and b, which are la and lb or stand before them.
func joinPair(t testing.TB, la, lb *mem.Link, a, b rawio.Link) *pair {
	t.Helper()
	p := &pair{bAddr: lb.LocalAddrs()[0].Addr(), links: [2]*mem.Link{la, lb}}
	p.a = must.Get(NewTransport(a, nil))(t)
	p.b = must.Get(NewTransport(b, nil))(t)
	t.Cleanup(func() {
		p.a.Close()
		p.b.Close()
	})
	return p
}

// adaptivePolicyOf returns the policy of a receiver, if that is not the simple one.
func (r *receiver) adaptivePolicyOf() *adaptivePolicy { return r.policy.(*adaptivePolicy) }

// needsAdaptive skips a test of what the simple read policy does not do.
func needsAdaptive(t testing.TB) {
	if t.Helper(); forceSimple {
		t.Skip("the simple read policy does not do that")
	}
}

// connect sets up one association.
func (p *pair) connect(t testing.TB, client, server *Config) (c, s *Conn) {
	t.Helper()
	if p.lists != nil {
		var cfg Config
		if server != nil {
			cfg = *server
		}
		cfg.LocalAddrs, server = p.lists, &cfg
	}
	l := must.Get(p.b.Listen(0, server))(t)
	t.Cleanup(func() { l.Close() })
	ctx := deadlineCtx(t)
	c = must.Get(p.a.Dial(ctx, netip.AddrPortFrom(p.bAddr, l.Port()), client))(t)
	s = must.Get(l.Accept(ctx))(t)
	t.Cleanup(func() { // what a test leaves unread is given back
		c.Abort("")
		s.Abort("")
	})
	return c, s
}

// readyCount returns how many associations wait for Accept.
func (q *acceptQueue) readyCount() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.ready)
}

// readOne reads a message.
func readOne(t testing.TB, c *Conn) {
	t.Helper()
	_, _, err := c.ReadMsg(make([]byte, 2000))
	must.OK(t, err)
}

// deadlineCtx keeps a broken test from hanging; no test waits for it.
func deadlineCtx(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// until waits for something that another goroutine does.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	must.That(t, becomesTrue(t, done), "%v, %v", what, "does not happen")
}

func becomesTrue(t *testing.T, done func() bool) bool {
	for ctx := deadlineCtx(t); !done(); runtime.Gosched() {
		if ctx.Err() != nil {
			return false
		}
	}
	return true
}

// sendTogether lets write happen while s is in use, so that what it sends waits in the backlog and
// is handled at once, n packets or more.
func sendTogether(t *testing.T, s *Conn, n int32, write func() error) {
	t.Helper()
	s.lock()
	err := write()
	ok := err != nil || becomesTrue(t, func() bool { return s.backlog.count.Load() >= n })
	s.unlock()
	must.That(t, err == nil && ok, "nothing arrives: %v", err)
}

// isAllZero says whether a slice has nothing but zero values.
func isAllZero[T comparable](list []T) bool {
	var zero T
	return !slices.ContainsFunc(list, func(v T) bool { return v != zero })
}
