package simnet

import (
	"bytes"
	"math"
	"math/bits"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
)

// packets is how many a statistical test sends, one a millisecond.
const packets = 20000

func sendMany(n *Net) []arrival {
	for i := range uint32(packets) {
		sendNumbered(n, rawio.Time(i)*ms, i, 100)
	}
	return deliverUntil(n, rawio.Never-1)
}

// fitsProbability says whether a count of packets fits a probability, within 5 standard deviations.
func fitsProbability(count uint64, p float64) bool {
	return math.Abs(float64(count)-packets*p) <= 5*math.Sqrt(packets*p*(1-p))
}

func TestPerfectLinkDeliversEverythingInOrder(t *testing.T) {
	n := newNet(1, Params{Delay: 3 * time.Millisecond})
	for i, a := range sendMany(n) {
		want := (arrival{rawio.Time(i+3) * ms, uint32(i)})
		must.That(t, a == want, "delivery %d = %v, want %v", i, a, want)
	}
	must.Equal(t, "faults of a perfect link", n.Stats(), (Stats{Sent: packets, Delivered: packets}))
	check.Equal(t, "random numbers taken for faults not asked for", n.rand.state, NewRand(1).state)
	checkConserved(t, n)
}

func TestLossIsAsLikelyAsAsked(t *testing.T) {
	n := newNet(1, Params{Loss: 0.1})
	got := sendMany(n)
	s := n.Stats()
	must.That(t, fitsProbability(s.Lost, 0.1) && len(got) == packets-int(s.Lost), "lost %d of %d, delivered %d",
		s.Lost, packets,
		len(got))
	checkConserved(t, n)
}

func TestBurstLoss(t *testing.T) {
	b := Burst{Enter: 0.01, Leave: 0.2, Loss: 1}
	n := newNet(1, Params{Burst: b})
	arrived := make([]bool, packets)
	for _, a := range sendMany(n) {
		arrived[a.num] = true
	}
	bursts := 0
	for i := range arrived {
		if !arrived[i] && (i == 0 || arrived[i-1]) {
			bursts++
		}
	}
	lost := float64(n.Stats().BurstLost)
	share, want := lost/packets, b.Enter/(b.Enter+b.Leave)
	check.That(t, math.Abs(share-want) <= 0.15*want, "share of the bad state %.4f, want about %.4f", share, want)
	length, want := lost/float64(bursts), 1/b.Leave
	check.That(t, math.Abs(length-want) <= 0.15*want, "mean burst of %.2f packets, want about %.2f", length, want)
	checkConserved(t, n)
}

func TestBurstLossWithinTheBadState(t *testing.T) {
	n := newNet(1, Params{Burst: Burst{Enter: 1, Leave: 0, Loss: 0.3}})
	sendMany(n)
	check.That(t, fitsProbability(n.Stats().BurstLost, 0.3), "lost %d of %d in the bad state, want about 30%%",
		n.Stats().BurstLost, packets)
	n.Connect(hostA.Addr(), hostB.Addr(), Params{})
	before := n.Stats().BurstLost
	sendMany(n)
	n.Connect(hostA.Addr(), hostB.Addr(), Params{Burst: Burst{Loss: 1}}) // turned on again: good at first
	sendMany(n)
	check.Equal(t, "packets lost in bursts, none after bursts were turned off", n.Stats().BurstLost, before)
	checkConserved(t, n)
}

func TestDuplicatesAreAsLikelyAsAsked(t *testing.T) {
	n := newNet(1, Params{Duplicate: 0.1})
	got := sendMany(n)
	copies := make([]int, packets)
	for _, a := range got {
		copies[a.num]++
	}
	twice := 0
	for num, c := range copies {
		must.That(t, c == 1 || c == 2, "packet %d arrived %d times", num, c)
		twice += c - 1
	}
	s := n.Stats()
	must.That(t, fitsProbability(s.Duplicated, 0.1) && twice == int(s.Duplicated), "counted %d duplicates, saw %d",
		s.Duplicated,
		twice)
	checkConserved(t, n)
}

