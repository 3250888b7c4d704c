package tx

import (
	"fmt"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// abandonInFlight abandons the messages of TSNs.
func (l *extensionsLab) abandonInFlight(tsns ...wire.TSN) {
	for _, t := range tsns {
		l.s.abandonMessage(l.now, t)
		l.check()
	}
	l.s.TakeAbandoned()
}

// enqueueSmall gives messages of the streams named to the sender, with a policy.
func (l *extensionsLab) enqueueSmall(streams ...wire.StreamID) {
	for _, id := range streams {
		l.enqueue(10, Message{Stream: id, Policy: AbandonResent})
	}
}

func TestForwardTSNGoesAsFarAsTheAbandoned(t *testing.T) {
	// req 3758-3.5-4
	// req 3758-3.5-5
	// req 3758-3.5-6
	// req 3758-3.2-1
	l := newExtensionsLab(t, true, false)
	l.enqueueSmall(1, 2, 1, 1, 2, 3)
	l.expectSent("all", "1/1#0BE 2/2#0BE 3/1#1BE 4/1#2BE 5/2#1BE 6/3#0BE")
	l.abandonInFlight(3, 4)
	l.expectSent("behind one that is outstanding", "")
	l.abandonInFlight(1)
	l.expectSent("the first", "F 1 1#0")
	l.sack(1)
	l.expectSent("answered", "")
	l.sack(2)
	l.expectSent("TSN 2 has arrived, 3 and 4 are next; each stream is named once", "F 4 1#2")
	l.sack(4, [2]wire.TSN{6, 6})
	l.abandonInFlight(5)
	l.expectSent("not over what is acknowledged by a gap block alone", "F 5 2#1")
	l.sack(6)
	check.Equal(t, "outstanding", l.s.Outstanding(), 0)
	check.Equal(t, "next timer", l.s.NextTimeout(), rawio.Never)
}

func TestUnorderedMessagesAreNotNamed(t *testing.T) {
	// req 3758-3.2-3
	// req 8260-2.1-3
	// req 8260-2.3.1-1
	for interleaves, want := range map[bool]string{false: "F 3 1#0", true: "IF 3 1#0 1#1U"} {
		l := newExtensionsLab(t, true, interleaves)
		l.enqueue(10, Message{Stream: 1, Unordered: true, Policy: AbandonResent})
		l.enqueue(10, Message{Stream: 1, Policy: AbandonResent})
		l.enqueue(10, Message{Stream: 1, Unordered: true, Policy: AbandonResent})
		l.sendPackets()
		l.abandonInFlight(1, 2, 3)
		if interleaves {
			want = "IF 3 1#1U 1#0"
		}
		l.expectSent("ordered and unordered", want)
	}
}

// A FORWARD TSN that names more streams than a packet holds ends where it must. The next one goes
// on from there.
func TestForwardTSNFitsAPacket(t *testing.T) {
	// req 3758-3.5-6
	for interleaves, pair := range map[bool]int{false: 4, true: 8} {
		l := newExtensionsLab(t, true, interleaves)
		for id := range wire.StreamID(12) {
			l.enqueueSmall(id)
		}
		l.sendPackets()
		l.abandonInFlight(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
		for _, room := range []int{0, 15} {
			check.Equal(t, "octets in too little room", len(l.s.AppendForwardTSN(l.now, nil, room, l.pathAt(0))), 0)
		}
		for _, want := range []struct{ cum, skips int }{{5, 5}, {10, 5}, {12, 2}} {
			check.That(t, l.s.ForwardDue(), "nothing is due up to %d", want.cum)
			c := wire.Chunk(l.s.AppendForwardTSN(l.now, nil, 8+5*pair+pair-1, l.pathAt(0)))
			if interleaves {
				f := must.Get(wire.AsIForwardTSN(c))(t)
				check.Equal(t, "I-FORWARD-TSN", [2]int{int(f.NewCumTSN()), f.NumSkips()}, [2]int{want.cum, want.skips})
			} else {
				f := must.Get(wire.AsForwardTSN(c))(t)
				check.Equal(t, "FORWARD TSN", [2]int{int(f.NewCumTSN()), f.NumSkips()}, [2]int{want.cum, want.skips})
			}
			l.sack(wire.TSN(want.cum))
		}
		check.Equal(t, "outstanding", l.s.Outstanding(), 0)
	}
}

// A FORWARD TSN that is lost goes again with the next SACK, once in a round trip, and else by a
// timer.
func TestForwardTSNThatIsLostGoesAgain(t *testing.T) {
	// req 3758-3.5-5
	// req 3758-3.5-7
	// req 3758-3.5-10
	l := newExtensionsLab(t, true, false)
	l.pathAt(0).ObserveRTT(100e6)
	l.enqueueSmall(1, 2, 3, 4)
	l.sendPackets()
	l.abandonInFlight(1)
	l.expectSent("at once", "F 1 1#0")
	l.now += 50 * ms
	l.sack(0, [2]wire.TSN{3, 3})
	l.expectSent("half a round trip later", "")
	l.now += 50 * ms
	l.sack(0, [2]wire.TSN{3, 4})
	l.expectSent("with a SACK that does not answer it", "F 1 1#0")
	l.sack(4)
	l.expectSent("answered", "")

	l.enqueueSmall(1)
	l.expectSent("one more", "5/1#1BE")
	l.abandonInFlight(5)
	l.expectSent("the last", "F 5 1#1")
	sentAt := l.now
	for i, counts := range []bool{false, true, true} {
		check.That(t, l.s.NextTimeout() != rawio.Never, "no timer runs for it")
		expired := l.runNextTimeout()
		check.Equal(t, fmt.Sprintf("timeout %d counts", i), expired.Has(0), counts)
		l.expectSent("again", "F 5 1#1")
	}
	check.That(t, l.now.Sub(sentAt) < labRTO.Max, "that took %v", l.now.Sub(sentAt))
	r := l.sack(5)
	check.That(t, r.NewlyAcked && r.Paths.Has(0), "the answer clears no error counter: %+v", r)
	check.Equal(t, "next timer", l.s.NextTimeout(), rawio.Never)
}

// It is bundled with DATA that goes at the same time, ahead of it.
func TestForwardTSNIsBundledWithData(t *testing.T) {
	// req 3758-3.5-8
	// req 3758-3.5-9
	l := newExtensionsLab(t, true, false)
	l.enqueueSmall(1)
	l.sendPackets()
	l.abandonInFlight(1)
	l.enqueue(10, Message{Stream: 2})
	l.expectSent("together, at once", "F 1 1#0 2/2#0BE")
}
