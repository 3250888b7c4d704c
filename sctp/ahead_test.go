package sctp

import (
	"net/netip"
	"sync"
	"testing"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
)

// Memory is asked for ahead where there are many associations, for whatever packets come: of one association, of several, of none; and while others change it.
func TestMemoryIsAskedForAhead(t *testing.T) {
	p := newPair(t)
	l := must.Get(p.b.Listen(0, &Config{Backlog: crowded}))(t)
	conns := make([]*Conn, crowded)
	for i := range conns {
		check.That(t, !p.a.crowd.Load() && !p.b.crowd.Load(), "%d associations are many", i)
		conns[i] = must.Get(p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(p.bAddr, l.Port()), nil))(t)
	}
	check.That(t, p.a.crowd.Load() && p.b.crowd.Load(), "%d associations are not many", crowded)
	r := newReceiver(p.a, p.a.link, false)
	for n := range 2 * fetchFirst {
		for i := range n {
			if i%3 > 0 {
				r.conns[i] = conns[i%2]
			}
		}
		for i := range n {
			check.Equal(t, "whose it is", r.whose(i, n), r.conns[i])
		}
		clear(r.conns[:])
	}
	var trips sync.WaitGroup
	for i, c := range conns[:8] {
		d := must.Get(l.Accept(deadlineCtx(t)))(t)
		trips.Go(func() {
			b := make([]byte, 9)
			for range 100 {
				_, _, err := d.ReadMsg(b)
				check.That(t, err == nil && b[0] == byte(i), "message of %d: %v, %v", i, b, err)
			}
		})
		trips.Go(func() {
			for range 100 {
				c.WriteMsg([]byte{byte(i)}, SendInfo{})
			}
		})
	}
	trips.Wait()
	conns[9].Abort("")
	check.That(t, !p.a.crowd.Load(), "one association fewer is still many")
}
