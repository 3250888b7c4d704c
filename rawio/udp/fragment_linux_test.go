//go:build !rawio_portable

package udp_test

import (
	"errors"
	"net/netip"
	"sync"
	"testing"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/testns"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/linktest"
	"github.com/rddp-go/rddp/rawio/udp"
)

// A packet that may be fragmented passes a link that it is too long for; one that may not is refused,
// before and after.
func TestPacketThatMayBeFragmentedPassesAShorterLink(t *testing.T) {
	for _, row := range []struct{ name, a, b string }{
		{"IPv4", "10.77.0.1/24", "10.77.0.2/24"},
		{"IPv6", "fd77::1/64", "fd77::2/64"},
	} {
		t.Run(row.name, func(t *testing.T) {
			nsA, nsB := testns.New(t), testns.New(t)
			pa, pb := netip.MustParsePrefix(row.a), netip.MustParsePrefix(row.b)
			testns.Veth(nsA, nsB, "cable", 1500, pa, pb)
			var a, b *udp.Link
			nsA.Do(func() (err error) { a, err = udp.Open(udp.Config{}); return err })
			defer a.Close()
			nsB.Do(func() (err error) { b, err = udp.Open(udp.Config{}); return err })
			defer b.Close()
			before := a.MTU(pa.Addr(), pb.Addr())
			nsA.SetMTU("cable", 1400)
			from, to, long := netip.AddrPortFrom(pa.Addr(), 9899), netip.AddrPortFrom(pb.Addr(), 9899), linktest.Pattern(9000)
			linktest.Fragments(t, a, b, from, to, long, linktest.Pattern(1000), 1280) // req 8899-3-2, 8899-3-3
			check.Equal(t, "MTU: what was known is not trusted any more", a.MTU(pa.Addr(), pb.Addr()), before-100)
			// Others who write at the same time do so whole.
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() {
					out := []rawio.Packet{{Vec: [][]byte{long}, Remote: to, Fragment: 1280}}
					if i > 0 {
						out[0].Fragment = 0
					}
					for range 50 {
						n, err := a.WriteBatch(out)
						check.That(t, n == 1 == (i == 0) && errors.Is(err, rawio.ErrTooLong) == (i > 0), "writer %d: %d, %v", i, n, err)
					}
				})
			}
			wg.Wait()
		})
	}
}
