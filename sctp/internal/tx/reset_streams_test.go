package tx

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/sched"
	"github.com/rddp-go/rddp/sctp/wire"
)

// resetLab is where streams are reset: with I-DATA, or under a scheduler, or neither.
var resetLabs = map[string]func(*testing.T) *extensionsLab{
	"DATA": func(t *testing.T) *extensionsLab { return newExtensionsLab(t, false, false) },
	"a scheduler": func(t *testing.T) *extensionsLab {
		l := newExtensionsLab(t, false, false)
		l.s.SetScheduler(sched.RoundRobin())
		return l
	},
	"a scheduler that went": func(t *testing.T) *extensionsLab {
		l := newExtensionsLab(t, false, false)
		l.s.SetScheduler(sched.RoundRobin())
		l.s.SetScheduler(nil)
		return l
	},
	"amounts": func(t *testing.T) *extensionsLab {
		l := newExtensionsLab(t, false, false)
		l.s.SetLowMark(1, 0)
		return l
	},
}

// What was given before a reset goes with the old numbers, what comes later waits, and then begins
// with 0. Other streams go on.
func TestMessagesOfAResetStreamWait(t *testing.T) {
	for name, newResetLab := range resetLabs {
		t.Run(name, func(t *testing.T) {
			l := newResetLab(t)
			on := func(s wire.StreamID, size int) { l.enqueue(size, Message{Stream: s}) }
			on(1, 900)
			check.Equal(t, "sent", l.sendPackets(), "1/1#0BE")
			on(1, 900)
			on(2, 900)
			hold := l.s.Hold([]wire.StreamID{3, 1})
			check.That(t, !l.s.HasSettled(hold, false), "settled before message 2 of stream 1 is sent")
			on(1, 50)
			on(2, 900)
			l.enqueue(50, Message{Stream: 3, Unordered: true})
			check.Equal(t, "sent", l.sendPackets(), "2/1#1BE | 3/2#0BE | 4/2#1BE")
			check.That(t, l.s.HasSettled(hold, false) && !l.s.HasSettled(hold, true), "settled: %v, acknowledged: %v",
				l.s.HasSettled(hold, false), l.s.HasSettled(hold, true))
			l.sack(4)
			check.That(t, l.s.HasSettled(hold, true), "settled and acknowledged, and it says no")
			check.Equal(t, "sent while it is held", l.sendPackets(), "")
			check.That(t, !l.s.Idle(l.now) && !l.s.CanIdle(), "nothing waits, it says")
			check.Equal(t, "octets to be sent", l.s.Queued(), 100)
			l.s.ResetSSNs([]wire.StreamID{1, 3})
			l.s.Release(hold)
			check.Equal(t, "sent", l.sendPackets(), "5/1#0BE 6/3#0UBE")
			on(2, 900)
			check.Equal(t, "sent", l.sendPackets(), "7/2#2BE") // which was not reset
			l.sack(7)
			check.That(t, l.s.Idle(l.now) && l.s.CanIdle(), "something waits")
			check.Equal(t, "acknowledged", len(l.acked), 7)
		})
	}
}

