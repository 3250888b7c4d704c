package simnet

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/rawio"
)

// sendECN sends size IP-level octets from A to B with that ECN field, in fragments of at most
// fragment.
func sendECN(n *Net, now rawio.Time, size int, ecn uint8, fragment int) {
	n.Send(now, &rawio.Packet{Vec: [][]byte{make([]byte, size-20)}, Local: hostA, Remote: hostB, ECN: ecn,
		Fragment: fragment})
}

// ecnFields returns the ECN fields of what arrives, in order.
func ecnFields(n *Net) (list []uint8) {
	for n.NextArrival() != rawio.Never {
		_, p, ok := n.Deliver(n.NextArrival())
		if ok {
			list = append(list, p.ECN)
			p.Release()
		}
	}
	return list
}

func TestMarkTouchesECNCapablePacketsOnly(t *testing.T) {
	for _, row := range []struct {
		name       string
		sent, want uint8
	}{
		{"not ECN-capable: passes as it is", rawio.NotECT, rawio.NotECT},
		{"ECT(0): marked", rawio.ECT0, rawio.CE},
		{"ECT(1): marked", rawio.ECT1, rawio.CE},
		{"CE: stays", rawio.CE, rawio.CE},
	} {
		t.Run(row.name, func(t *testing.T) {
			n := newNet(1, Params{Mark: 1})
			sendECN(n, 0, 100, row.sent, 0)
			check.Equal(t, "arrived with", fmt.Sprint(ecnFields(n)), fmt.Sprint([]uint8{row.want}))
			checkConserved(t, n)
		})
	}
}

func TestMarkQueueMarksBehindALongQueue(t *testing.T) {
	for limit, want := range map[int]string{0: "[2 2 2 2 2 2]", 300: "[2 2 2 2 2 3]"} {
		n := newNet(1, Params{Rate: 1000, MarkQueue: limit})
		for range 6 {
			sendECN(n, 0, 100, rawio.ECT0, 0)
		}
		// The first is being transmitted; the 5th and 6th find 300 and 400 octets waiting.
		check.Equal(t, fmt.Sprint("marked above ", limit), fmt.Sprint(ecnFields(n)), want)
		check.Equal(t, "packets marked", n.Stats().Marked, uint64(strings.Count(want, "3")))
		checkConserved(t, n)
	}
}

func TestFragmentsPassWhereThePacketDoesNot(t *testing.T) {
	a6, b6 := netip.MustParseAddrPort("[2001:db8::1]:0"), netip.MustParseAddrPort("[2001:db8::2]:0")
	for _, row := range []struct {
		name                string
		v6                  bool
		size, fragment, mtu int
		took                time.Duration // 1 octet a nanosecond; 0: dropped
	}{
		{"DF: dropped", false, 1400, 0, 1000, 0},
		{"fragmented by the sender: passes", false, 1400, 1000, 1000, 1400 + 20},
		{"fragmented to more than the MTU: a router does it again", false, 1400, 1200, 1000, 1400 + 20},
		{"a long one: 976 octets in each fragment but the last", false, 4000, 1000, 1000, 4000 - 20 + 5*20},
		{"short enough: as it is", false, 900, 1000, 1000, 900},
		{"allowed to be fragmented, but it fits: as it is", false, 1400, 1400, 1500, 1400},
		{"two fragments that are full", false, 1972, 1000, 1000, 1972 + 20},
		{"and an octet more", false, 1973, 1000, 1000, 1973 + 2*20},
		{"IPv6, two fragments that are full", true, 2504, 1280, 1280, 2504 + 40 + 2*8},
		{"IPv6, fragmented by the sender: passes", true, 2000, 1280, 1280, 2000 + 40 + 2*8},
		{"IPv6, fragmented to more than the MTU: dropped", true, 2000, 1500, 1280, 0},
		{"IPv6, whole: dropped", true, 2000, 0, 1280, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			n := New(1)
			from, to, head := hostA, hostB, 20
			if row.v6 {
				from, to, head = a6, b6, 40
			}
			n.SetLink(from.Addr(), to.Addr(), Params{MTU: row.mtu, Rate: int64(time.Second)})
			n.Send(0, &rawio.Packet{Vec: [][]byte{make([]byte, row.size-head)}, Local: from, Remote: to,
				Fragment: row.fragment})
			at := n.NextArrival()
			_, p, ok := n.Deliver(rawio.Never - 1)
			check.That(t, ok == (row.took > 0) &&
				(!ok || len(p.Data) == row.size-head && time.Duration(at) == row.took && p.Fragment == 0),
				"arrived: %v, %d octets, at %v", ok, len(p.Data), time.Duration(at))
			check.That(t, (n.Stats().Fragmented == 1) == (row.took > time.Duration(row.size)), "%d fragmented",
				n.Stats().Fragmented)
			p.Release()
			checkConserved(t, n)
		})
	}
}
