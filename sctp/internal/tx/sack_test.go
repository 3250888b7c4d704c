package tx

import (
	"runtime"
	"slices"
	"testing"
	"weak"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

// A message is acknowledged when all its fragments are, and not by gap blocks, which the peer may
// take back.
func TestMessageIsAcknowledgedWithItsLastFragment(t *testing.T) {
	// req 9260-7.1-3
	l := newLab(t, 1)
	l.enqueueMany(2, 2*full)
	l.expectTSNs("two messages of two fragments", "1 | 2 | 3 | 4")
	l.sack(0, gap{2, 4})
	must.Equal(t, "messages acknowledged by a gap block", len(l.acked), 0)
	for cum, want := range map[wire.TSN][]uint64{1: nil, 2: {1}, 3: {1}, 4: {1, 2}} {
		l := newLab(t, 1)
		l.enqueueMany(2, 2*full)
		l.transmit()
		l.sack(cum)
		check.That(t, slices.Equal(l.acked, want), "up to TSN %d: %v acknowledged, want %v", cum, l.acked, want)
	}
}

// What was acknowledged keeps none of the user's memory alive, in the queue, in the ring or in the
// batch.
func TestAcknowledgedMemoryIsLetGo(t *testing.T) {
	// req 9260-6.7-3
	l := newLab(t, 1)
	var held [3]weak.Pointer[byte]
	for i := range held {
		b := make([]byte, full)
		held[i] = weak.Make(&b[0])
		must.OK(t, l.s.Enqueue(&Message{Body: [2][]byte{b}, Token: uint64(i)}))
	}
	l.expectTSNs("three chunks", "1 | 2 | 3")
	runtime.GC()
	must.That(t, held[2].Value() != nil, "memory of an unacknowledged chunk is gone")
	l.sack(3)
	l.b.Reset()
	runtime.GC()
	for i, p := range held {
		check.That(t, p.Value() == nil, "message %d is acknowledged and its memory still referenced", i)
	}
	runtime.KeepAlive(l)
}

// A chunk that was sent again a moment ago is not missing because chunks arrived that were sent
// before that: their SACKs were on the way already.
func TestLateSacksAreNoMissesOfWhatWasSentAgain(t *testing.T) {
	l := newLab(t, 1)
	l.enqueueMany(5, full)
	l.expectTSNs("initial window", "1 | 2 | 3 | 4 | 5")
	l.runNextTimeout()
	l.expectTSNs("T3-rtx: one packet", "1")
	l.now += 10 * ms
	for i := range wire.TSN(3) {
		l.sack(0, gap{2, 2 + i})
	}
	n, s := l.s.outstanding.recordOf(1).missCount, l.s.Stats()
	check.That(t, n == 0 && s.FastRetransmits == 0, "%d misses, %d Fast Retransmits of a chunk sent 10 ms ago", n,
		s.FastRetransmits)
}

// A zero window probe that the peer has dropped goes again when there is room for it, not when
// there is room for something.
func TestProbeWaitsForAWindowOfItsSize(t *testing.T) {
	// req 9260-6.1-1
	l := newLab(t, 1)
	l.s.SetPeer(0, 16)
	l.enqueueMany(1, 500)
	l.expectTSNs("closed window", "")
	l.runNextTimeout()
	l.expectTSNs("the probe", "1")
	l.now += 10 * ms
	l.handleSack(makeSack(0, 499))
	l.expectTSNs("an octet too few", "")
	l.handleSack(makeSack(0, 500))
	l.expectTSNs("room for it", "1")
}

// An echo of a packet whose record has been used again says nothing of the one that has it now.
func TestEchoOfAPacketOfLongAgo(t *testing.T) {
	l := newLab(t, 1)
	l.s.SetECN(true)
	for i := range 200 {
		l.enqueueMany(1, 10)
		l.transmit()
		l.sack(wire.TSN(i + 1))
	}
	l.s.HandleECNE(l.now, 1)
	check.Equal(t, "reductions of cwnd", l.s.Stats().Echoes, 0)
	l.s.HandleECNE(l.now, 200)
	check.Equal(t, "reductions of cwnd for an echo of the last packet", l.s.Stats().Echoes, 1)
}
