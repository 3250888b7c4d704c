package raw_test

import (
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/testns"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/linktest"
	"github.com/rddp-go/rddp/rawio/raw"
)

// reassembled returns how many packets the namespace's kernel has put together of fragments.
func reassembled(t *testing.T, ns *testns.NS) (n int) {
	t.Helper()
	ns.Do(func() error {
		b, err := os.ReadFile("/proc/thread-self/net/snmp")
		if err != nil {
			return err
		}
		lines := strings.Split(string(b), "\n")
		names, values := strings.Fields(lines[0]), strings.Fields(lines[1])
		for i, name := range names {
			if name == "ReasmOKs" {
				n, err = strconv.Atoi(values[i])
			}
		}
		if err != nil {
			return err
		}
		b, err = os.ReadFile("/proc/thread-self/net/snmp6")
		for _, line := range strings.Split(string(b), "\n") {
			if f := strings.Fields(line); len(f) == 2 && f[0] == "Ip6ReasmOKs" {
				k, _ := strconv.Atoi(f[1])
				n += k
			}
		}
		return err
	})
	return n
}

// What the system believes of a path does not keep probes back.
func TestSystemsPathMTUIsSuspended(t *testing.T) {
	// req 8899-4.5-1
	testns.EachFamily(t, 1500, func(t *testing.T, nsA, nsB *testns.NS, pa, pb netip.Addr) {
		nsA.PathMTU(pb, "cable", 1300)
		a := open(t, nsA, raw.Config{Ports: []uint16{20001}})
		b := open(t, nsB, raw.Config{Ports: []uint16{20002}})
		linktest.Write(t, a, rawio.Packet{Vec: [][]byte{packet(20001, 20002, 1440)}, Remote: to(pb)})
		p := linktest.Read(t, b, 1)[0]
		check.Equal(t, "octets", len(p.Data), 1440)
		p.Release()
	})
}

// A packet that may be fragmented passes a link that it is too long for; one that may not is refused.
func TestPacketThatMayBeFragmentedPassesAShorterLink(t *testing.T) {
	testns.EachFamily(t, 1500, func(t *testing.T, nsA, nsB *testns.NS, pa, pb netip.Addr) {
		a := open(t, nsA, raw.Config{Ports: []uint16{20001}})
		before := a.MTU(pa, pb)
		nsA.SetMTU("cable", 1400)
		b := open(t, nsB, raw.Config{Ports: []uint16{20002}})
		whole := reassembled(t, nsB)
		linktest.Fragments(t, a, b, to(pa), to(pb), packet(20001, 20002, 9000), packet(20001, 20002, 1000), 1280) // req 8899-3-2, 8899-3-3
		check.Equal(t, "MTU: what was known is not trusted any more", a.MTU(pa, pb), before-100)
		check.Equal(t, "packets that came in fragments", reassembled(t, nsB)-whole, 2)
		check.Equal(t, "packets sent", a.Stats().TxPackets, 5)
	})
}
