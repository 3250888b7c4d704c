package simnet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
)

const ms = rawio.Time(time.Millisecond)

var (
	hostA = netip.MustParseAddrPort("10.0.0.1:0")
	hostB = netip.MustParseAddrPort("10.0.0.2:0")
	hostC = netip.MustParseAddrPort("[2001:db8::3]:9899")
)

// arrival is what a test remembers of a delivery.
type arrival struct {
	at  rawio.Time
	num uint32 // the packet's number, its first four octets
}

func newNet(seed uint64, p Params) *Net {
	n := New(seed)
	n.Connect(hostA.Addr(), hostB.Addr(), p)
	return n
}

// sendNumbered sends packet number num from A to B, size octets long at IP level.
func sendNumbered(n *Net, now rawio.Time, num uint32, size int) {
	data := make([]byte, size-20)
	binary.BigEndian.PutUint32(data, num)
	n.Send(now, &rawio.Packet{Vec: [][]byte{data[:4], data[4:]}, Local: hostA, Remote: hostB})
}

// deliverUntil delivers everything up to and including now.
func deliverUntil(n *Net, now rawio.Time) (got []arrival) {
	for n.NextArrival() <= now && n.NextArrival() != rawio.Never {
		at := n.NextArrival()
		for {
			_, p, ok := n.Deliver(at)
			if !ok {
				break
			}
			got = append(got, arrival{at, binary.BigEndian.Uint32(p.Data)})
			p.Release()
		}
	}
	return got
}

// checkConserved checks that every packet is accounted for and every buffer is back.
func checkConserved(t *testing.T, n *Net) {
	t.Helper()
	s := n.Stats()
	in := s.Sent + s.Duplicated + s.Reports
	out := s.Delivered + s.Unrouted + s.Partitioned + s.TooBig + s.QueueDropped + s.BurstLost + s.Lost + s.Discarded
	check.That(t, in == out, "%d packets went in, %d are accounted for: %+v", in, out, s)
	check.That(t, n.Pending() == 0 && n.Outstanding() == 0, "%d packets under way, %d buffers not released",
		n.Pending(), n.Outstanding())
	for _, f := range n.arrivals[:cap(n.arrivals)] {
		check.That(t, f.link == nil && f.pkt.Buf == nil, "a packet that was delivered is kept: %+v", f.pkt)
	}
}

func TestPacketArrivesAsTheReceiverSeesIt(t *testing.T) {
	n := New(1)
	n.SetLink(hostA.Addr(), hostC.Addr(), Params{Delay: 5 * time.Millisecond})
	vec := [][]byte{[]byte("common "), nil, []byte("header")}
	n.Send(2*ms, &rawio.Packet{Vec: vec, Local: hostA, Remote: hostC, ECN: 3})
	copy(vec[0], "CHANGED")

	must.Equal(t, "NextArrival", n.NextArrival(), 7*ms)
	_, _, ok := n.Deliver(7*ms - 1)
	must.That(t, !ok, "delivered before its time")
	to, p, ok := n.Deliver(7 * ms)
	must.That(t, ok && to == hostC.Addr() && string(p.Data) == "common header" && p.Local == hostC &&
		p.Remote == hostA &&
		p.ECN == 3 && p.Kind == rawio.KindSCTP && p.Vec == nil, "delivered %v to %v: %+v", ok, to, p)
	p.Release()
	must.Equal(t, "NextArrival of an idle network", n.NextArrival(), rawio.Never)
	checkConserved(t, n)
}

func TestNoLinkNoDelivery(t *testing.T) {
	n := New(1)
	n.SetLink(hostB.Addr(), hostA.Addr(), Params{Delay: 1}) // the other direction only
	sendNumbered(n, 0, 1, 100)
	got := deliverUntil(n, 1000*ms)
	must.That(t, len(got) == 0 && n.Stats().Unrouted == 1, "delivered %v, %+v", got, n.Stats())
	_, ok := n.Link(hostA.Addr(), hostB.Addr())
	check.That(t, !ok, "Link claims a link that was never set")
	p, ok := n.Link(hostB.Addr(), hostA.Addr())
	check.That(t, ok && p == (Params{Delay: 1}), "Link knows %+v, %v", p, ok)
	checkConserved(t, n)
}

