package simulation

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// RDMA Writes go on while the path's MTU falls from 9000 octets to 1280 and rises again: MULPDU
// follows it, segments cut before arrive in IP fragments, and every octet is in its place.
func TestTransferAcrossMTUChanges(t *testing.T) {
	race.Costly(t)
	for _, row := range []struct {
		name  string
		seed  uint64
		quote int
	}{
		{"with reports of the network", ofIPv4, 64}, // req 8899-4.4-1, 8899-3-13
		{"with reports of the network, IPv6", ofIPv6, 64},
		{"a black hole", ofIPv4, 0}, // req 8899-4.3-1
	} {
		t.Run(row.name, func(t *testing.T) {
			link := simnet.Params{Delay: 5 * time.Millisecond, Rate: 50_000_000, Queue: 1 << 20, MTU: 9000}
			b := newBulkOf(t, row.seed, 500_000, link, func(c *assoc.Config) { c.MaxBurst = -1 })
			writes := func(n int) {
				t.Helper()
				for range n {
					clear(b.dst.actualBytes())
					b.src.fillRandom()
					b.writeOnce()
					must.That(t, b.err == nil, "%v", b.err)
					must.Slice(t, "what arrived", b.src.actualBytes(), b.dst.actualBytes())
				}
			}
			mtu := func(what string, want int) {
				t.Helper()
				check.Equal(t, what+": path MTU", b.c.a.PathStats(0).MaxPacket+20+extraHeader(b.a.connectAddr()), want)
			}
			writes(3)
			mtu("at first", 9000)

			// In the middle of a Write.
			must.OK(t, b.qa.core.PostSend(&b.wr))
			b.c.Pump()
			for range 20 {
				b.Step(b.now.Add(time.Second))
			}
			must.That(t, b.c.a.Stats().Outstanding != 0, "nothing is under way")
			fragmented := b.net.Stats().Fragmented
			for _, h := range []*Host{b.a, b.b} {
				other := map[*Host]*Host{b.a: b.b, b.b: b.a}[h]
				b.setMTU(h.connectAddr(), other.connectAddr(), 1280, row.quote)
			}
			for want := b.done + 1; b.done < want && b.err == nil; {
				b.Step(b.now.Add(time.Second))
			}
			check.That(t, b.net.Stats().Fragmented != fragmented, "nothing was fragmented: the story is not told")
			for end := b.now.Add(time.Minute); b.now < end && b.c.a.PathStats(0).MaxPacket+20+
				extraHeader(b.a.connectAddr()) != 1280; {
				writes(1)
			}
			mtu("fallen", 1280)
			segments := b.c.a.Stats().DataOut
			writes(1)
			n := b.c.a.Stats().DataOut - segments
			check.That(t, n >= 500_000/1280, "%d segments of 500,000 octets", n)

			b.net.Connect(b.a.connectAddr(), b.b.connectAddr(), link)
			for end := b.now.Add(11 * time.Minute); b.now < end && b.err == nil; { // PMTU_RAISE_TIMER
				b.Step(end)
			}
			writes(2)
			mtu("grown", 9000)
			segments = b.c.a.Stats().DataOut
			writes(1)
			n = b.c.a.Stats().DataOut - segments
			check.That(t, n <= 500_000/8700, "%d segments of 500,000 octets", n)
		})
	}
}