// Several resets wait, one behind the other. A message waits for all of those that it was given
// behind.
func TestMessagesWaitForEachReset(t *testing.T) {
	for name, newResetLab := range resetLabs {
		t.Run(name, func(t *testing.T) {
			l := newResetLab(t)
			on := func(s wire.StreamID) { l.enqueue(50, Message{Stream: s}) }
			on(1)
			first := l.s.Hold([]wire.StreamID{1})
			on(1)
			second := l.s.Hold([]wire.StreamID{2})
			on(2)
			check.That(t, l.s.HoldMore(second, []wire.StreamID{1}), "the last one takes no more")
			check.That(t, !l.s.HoldMore(first, []wire.StreamID{9}), "one takes more that has another behind it")
			on(1)
			on(3)
			third := l.s.Hold(nil)
			check.That(t, !l.s.HoldMore(third, []wire.StreamID{9}), "one of all streams takes more")
			on(1)
			on(3)
			check.Equal(t, "octets to be sent", l.s.Queued(), 7*50)
			check.Equal(t, "sent", l.sendPackets(), "1/1#0BE 2/3#0BE")
			check.That(t, l.s.HasSettled(first, false) && l.s.HasSettled(third, false), "it has not settled")
			l.sack(2)
			l.check()
			l.s.Release(third) // what it has waits for the older ones
			check.Equal(t, "sent", l.sendPackets(), "3/3#1BE")
			l.s.ResetSSNs([]wire.StreamID{1})
			l.s.Release(first)
			check.Equal(t, "sent", l.sendPackets(), "4/1#0BE")
			check.That(t, l.s.HasSettled(second, false), "it has not settled")
			l.s.ResetSSNs([]wire.StreamID{1, 2})
			l.s.Release(second)
			check.Equal(t, "sent", l.sendPackets(), "5/2#0BE 6/1#0BE 7/1#1BE")
			l.sack(7)
			l.check()
			check.That(t, l.s.CanIdle() && l.s.Queued() == 0, "something waits")
		})
	}
}

// A denied reset leaves the numbers as they were.
func TestMessagesGoOnAfterADeniedReset(t *testing.T) {
	l := newExtensionsLab(t, false, false)
	l.enqueue(50, Message{Stream: 1})
	hold := l.s.Hold(nil)
	l.enqueue(50, Message{Stream: 1})
	check.Equal(t, "sent", l.sendPackets(), "1/1#0BE")
	l.s.Release(hold)
	check.Equal(t, "sent", l.sendPackets(), "2/1#1BE")
	l.s.Release(hold) // and nothing
}

// A message that is being cut belongs to the time before the reset.
func TestResetWaitsForTheRestOfAMessage(t *testing.T) {
	for name, newResetLab := range resetLabs {
		t.Run(name, func(t *testing.T) {
			l := newResetLab(t)
			l.enqueue(8*full, Message{Stream: 1})
			first := l.sendPackets()
			check.That(t, first != "", "nothing is sent")
			hold := l.s.Hold([]wire.StreamID{1})
			for sent := wire.TSN(4); !l.s.HasSettled(hold, false); sent += 2 {
				must.That(t, sent < 20, "it never settles")
				l.sack(sent)
				l.sendPackets()
			}
			check.Equal(t, "next TSN", l.s.NextTSN(), 9)
		})
	}
}

// HasSettled looks at a long queue now and then, and not at all of it for each chunk.
func TestSettlingTakesLittleWork(t *testing.T) {
	l := newExtensionsLab(t, false, false)
	const n = 5000
	for range n {
		l.enqueue(50, Message{Stream: 2})
	}
	l.enqueue(50, Message{Stream: 1})
	for range n {
		l.enqueue(50, Message{Stream: 2})
	}
	hold := l.s.Hold([]wire.StreamID{1})
	before, looks, settledAt := l.s.Steps(), 0, wire.TSN(0)
	for cum := wire.TSN(0); l.s.Outstanding() > 0 || l.s.Queued() > 0; looks++ {
		l.sendPackets()
		if l.s.HasSettled(hold, false) && settledAt == 0 {
			settledAt = l.s.NextTSN()
		}
		cum = l.s.NextTSN() - 1
		l.sack(cum)
	}
	check.That(t, settledAt >= n+2 && settledAt < n+2000, "settled at TSN %d, the last chunk of the stream is %d", settledAt,
		n+1)
	check.That(t, l.s.Steps()-before < 8*2*n, "%d steps in %d looks", l.s.Steps()-before, looks)
}