func TestDeliveryIsOrderedByTimeThenSending(t *testing.T) {
	n := New(1)
	n.SetLink(hostA.Addr(), hostB.Addr(), Params{})
	n.SetLink(hostC.Addr(), hostB.Addr(), Params{})
	r := NewRand(3)
	var want []arrival
	for i := range uint32(500) {
		// Two sources, each in its own order of time, arrive interleaved.
		from, at := hostA, rawio.Time(r.IntN(50))
		if i%2 == 1 {
			from = hostC
		}
		n.SetLink(from.Addr(), hostB.Addr(), Params{Reorder: 1, ReorderDelay: time.Duration(at)})
		var num [4]byte
		binary.BigEndian.PutUint32(num[:], i)
		n.Send(0, &rawio.Packet{Vec: [][]byte{num[:]}, Local: from, Remote: hostB})
		want = append(want, arrival{at, i})
	}
	slices.SortStableFunc(want, func(a, b arrival) int { return int(a.at - b.at) })
	must.Slice(t, "what was delivered", deliverUntil(n, 1000*ms), want)
	checkConserved(t, n)
}

// everything turns every fault on.
var everything = Params{
	Delay: 10 * time.Millisecond, Jitter: 3 * time.Millisecond, Rate: 10e6, Queue: 20000,
	Loss: 0.02, Burst: Burst{Enter: 0.01, Leave: 0.3, Loss: 0.8},
	Duplicate: 0.02, Reorder: 0.02, ReorderDelay: 2 * time.Millisecond, Corrupt: 0.02,
	MTU: 1500, Quote: 8,
}

// runStorm runs a two-way conversation under every fault and returns a transcript.
func runStorm(t *testing.T, seed uint64) (hash uint64, transcript string, stats Stats) {
	t.Helper()
	n := newNet(seed, everything)
	world := NewRand(77) // the same conversation for every seed of the network
	var b bytes.Buffer
	data := make([]byte, 1600)
	for now := rawio.Time(0); now < 2000*ms; now += ms / 2 {
		world.Read(data)
		p := rawio.Packet{Vec: [][]byte{data[:world.IntN(1485)]}, Local: hostA, Remote: hostB}
		if world.IntN(2) == 0 {
			p.Local, p.Remote = hostB, hostA
		}
		n.Send(now, &p)
		switch now {
		case 500 * ms:
			n.Partition(hostA.Addr(), hostB.Addr())
		case 550 * ms:
			n.Heal(hostA.Addr(), hostB.Addr())
		}
		for n.NextArrival() <= now {
			to, p, ok := n.Deliver(now)
			if !ok {
				break
			}
			fmt.Fprintf(&b, "%d %v %v %d %x\n", now, to, p.Kind, p.MTU, p.Data)
			p.Release()
		}
	}
	n.Discard()
	checkConserved(t, n)
	return n.Hash(), b.String(), n.Stats()
}

func TestOneSeedOneRun(t *testing.T) {
	h1, run1, stats := runStorm(t, 1)
	h2, run2, _ := runStorm(t, 1)
	check.That(t, h1 == h2 && run1 == run2, "two runs of one seed differ: hashes %x and %x", h1, h2)
	h3, run3, _ := runStorm(t, 2)
	check.That(t, h1 != h3 && run1 != run3, "two seeds give the same run")
	for name, count := range map[string]uint64{
		"Delivered": stats.Delivered, "Partitioned": stats.Partitioned, "TooBig": stats.TooBig,
		"BurstLost": stats.BurstLost,
		"Lost":      stats.Lost, "Discarded": stats.Discarded, "Duplicated": stats.Duplicated,
		"Reordered": stats.Reordered,
		"Corrupted": stats.Corrupted, "Reports": stats.Reports,
	} {
		check.That(t, count != 0, "the storm shows nothing about %s", name)
	}
}

