package raw_test

import (
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/testns"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/linktest"
	"github.com/rddp-go/rddp/rawio/raw"
)

// What the system believes of a path does not keep probes back.
func TestSystemsPathMTUIsSuspended(t *testing.T) {
	// req 8899-4.5-1
	testns.EachFamily(t, 1500, func(t *testing.T, nsA, nsB *testns.NS, pa, pb netip.Addr) {
		nsA.PathMTU(pb, "cable", 1300)
		a := openLink(t, nsA, raw.Config{Ports: []uint16{20001}})
		b := openLink(t, nsB, raw.Config{Ports: []uint16{20002}})
		linktest.WriteAll(t, a, rawio.Packet{Vec: [][]byte{fakePacket(20001, 20002, 1440)}, Remote: addrPortOf(pb)})
		p := linktest.ReadPackets(t, b, 1)[0]
		check.Equal(t, "octets", len(p.Data), 1440)
		p.Release()
	})
}

// A packet that may be fragmented passes a link that it is too long for; one that may not is
// refused.
func TestPacketThatMayBeFragmentedPassesAShorterLink(t *testing.T) {
	testns.EachFamily(t, 1500, func(t *testing.T, nsA, nsB *testns.NS, pa, pb netip.Addr) {
		a := openLink(t, nsA, raw.Config{Ports: []uint16{20001}})
		before := a.MTU(pa, pb)
		nsA.SetMTU("cable", 1400)
		b := openLink(t, nsB, raw.Config{Ports: []uint16{20002}})
		whole := nsB.Reassembled()
		// req 8899-3-2, 8899-3-3
		linktest.CheckFragmentation(t, a, b, addrPortOf(pa), addrPortOf(pb), fakePacket(20001, 20002, 9000),
			fakePacket(20001, 20002, 1000),
			1280)
		check.Equal(t, "MTU: what was known is not trusted any more", a.MTU(pa, pb), before-100)
		check.Equal(t, "packets that came in fragments", nsB.Reassembled()-whole, 2)
		check.Equal(t, "packets sent", a.Stats().TxPackets, 5)
	})
}