func TestResetOfAllStreams(t *testing.T) {
	l := newExtensionsLab(t, false, false)
	for _, s := range []wire.StreamID{0, 1, 9} {
		l.enqueue(50, Message{Stream: s})
	}
	check.That(t, l.s.AreSSNsZero(nil), "nothing is sent, and SSNs are not zero")
	check.Equal(t, "sent", l.sendPackets(), "1/0#0BE 2/1#0BE 3/9#0BE")
	check.That(t, !l.s.AreSSNsZero(nil) && !l.s.AreSSNsZero([]wire.StreamID{3, 9}) && l.s.AreSSNsZero([]wire.StreamID{3}),
		"SSNs are zero: %v, of 3 and 9: %v, of 3: %v", l.s.AreSSNsZero(nil), l.s.AreSSNsZero([]wire.StreamID{3, 9}),
		l.s.AreSSNsZero([]wire.StreamID{3}))
	hold := l.s.Hold(nil)
	for _, s := range []wire.StreamID{9, 1, 0} {
		l.enqueue(50, Message{Stream: s})
	}
	l.s.ResetSSNs(nil)
	check.That(t, l.s.AreSSNsZero(nil), "SSNs are not zero after a reset")
	l.s.Release(hold)
	check.Equal(t, "sent", l.sendPackets(), "4/9#0BE 5/1#0BE 6/0#0BE")
}

// With I-DATA both MIDs begin with 0 again.
func TestResetOfMIDs(t *testing.T) {
	for _, list := range [][]wire.StreamID{nil, {1}} {
		l := newExtensionsLab(t, false, true)
		both := func() {
			l.enqueue(50, Message{Stream: 1})
			l.enqueue(50, Message{Stream: 1, Unordered: true})
			l.enqueue(50, Message{Stream: 2})
		}
		both()
		check.Equal(t, "sent", l.sendPackets(), "1/1#0.0BE 2/1#0.0UBE 3/2#0.0BE")
		check.That(t, !l.s.AreSSNsZero(nil) && !l.s.AreSSNsZero([]wire.StreamID{1}) &&
			l.s.AreSSNsZero([]wire.StreamID{3}), "of a stream in use both MIDs are zero")
		l.s.ResetSSNs(list)
		both()
		want := "4/1#0.0BE 5/1#0.0UBE 6/2#1.0BE"
		if list == nil {
			want = "4/1#0.0BE 5/1#0.0UBE 6/2#0.0BE"
		}
		check.Equal(t, "sent", l.sendPackets(), want)
	}
}

// What is held expires, is detached, counts for its stream, and fails with the association.
func TestHeldMessagesAreMessages(t *testing.T) {
	l := newExtensionsLab(t, false, false)
	l.s.SetLowMark(1, 0)
	hold := l.s.Hold([]wire.StreamID{1})
	body := []byte("body")
	must.OK(t, l.s.Enqueue(&Message{Stream: 1, Body: [2][]byte{body}, Token: 70, Expires: l.now + 5*ms}))
	must.OK(t, l.s.Enqueue(&Message{Stream: 1, Body: [2][]byte{body}, Token: 71}))
	l.check()
	check.Equal(t, "octets of the stream", l.s.BufferedOf(1), 8)
	check.Equal(t, "next timeout", l.s.NextTimeout(), l.now+5*ms)
	l.now += 5 * ms
	list := l.s.Expire(l.now)
	check.That(t, len(list) == 1 && list[0].Token == 70, "expired: %+v", list)
	l.check()
	check.That(t, !l.s.Detach(1, nil), "there is more to detach")
	held := l.s.Held()
	body[0] = 'B'
	l.s.Release(hold)
	check.That(t, l.s.Held() < held, "%d octets are held before Release, %d behind it", held, l.s.Held())
	l.b.Reset()
	l.transmit()
	check.Equal(t, "octet of the message", string(chunks(t, l.b.Pkts[0])[0].Payload()), "body")
	l.sack(1)
	l.check()
	check.Equal(t, "octets of the stream", l.s.BufferedOf(1), 0)

	l.s.Hold(nil)
	l.enqueue(50, Message{Stream: 1})
	l.s.Stop()
	f, ok := l.s.NextFailed()
	check.That(t, ok && f.Token == l.token && !f.Sent, "failed: %+v, %v", f, ok)
}