// The hash of a run is the same in every release, so that a report of one can be looked into with
// another; and it depends on everything.
func TestHashSeesEveryPart(t *testing.T) {
	seen := make(map[runningHash]string)
	for _, row := range []struct {
		name   string
		change func(now *rawio.Time, p *rawio.Packet)
	}{
		{"nothing", func(*rawio.Time, *rawio.Packet) {}},
		{"time", func(now *rawio.Time, _ *rawio.Packet) { *now++ }},
		{"half of the source", func(_ *rawio.Time, p *rawio.Packet) { p.Local = netip.MustParseAddrPort("[2001:db9::1]:1") }},
		{"the other half", func(_ *rawio.Time, p *rawio.Packet) { p.Local = netip.MustParseAddrPort("[2001:db8::3]:1") }},
		{"source port", func(_ *rawio.Time, p *rawio.Packet) { p.Local = netip.MustParseAddrPort("[2001:db8::1]:2") }},
		{"half of the destination", func(_ *rawio.Time, p *rawio.Packet) { p.Remote = netip.MustParseAddrPort("[2001:db9::2]:2") }},
		{"the other half", func(_ *rawio.Time, p *rawio.Packet) { p.Remote = netip.MustParseAddrPort("[2001:db8::3]:2") }},
		{"destination port", func(_ *rawio.Time, p *rawio.Packet) { p.Remote = netip.MustParseAddrPort("[2001:db8::2]:1") }},
		{"first octet", func(_ *rawio.Time, p *rawio.Packet) { p.Data = []byte("1123456789") }},
		{"last octet", func(_ *rawio.Time, p *rawio.Packet) { p.Data = []byte("0123456780") }},
		{"a zero octet more", func(_ *rawio.Time, p *rawio.Packet) { p.Data = []byte("0123456789\x00") }},
		{"ECN", func(_ *rawio.Time, p *rawio.Packet) { p.ECN = 2 }},
		{"kind", func(_ *rawio.Time, p *rawio.Packet) { p.Kind = rawio.KindPacketTooBig }},
		{"MTU", func(_ *rawio.Time, p *rawio.Packet) { p.MTU = 1400 }},
	} {
		now, p, d := rawio.Time(10), rawio.Packet{Data: []byte("0123456789"), ECN: 1}, runningHash(0)
		p.Local, p.Remote = netip.MustParseAddrPort("[2001:db8::1]:1"), netip.MustParseAddrPort("[2001:db8::2]:2")
		row.change(&now, &p)
		d.addPacket(hashSend, now, &p)
		other, same := seen[d]
		check.That(t, !same, "%s and %s give the same hash", row.name, other)
		seen[d] = row.name
	}
	n := newNet(1, Params{Delay: 5})
	for _, want := range []runningHash{0xbd47815d93e78528, 0x981055f6516b963d} {
		n.Send(10, &rawio.Packet{Vec: [][]byte{[]byte("012"), []byte("3456789")}, Local: hostA, Remote: hostC, ECN: 1})
		n.Send(10, &rawio.Packet{Vec: [][]byte{[]byte("0123456789")}, Local: hostA, Remote: hostB})
		deliverUntil(n, 100)
		check.Equal(t, "hash of the run", runningHash(n.Hash()), want)
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	n := newNet(1, Params{Delay: time.Millisecond, Rate: 1e9, Queue: 1 << 20, Duplicate: 0.5,
		Jitter: time.Millisecond})
	p := rawio.Packet{Vec: [][]byte{make([]byte, 12), make([]byte, 1400)}, Local: hostA, Remote: hostB}
	now := rawio.Time(0)
	allocs := testing.AllocsPerRun(200, func() {
		for range 32 {
			n.Send(now, &p)
		}
		now += 10 * ms
		for {
			_, q, ok := n.Deliver(now)
			if !ok {
				break
			}
			q.Release()
		}
	})
	must.Equal(t, "allocations for 32 packets", allocs, 0)
	checkConserved(t, n)
}