func TestReorderedPacketsAreOvertaken(t *testing.T) {
	n := newNet(1, Params{Delay: 3 * time.Millisecond, Reorder: 0.1, ReorderDelay: 2500 * time.Microsecond})
	late, overtaken := uint64(0), uint64(0)
	for i, a := range sendMany(n) {
		switch delay := a.at - rawio.Time(a.num)*ms; delay {
		case 3 * ms:
		case 5*ms + ms/2:
			late++
			if i > int(a.num) {
				overtaken++
			}
		default:
			t.Fatalf("packet %d took %v", a.num, time.Duration(delay))
		}
	}
	// Two packets follow within the 2.5 ms; both are held back too in one case of a hundred.
	check.That(t, overtaken >= late*95/100, "%d of %d late packets were overtaken", overtaken, late)
	must.That(t, n.Stats().Reordered == late && fitsProbability(late, 0.1), "%d packets late, counted %d", late,
		n.Stats().Reordered)
	checkConserved(t, n)
}

func TestJitterSpreadsButKeepsOrder(t *testing.T) {
	const delay, jitter = 3 * ms, 10 * ms
	n := newNet(1, Params{Delay: time.Duration(delay), Jitter: time.Duration(jitter)})
	got := sendMany(n)
	check.That(t, slices.IsSortedFunc(got, func(a, b arrival) int { return int(a.num) - int(b.num) }),
		"jitter reordered packets")
	least, most := rawio.Never, rawio.Time(0)
	for _, a := range got {
		d := a.at - rawio.Time(a.num)*ms
		least, most = min(least, d), max(most, d)
	}
	check.That(t, least >= delay && most <= delay+jitter && most-least >= jitter*9/10,
		"delays from %v to %v", time.Duration(least), time.Duration(most))
	checkConserved(t, n)
}

func TestCorruptChangesOneOctetAnywhere(t *testing.T) {
	const size = 40
	n := newNet(1, Params{Corrupt: 0.5})
	data := bytes.Repeat([]byte{0xa5}, size)
	var where [size]bool
	changed := uint64(0)
	for i := range packets {
		now := rawio.Time(i)
		n.Send(now, &rawio.Packet{Vec: [][]byte{data}, Local: hostA, Remote: hostB})
		_, p, ok := n.Deliver(now)
		must.That(t, ok && len(p.Data) == size, "delivered %v, %d octets", ok, len(p.Data))
		wrong := 0
		for k, o := range p.Data {
			if flips := bits.OnesCount8(o ^ 0xa5); flips > 0 {
				wrong++
				where[k] = true
			}
		}
		must.That(t, wrong <= 1, "%d octets changed", wrong)
		changed += uint64(wrong)
		p.Release()
	}
	check.That(t, n.Stats().Corrupted == changed && fitsProbability(changed, 0.5), "%d packets changed, counted %d",
		changed,
		n.Stats().Corrupted)
	k := slices.Index(where[:], false)
	check.That(t, k < 0, "octet %d was never changed", k)
	check.Slice(t, "the sender's memory", data, bytes.Repeat([]byte{0xa5}, size))
	n.Connect(hostA.Addr(), hostB.Addr(), Params{Corrupt: 1})
	n.Send(packets, &rawio.Packet{Local: hostA, Remote: hostB})
	_, p, ok := n.Deliver(packets)
	p.Release()
	check.That(t, ok && n.Stats().Corrupted == changed,
		"a packet without an octet: delivered %v, %d of %d changed before", ok, n.Stats().Corrupted, changed)
	checkConserved(t, n)
}

