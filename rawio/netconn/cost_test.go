package netconn_test

import (
	"context"
	"flag"
	"net/netip"
	"runtime"
	"sync"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/connpipe"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/rawio/netconn"
	"github.com/rddp-go/rddp/sctp"
)

var numLinks = flag.Int("links", 1000, "links of TestCostOfALink")

// footprint is what the process holds: octets of memory, stacks included, and goroutines.
type footprint struct{ heap, stacks, goroutines int }

func measureFootprint() footprint {
	for range 4 { // pools give up in two, and stacks shrink
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return footprint{int(m.HeapAlloc), int(m.StackInuse), runtime.NumGoroutine()}
}

// perLink is what each of n links has added.
func (f footprint) perLink(before footprint, n int) footprint {
	return footprint{(f.heap - before.heap) / n, (f.stacks - before.stacks) / n,
		(f.goroutines - before.goroutines) / n}
}

// A link, its Transport and all that they need take no more than 16 KiB and two goroutines beside
// an association that is idle: its peer may be one of ten thousand.
func TestCostOfALink(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector keeps more of everything")
	}
	ctx := context.Background()
	assoc := costOfAnAssociation(t)

	carriers := make([]*connpipe.Conn, *numLinks)
	for i := 0; i < len(carriers); i += 2 {
		carriers[i], carriers[i+1] = connpipe.New()
	}
	before := measureFootprint()
	transports := make([]*sctp.Transport, len(carriers))
	for i, c := range carriers {
		transports[i] = must.Get(sctp.NewTransport(must.Get(netconn.New(c, nil))(t), nil))(t)
	}
	open := measureFootprint().perLink(before, len(carriers))
	conns := make([]*sctp.Conn, len(carriers))
	var all sync.WaitGroup
	for i, tr := range transports {
		all.Go(func() {
			c := must.Get(tr.Dial(ctx, netip.AddrPortFrom(netconn.PeerAddr, 5000), &sctp.Config{LocalPort: 5000}))(t)
			must.Do(c.WriteMsg(make([]byte, 100), sctp.SendInfo{}))(t)
			must.Do(readOne(c))(t)
			conns[i] = c
		})
	}
	all.Wait()
	got := measureFootprint().perLink(before, len(carriers))
	runtime.KeepAlive(conns)
	t.Logf("a link and its Transport: %+v; with an association: %+v; an association: %d octets", open, got, assoc)
	beside := got.heap + got.stacks - assoc
	check.That(t, beside <= 16<<10, "%d octets beside an association", beside)
	check.That(t, got.goroutines <= 2, "%d goroutines", got.goroutines)
	for _, tr := range transports {
		all.Go(func() { tr.Close() })
	}
	all.Wait()
}

func readOne(c *sctp.Conn) (int, error) {
	n, _, err := c.ReadMsg(make([]byte, 1000))
	return n, err
}

// costOfAnAssociation is the memory of one side of an association among many of one Transport.
func costOfAnAssociation(t *testing.T) int {
	a, b, err := mem.Pair(mem.Options{})
	must.OK(t, err)
	ta, tb := must.Get(sctp.NewTransport(a, nil))(t), must.Get(sctp.NewTransport(b, nil))(t)
	defer ta.Close()
	defer tb.Close()
	l := must.Get(tb.Listen(5000, nil))(t)
	const pairs = 200
	conns := make([]*sctp.Conn, 0, 2*pairs)
	before := measureFootprint()
	for range pairs {
		c := must.Get(ta.Dial(t.Context(), netip.AddrPortFrom(b.LocalAddrs()[0].Addr(), 5000), nil))(t)
		d := must.Get(l.Accept(t.Context()))(t)
		for _, from := range []*sctp.Conn{c, d} {
			must.Do(from.WriteMsg(make([]byte, 100), sctp.SendInfo{}))(t)
		}
		must.Do(readOne(c))(t)
		must.Do(readOne(d))(t)
		conns = append(conns, c, d)
	}
	each := measureFootprint().perLink(before, len(conns))
	runtime.KeepAlive(conns)
	return each.heap
}
