package raw_test

import (
	"bytes"
	"errors"
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
	for _, row := range []struct{ name, a, b string }{
		{"IPv4", "10.77.0.1/24", "10.77.0.2/24"},
		{"IPv6", "fd77::1/64", "fd77::2/64"},
	} {
		t.Run(row.name, func(t *testing.T) {
			nsA, nsB := testns.New(t), testns.New(t)
			pa, pb := netip.MustParsePrefix(row.a), netip.MustParsePrefix(row.b)
			testns.Veth(nsA, nsB, "cable", 1500, pa, pb)
			nsA.PathMTU(pb.Addr(), "cable", 1300)
			a := open(t, nsA, raw.Config{Ports: []uint16{20001}})
			b := open(t, nsB, raw.Config{Ports: []uint16{20002}})
			linktest.Write(t, a, rawio.Packet{Vec: [][]byte{packet(20001, 20002, 1440)}, Remote: to(pb.Addr())})
			p := linktest.Read(t, b, 1)[0]
			check.Equal(t, "octets", len(p.Data), 1440)
			p.Release()
		})
	}
}

// A packet that may be fragmented passes a link that it is too long for; one that may not is refused.
func TestPacketThatMayBeFragmentedPassesAShorterLink(t *testing.T) {
	for _, row := range []struct {
		name string
		a, b string
		to   int // Packet.Fragment
	}{
		{"IPv4", "10.77.0.1/24", "10.77.0.2/24", 1280},
		{"IPv6", "fd77::1/64", "fd77::2/64", 1280},
	} {
		t.Run(row.name, func(t *testing.T) {
			nsA, nsB := testns.New(t), testns.New(t)
			pa, pb := netip.MustParsePrefix(row.a), netip.MustParsePrefix(row.b)
			testns.Veth(nsA, nsB, "cable", 1500, pa, pb)
			a := open(t, nsA, raw.Config{Ports: []uint16{20001}})
			before := a.MTU(pa.Addr(), pb.Addr())
			nsA.SetMTU("cable", 1400)
			b := open(t, nsB, raw.Config{Ports: []uint16{20002}})
			long, short := packet(20001, 20002, 9000), packet(20001, 20002, 1000)
			out := func(b []byte, fragment int) rawio.Packet {
				return rawio.Packet{Vec: [][]byte{b[:12], b[12:]}, Remote: to(pb.Addr()), ECN: 2, Fragment: fragment}
			}
			if n, err := a.WriteBatch([]rawio.Packet{out(long, 0)}); n != 0 || !errors.Is(err, rawio.ErrTooLong) { // req 8899-3-2, 8899-3-3
				t.Errorf("whole: %d, %v", n, err)
			}
			if now := a.MTU(pa.Addr(), pb.Addr()); now != before-100 { // and what was known is not trusted any more
				t.Errorf("MTU %d, then %d", before, now)
			}
			before = reassembled(t, nsB)
			pkts := []rawio.Packet{out(short, 0), out(long, row.to), out(short, 0), out(short, row.to), out(long, row.to)}
			pkts[4].Local = to(pa.Addr())
			linktest.Write(t, a, pkts...)
			for i, p := range linktest.Read(t, b, len(pkts)) {
				want := short
				if i == 1 || i == 4 {
					want = long
				}
				if !bytes.Equal(p.Data, want) || p.Remote != to(pa.Addr()) || p.ECN != 2 {
					t.Errorf("packet %d: %d octets from %v, ECN %d", i, len(p.Data), p.Remote, p.ECN)
				}
				p.Release()
			}
			check.Equal(t, "packets that came in fragments", reassembled(t, nsB)-before, 2)
			check.Equal(t, "packets sent", a.Stats().TxPackets, uint64(len(pkts)))
		})
	}
}