func TestRateGivesTheSerializationDelay(t *testing.T) {
	// 1 MB/s: 1000 octets at IP level take 1 ms.
	n := newNet(1, Params{Delay: 10 * time.Millisecond, Rate: 1e6})
	sendNumbered(n, 0, 0, 1000)  // 0 to 1 ms
	sendNumbered(n, 0, 1, 500)   // 1 to 1.5 ms
	sendNumbered(n, ms, 2, 1000) // 1.5 to 2.5 ms
	for now, want := range map[rawio.Time]rawio.Time{ms: 3 * ms / 2, 3 * ms: 0} {
		check.Equal(t, "backlog", n.Backlog(now, hostA.Addr(), hostB.Addr()), time.Duration(want))
	}
	sendNumbered(n, 5*ms, 3, 1000) // the transmitter was idle: 5 to 6 ms
	want := []arrival{{11 * ms, 0}, {11*ms + ms/2, 1}, {12*ms + ms/2, 2}, {16 * ms, 3}}
	check.Slice(t, "arrivals", deliverUntil(n, 1000*ms), want)

	// A rate that does not divide a second is rounded up: 100 octets at 3 octets/s.
	n = newNet(1, Params{Rate: 3})
	sendNumbered(n, 0, 0, 100)
	check.Equal(t, "arrival of 100 octets at 3 octets/s", n.NextArrival(), 33_333_333_334)
	n.Discard()
}

func TestRateChangeLeavesTheQueueAsItIs(t *testing.T) {
	n := newNet(1, Params{Rate: 1e6})
	sendNumbered(n, 0, 0, 1000)
	sendNumbered(n, 0, 1, 1000)
	n.Connect(hostA.Addr(), hostB.Addr(), Params{Rate: 10e6})
	sendNumbered(n, 0, 2, 1000)
	want := []arrival{{ms, 0}, {2 * ms, 1}, {2*ms + ms/10, 2}}
	check.Slice(t, "arrivals", deliverUntil(n, 1000*ms), want)
	checkConserved(t, n)
}

func TestQueueOverflowDrops(t *testing.T) {
	// One packet is transmitted and 3 of 1000 octets may wait.
	n := newNet(1, Params{Rate: 1e6, Queue: 3000})
	for i := range uint32(6) {
		sendNumbered(n, 0, i, 1000)
	}
	must.Equal(t, "packets dropped of 6", n.Stats().QueueDropped, 2)
	sendNumbered(n, ms, 6, 1000) // number 1 went from the queue to the transmitter
	sendNumbered(n, ms, 7, 1000) // and number 6 took its room
	want := []arrival{{ms, 0}, {2 * ms, 1}, {3 * ms, 2}, {4 * ms, 3}, {5 * ms, 6}}
	check.Slice(t, "arrivals", deliverUntil(n, 1000*ms), want)
	checkConserved(t, n)
}

func TestIdleLinkTakesAPacketLongerThanItsQueue(t *testing.T) {
	n := newNet(1, Params{Rate: 1e6, Queue: 10})
	sendNumbered(n, 0, 0, 1000)
	sendNumbered(n, 0, 1, 1000)
	check.Slice(t, "arrivals", deliverUntil(n, 1000*ms), []arrival{{ms, 0}})
	checkConserved(t, n)
}

// A link that is never idle must not keep the record of what it has transmitted.
func TestBusyLinkForgetsWhatItHasSent(t *testing.T) {
	n := newNet(1, Params{Rate: 1e6, Queue: 5000})
	for i := range uint32(packets) {
		sendNumbered(n, rawio.Time(i)*ms, i, 1001)
		deliverUntil(n, rawio.Time(i)*ms)
		l, octets := n.links[addrPair{hostA.Addr(), hostB.Addr()}], 0
		for _, w := range l.transmitQueue[l.queueHead:] {
			octets += w.size
		}
		must.That(t, len(l.transmitQueue) <= 16 && l.queuedOctets == octets,
			"%d records kept for a queue of 5 packets, %d octets waiting of %d", len(l.transmitQueue), l.queuedOctets,
			octets)
	}
	n.Discard()
	checkConserved(t, n)
}

