//go:build !rawio_portable

package udp_test

import (
	"bytes"
	"errors"
	"net/netip"
	"sync"
	"testing"

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
			long, short := linktest.Pattern(9000), linktest.Pattern(1000)
			out := func(b []byte, fragment int) rawio.Packet {
				return rawio.Packet{Vec: [][]byte{b[:12], b[12:]}, Remote: netip.AddrPortFrom(pb.Addr(), 9899), ECN: 2, Fragment: fragment}
			}
			refused := func(when string) {
				t.Helper()
				if n, err := a.WriteBatch([]rawio.Packet{out(long, 0)}); n != 0 || !errors.Is(err, rawio.ErrTooLong) {
					t.Errorf("%s: %d, %v", when, n, err)
				}
			}
			refused("before")
			if now := a.MTU(pa.Addr(), pb.Addr()); now != before-100 { // what was known is not trusted any more
				t.Errorf("MTU %d, then %d", before, now)
			}
			pkts := []rawio.Packet{out(short, 0), out(long, 1280), out(short, 0), out(short, 1280), out(long, 1280)}
			linktest.Write(t, a, pkts...)
			refused("after") // req 8899-3-2, 8899-3-3
			for i, p := range linktest.Read(t, b, len(pkts)) {
				want := short
				if i == 1 || i == 4 {
					want = long
				}
				if !bytes.Equal(p.Data, want) || p.Remote != netip.AddrPortFrom(pa.Addr(), 9899) || p.ECN != 2 {
					t.Errorf("packet %d: %d octets from %v, ECN %d", i, len(p.Data), p.Remote, p.ECN)
				}
				p.Release()
			}
			// Others who write at the same time do so whole.
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Add(1)
				go func() {
					defer wg.Done()
					for range 50 {
						if i == 0 {
							linktest.Write(t, a, out(long, 1280))
						} else {
							refused("meanwhile")
						}
					}
				}()
			}
			wg.Wait()
		})
	}
}
