package sctp

import (
	"context"
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/must"
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
		p := heartbeat(s, "x")
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