func TestTooBigPacketIsDroppedAndReported(t *testing.T) {
	for _, row := range []struct {
		name  string
		quote int
		want  int // octets quoted, 0 for no report
	}{
		{"a black hole says nothing", 0, 0},
		{"a report quotes the first octets", 8, 8},
		{"a report quotes no more than there is", 1 << 20, 1381},
	} {
		t.Run(row.name, func(t *testing.T) {
			n := newNet(1, Params{Delay: 4 * time.Millisecond, MTU: 1400, Quote: row.quote})
			sendNumbered(n, 0, 1, 1400)
			data := make([]byte, 1381)
			copy(data, "too long")
			n.Send(0, &rawio.Packet{Vec: [][]byte{data}, Local: hostA, Remote: hostB})

			to, p, ok := n.Deliver(4 * ms)
			must.That(t, ok && to == hostB.Addr() && p.Kind == rawio.KindSCTP && len(p.Data) == 1380,
				"the packet that fits: %v to %v, %+v", ok, to, p)
			p.Release()
			to, p, ok = n.Deliver(4 * ms)
			must.That(t, ok == (row.want > 0) && n.Stats().TooBig == 1, "report %v, %+v", ok, n.Stats())
			must.That(t, !ok || to == hostA.Addr() && p.Kind == rawio.KindPacketTooBig && p.MTU == 1400 &&
				p.Local == hostA && p.Remote == hostB && bytes.Equal(p.Data, data[:row.want]), "report to %v: %+v",
				to, p)
			p.Release()
			checkConserved(t, n)
		})
	}
}

func TestNothingExceedsTheLengthFieldOfIP(t *testing.T) {
	n := newNet(1, Params{})
	sendNumbered(n, 0, 0, 65535)
	sendNumbered(n, 0, 1, 65536)
	n.Connect(hostA.Addr(), hostB.Addr(), Params{MTU: 1 << 20})
	sendNumbered(n, 0, 2, 65536)
	got := deliverUntil(n, 0)
	must.That(t, slices.Equal(got, []arrival{{0, 0}}) && n.Stats().TooBig == 2, "delivered %v, %+v", got, n.Stats())
	for size, want := range map[int]int{2048: 2048, 2049: 65535} { // a short packet does not hold a long buffer
		sendNumbered(n, 0, 3, 20+size)
		check.Equal(t, "buffers hold one packet", n.Outstanding(), 1)
		_, p, _ := n.Deliver(0)
		check.That(t, len(p.Buf.B) == want, "%d octets in a buffer of %d", size, len(p.Buf.B))
		p.Release()
	}
	checkConserved(t, n)
}

func TestPartitionLosesWhatIsSentOrArrivesDuringIt(t *testing.T) {
	n := newNet(1, Params{Delay: 10 * time.Millisecond})
	a, b := hostA.Addr(), hostB.Addr()
	sendNumbered(n, 0, 0, 100)    // arrives before
	sendNumbered(n, 2*ms, 1, 100) // arrives during
	got := deliverUntil(n, 10*ms)
	n.Partition(b, a)
	sendNumbered(n, 11*ms, 2, 100) // sent during
	n.Send(11*ms, &rawio.Packet{Vec: [][]byte{make([]byte, 8)}, Local: hostB, Remote: hostA})
	n.Connect(a, b, Params{Delay: 10 * time.Millisecond}) // new parameters do not heal
	sendNumbered(n, 12*ms, 3, 100)
	got = append(got, deliverUntil(n, 15*ms)...)
	n.Heal(a, b)
	sendNumbered(n, 16*ms, 4, 100)
	got = append(got, deliverUntil(n, 100*ms)...)

	check.Slice(t, "arrivals", got, []arrival{{10 * ms, 0}, {26 * ms, 4}})
	check.Equal(t, "Partitioned", n.Stats().Partitioned, 4)
	checkConserved(t, n)
}
