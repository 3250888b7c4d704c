//go:build !rawio_portable

package udp_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/testns"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/linktest"
	"github.com/rddp-go/rddp/rawio/udp"
	"github.com/vishvananda/netlink"
)

// Trains of packets arrive as they were sent, whichever side lets the kernel handle them as one:
// lengths, order, addresses and ECN bits.
func TestTrainsArriveAsTheyWereSent(t *testing.T) {
	for _, addr := range []netip.Addr{v4, v6} {
		for _, test := range []struct {
			name   string
			tx, rx bool // offloads
		}{
			{"segmented and coalesced", true, true},
			{"segmented only", true, false},
			{"coalesced only", false, true},
			{"neither", false, false},
		} {
			t.Run(fmt.Sprintf("%v %s", addr, test.name), func(t *testing.T) {
				a := openLink(t, udp.Config{Port: udp.AnyPort, NoOffload: !test.tx})
				b := openLink(t, udp.Config{Port: udp.AnyPort, NoOffload: !test.rx})
				c := openLink(t, udp.Config{Port: udp.AnyPort, NoOffload: !test.rx})
				var out []rawio.Packet
				for i := range 150 {
					size, to, ecn := 1400, b, uint8(0)
					switch {
					case i >= 20 && i < 40:
						ecn = 2
					case i%17 == 0:
						size = 60 + i // an odd one, shorter
					case i%50 == 49:
						size = 1440 // or longer
					}
					if i >= 100 && i < 120 {
						to = c
					}
					p := linktest.Pattern(size)
					p[0] = byte(i)
					out = append(out, rawio.Packet{Vec: [][]byte{p[:12], p[12:]}, Remote: addrPortOf(addr, to),
						ECN: ecn})
				}
				linktest.WriteAll(t, a, out...)
				check := func(l *udp.Link, want []rawio.Packet) {
					t.Helper()
					for i, p := range linktest.ReadPackets(t, l, len(want)) {
						w := want[i]
						must.That(t, len(p.Data) == w.Len() && p.Data[0] == w.Vec[0][0] &&
							string(p.Data[12:]) == string(w.Vec[1]),
							"packet %d: %d octets, number %d; want %d, number %d", i, len(p.Data), p.Data[0], w.Len(),
							w.Vec[0][0])
						must.That(t, p.ECN == w.ECN && p.Remote == addrPortOf(addr, a) &&
							p.Local == addrPortOf(addr, l),
							"packet %d: ECN %d from %v to %v", i, p.ECN, p.Remote, p.Local)
						p.Release()
					}
				}
				check(c, out[100:120])
				check(b, append(append([]rawio.Packet{}, out[:100]...), out[120:]...))
				s := a.Stats()
				// 32 messages a call
				must.That(t, s.TxPackets == 150 && s.TxUnsegmented == 0 && (s.TxCalls < 5) == test.tx, "sender %+v", s)
			})
		}
	}
}

// A train keeps the packets' own source address.
func TestTrainFromAChosenSource(t *testing.T) {
	local := netip.MustParseAddr("127.0.0.7")
	a, b := openLink(t, udp.Config{Port: udp.AnyPort}), openLink(t, udp.Config{Port: udp.AnyPort})
	out := make([]rawio.Packet, 10)
	for i := range out {
		out[i] = rawio.Packet{Vec: [][]byte{linktest.Pattern(500)}, Local: addrPortOf(local, a),
			Remote: addrPortOf(v4, b), ECN: 1}
	}
	linktest.WriteAll(t, a, out...)
	for i, p := range linktest.ReadPackets(t, b, len(out)) {
		check.That(t, p.Remote == addrPortOf(local, a) && p.ECN == 1, "packet %d: from %v, ECN %d", i, p.Remote, p.ECN)
		p.Release()
	}
}

// A train of packets that are too long for the device is refused packet by packet, as they would be
// alone, and segmentation stays on.
func TestTrainBeyondTheMTU(t *testing.T) {
	ns := testns.New(t)
	var a, b *udp.Link
	ns.Do(func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetMTU(lo, 1500); err != nil {
			return err
		}
		if a, err = udp.Open(udp.Config{Local: v4, Port: udp.AnyPort}); err != nil {
			return err
		}
		b, err = udp.Open(udp.Config{Local: v4, Port: udp.AnyPort})
		return err
	})
	defer a.Close()
	defer b.Close()
	train := func(n, size int) (out []rawio.Packet) {
		for range n {
			out = append(out, rawio.Packet{Vec: [][]byte{linktest.Pattern(size)}, Remote: addrPortOf(v4, b)})
		}
		return out
	}
	n, err := a.WriteBatch(train(3, 1473))
	check.That(t, n == 0 && errors.Is(err, rawio.ErrTooLong),
		"WriteBatch = %d, %v, want rawio.ErrTooLong for the first", n, err)
	linktest.WriteAll(t, a, train(40, 1472)...)
	for _, p := range linktest.ReadPackets(t, b, 40) {
		p.Release()
	}
	s := a.Stats()
	check.That(t, s.TxUnsegmented == 0 && s.TxPackets == 40 && s.TxTooLong == 1, "stats %+v", s)
}
