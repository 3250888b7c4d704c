//go:build !rawio_portable

package udp_test

import (
	"errors"
	"net/netip"
	"sync"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/testns"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/linktest"
	"github.com/rddp-go/rddp/rawio/udp"
)

// A packet that may be fragmented passes a link that it is too long for; one that may not is
// refused, before and after.
func TestPacketThatMayBeFragmentedPassesAShorterLink(t *testing.T) {
	testns.EachFamily(t, 1500, func(t *testing.T, nsA, nsB *testns.NS, pa, pb netip.Addr) {
		a, b := openIn(t, nsA, udp.Config{}), openIn(t, nsB, udp.Config{})
		before := a.MTU(pa, pb)
		nsA.SetMTU("cable", 1400)
		from, to, long := netip.AddrPortFrom(pa, 9899), netip.AddrPortFrom(pb, 9899), linktest.Pattern(9000)
		linktest.CheckFragmentation(t, a, b, from, to, long, linktest.Pattern(1000), 1280) // req 8899-3-2, 8899-3-3
		check.Equal(t, "MTU: what was known is not trusted any more", a.MTU(pa, pb), before-100)
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
					check.That(t, n == 1 == (i == 0) && errors.Is(err, rawio.ErrTooLong) == (i > 0),
						"writer %d: %d, %v", i, n, err)
				}
			})
		}
		wg.Wait()
	})
}

// What CutFrom says is so: from that length on the kernel cuts a packet to what it is told, and one
// that is shorter by four octets goes whole. The far end takes no packet of more than 1400 octets,
// and nobody says so.
func TestTheLeastPacketThatIsCut(t *testing.T) {
	testns.EachFamily(t, 1500, func(t *testing.T, nsA, nsB *testns.NS, pa, pb netip.Addr) {
		for _, local := range []netip.Addr{{}, pa} {
			// it does not matter what this side makes of the route
			cfg := udp.Config{Port: udp.AnyPort, Local: local, NoOffload: true, MTU: 1400}
			a, b := openIn(t, nsA, cfg), openIn(t, nsB, udp.Config{Port: udp.AnyPort})
			nsB.SetMTU("cable", 1400)
			cut := a.CutFrom(netip.Addr{}, pb)
			if pb.Is4() {
				check.That(t, cut < 0, "IPv4: cut from %d on", cut)
				return
			}
			must.That(t, cut > 1452 && cut <= 1456 && cut == a.CutFrom(pa, pb), "cut from %d on", cut)
			to := addrPortOf(pb, b)
			packet := func(n int) rawio.Packet {
				return rawio.Packet{Vec: [][]byte{linktest.Pattern(n)}, Remote: to, Fragment: 1280}
			}
			_, _ = a.WriteBatch([]rawio.Packet{packet(cut - 4)}) // the device may say that it has dropped it
			linktest.WriteAll(t, a, packet(cut), packet(100))
			for _, want := range []int{cut, 100} {
				p := linktest.ReadPackets(t, b, 1)[0]
				check.Equal(t, "octets that arrived", len(p.Data), want)
				p.Release()
			}
		}
	})
}
