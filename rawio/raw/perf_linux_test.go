package raw_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/testns"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/linktest"
	"github.com/rddp-go/rddp/rawio/raw"
)

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, addr := range []netip.Addr{v4, v6} {
		for _, size := range []int{1440, 65000} {
			t.Run(fmt.Sprintf("%v %d octets", addr, size), func(t *testing.T) {
				ns := testns.New(t)
				a := openLink(t, ns, raw.Config{Ports: []uint16{20001}})
				b := openLink(t, ns, raw.Config{Local: addr, Ports: []uint16{20002}})
				move := linktest.BatchMover(t, a, b,
					rawio.Packet{Vec: [][]byte{fakePacket(20001, 20002, size)}, Remote: addrPortOf(addr)}, 8)
				for range 20 {
					move() // the buffer pools fill, the receiver finds its buffer size
				}
				check.Equal(t, "allocations a batch of 8", testing.AllocsPerRun(100, move), 0)
			})
		}
	}
}

// BenchmarkPump is the bare link: packets to itself on loopback, no protocol.
func BenchmarkPump(b *testing.B) {
	for _, addr := range []netip.Addr{v4, v6} {
		for _, test := range []struct{ size, count int }{{1440, 32}, {65000, 8}} {
			for _, poll := range []time.Duration{0, 50 * time.Microsecond} {
				b.Run(fmt.Sprintf("%v/%d/poll=%v", addr, test.size, poll), func(b *testing.B) {
					ns := testns.New(b)
					tx := openLink(b, ns, raw.Config{Local: addr, Ports: []uint16{20001}})
					rx := openLink(b, ns, raw.Config{Local: addr, Ports: []uint16{20002}, Poll: poll})
					move := linktest.BatchMover(b, tx, rx,
						rawio.Packet{Vec: [][]byte{fakePacket(20001, 20002, test.size)}, Remote: addrPortOf(addr)},
						test.count)
					b.SetBytes(int64(test.size * test.count))
					b.ReportAllocs()
					for b.Loop() {
						move()
					}
				})
			}
		}
	}
}