func TestAddedStreams(t *testing.T) {
	l := newExtensionsLab(t, false, false)
	check.Error(t, "Enqueue", l.s.Enqueue(&Message{Stream: 16, Body: [2][]byte{{1}}}), ErrStream)
	l.s.AddStreams(2)
	l.enqueue(50, Message{Stream: 17})
	check.Error(t, "Enqueue", l.s.Enqueue(&Message{Stream: 18, Body: [2][]byte{{1}}}), ErrStream)
	check.Equal(t, "sent", l.sendPackets(), "1/17#0BE")
}

// I-DATA, and messages that may be abandoned, go on after a reset of TSNs.
func TestRestartOfTSNsKeepsExtensions(t *testing.T) {
	l := newExtensionsLab(t, true, true)
	l.enqueue(50, Message{Stream: 1})
	check.Equal(t, "sent", l.sendPackets(), "1/1#0.0BE")
	l.sack(1)
	hold := l.s.Hold(nil)
	l.s.RestartTSN(1 << 31)
	l.s.Release(hold)
	l.enqueue(50, Message{Stream: 1, Policy: AbandonResent})
	check.Equal(t, "sent", l.sendPackets(), "2147483648/1#0.0BE")
	l.check()
	check.That(t, l.s.Interleaves() && l.s.partial() != nil, "I-DATA: %v, PR-SCTP: %v", l.s.Interleaves(), l.s.partial() != nil)
	l.sack(1 << 31)
	l.check()
}

// After a reset of TSNs all goes on as before, with other numbers: the window of the path, the
// peer's, what waits, and lost chunks are found.
func TestRestartOfTSNs(t *testing.T) {
	for name, newRestartLab := range map[string]func(*testing.T) *extensionsLab{
		"DATA":                func(t *testing.T) *extensionsLab { return newExtensionsLab(t, false, false) },
		"a scheduler":         resetLabs["a scheduler"],
		"partial reliability": func(t *testing.T) *extensionsLab { return newExtensionsLab(t, true, false) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newRestartLab(t)
			for range 3 {
				l.enqueue(900, Message{Stream: 1})
			}
			check.Equal(t, "sent", l.sendPackets(), "1/1#0BE | 2/1#1BE | 3/1#2BE")
			l.now += 100 * ms
			l.sack(3)
			cwnd, srtt := l.pathAt(0).cc.Window(), l.pathAt(0).rttEst.srtt
			hold := l.s.Hold(nil)
			check.That(t, l.s.HasSettled(hold, true), "all is acknowledged, and it says no")
			l.enqueue(900, Message{Stream: 1})
			steps, next := l.s.Steps(), wire.TSN(4+1<<31)
			l.s.RestartTSN(next)
			l.check()
			check.Equal(t, "next TSN", l.s.NextTSN(), next)
			check.Equal(t, "cumulative TSN", l.s.CumTSN(), next-1)
			check.That(t, l.s.Steps() >= steps, "steps are counted anew")
			check.Equal(t, "sent while it is held", l.sendPackets(), "")
			l.s.Release(hold)
			for range 5 {
				l.enqueue(900, Message{Stream: 1})
			}
			check.Equal(t, "sent", l.sendPackets(),
				"2147483652/1#0BE | 2147483653/1#1BE | 2147483654/1#2BE | 2147483655/1#3BE | 2147483656/1#4BE")
			check.That(t, l.pathAt(0).cc.Window() == cwnd && l.pathAt(0).rttEst.srtt == srtt, "window %d, was %d; RTT %v, was %v",
				l.pathAt(0).cc.Window(), cwnd, l.pathAt(0).rttEst.srtt, srtt)
			l.now += 100 * ms
			for i := range wire.TSN(3) {
				l.sack(next-1, [2]wire.TSN{next + 1, next + 1 + i})
			}
			check.That(t, l.s.ChunkInfo(next).Misses == 3 || l.s.stats.Retransmits > 0 ||
				l.s.outstanding.numToRetransmit == 1, "the loss of the first is not noticed")
			check.That(t, l.s.NextTimeout() != rawio.Never, "no timer runs")
		})
	}
}
