package tx

import (
	"fmt"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestMessageIsAbandonedWhenAChunkWouldGoTooOften(t *testing.T) {
	// req 3758-3.5-1
	// req 7496-3.1-5
	// req 7496-3.1-1
	// req 7496-3.1-2
	for limit := range uint32(4) {
		t.Run(fmt.Sprint(limit, " times again"), func(t *testing.T) {
			l := newExtensionsLab(t, true, false)
			l.enqueue(100, Message{Policy: AbandonResent, Limit: limit})
			l.expectSent("first", "1/0#0BE")
			for range limit {
				l.expectAbandoned("before the limit")
				l.runNextTimeout()
				l.expectSent("again", "1/0#0BE")
			}
			l.runNextTimeout()
			l.expectAbandoned("beyond the limit", 1)
			check.That(t, l.s.Flight() == 0 && l.s.Queued() == 0 && l.s.Buffered() == 0, "it still is outstanding")
			l.expectSent("then", "F 1 0#0")
			l.sack(1)
			check.That(t, l.s.Outstanding() == 0 && len(l.acked) == 0, "%d outstanding, acknowledged %v",
				l.s.Outstanding(), l.acked)
			check.Equal(t, "messages counted", l.s.Abandoned().Sent[AbandonResent], 1)
			check.Equal(t, "of the stream", l.s.AbandonedOf(0).Sent[AbandonResent], 1)
			check.Equal(t, "of another stream", l.s.AbandonedOf(1), AbandonCounts{})
		})
	}
}

// A chunk that three SACKs report missing counts as lost, whatever becomes of its message.
func TestAbandonedChunkCountsAsLost(t *testing.T) {
	// req 3758-3.5-11
	// req 7496-3.1-3
	// req 7496-3.1-4
	for _, limit := range []uint32{0, 100} {
		l := newExtensionsLab(t, true, false)
		for range 4 {
			l.enqueue(full, Message{Policy: AbandonResent, Limit: limit})
		}
		l.expectSent("all", "1/0#0BE | 2/0#1BE | 3/0#2BE | 4/0#3BE")
		for last := wire.TSN(2); last <= 4; last++ {
			l.sack(0, [2]wire.TSN{2, last})
		}
		check.That(t, l.s.recovery.active, "limit %d: no Fast Recovery", limit)
		l.expectCwnd(fmt.Sprintf("limit %d", limit), 4000) // half of it, but at least four packets
		if limit == 0 {
			l.expectAbandoned("the one that is lost", 1)
			before := l.pathAt(0).cc.Window()
			l.expectSent("then", "F 1 0#0")
			l.sack(4)
			check.Equal(t, "cwnd after the FORWARD TSN", l.pathAt(0).cc.Window(), before)
		}
	}
}

// cwnd is full, and nothing is lost: what is acknowledged opens it, what was given up does not.
func TestAbandonedChunksDoNotOpenCwnd(t *testing.T) {
	// req 3758-3.5-2
	for _, abandons := range []bool{false, true} {
		l := newExtensionsLab(t, true, false)
		for range 9 {
			l.enqueue(full, Message{Policy: AbandonResent})
		}
		l.expectSent("a full window", "1/0#0BE | 2/0#1BE | 3/0#2BE | 4/0#3BE | 5/0#4BE")
		want := 5000 // by a packet, for two (RFC 9260 section 7.2.1)
		if abandons {
			want = 4000
			l.abandonInFlight(1, 2)
			l.expectSent("others instead", "F 2 0#1 6/0#5BE | 7/0#6BE")
		}
		l.sack(2)
		l.expectCwnd(fmt.Sprintf("abandoned: %v", abandons), want)
	}
}

func TestExpiredMessageTakesNoTSN(t *testing.T) {
	// req 3758-4.1-1
	l := newExtensionsLab(t, true, false)
	for range 5 {
		l.enqueue(full, Message{Policy: AbandonExpired, Expires: 100 * ms})
	}
	l.expectSent("the window", "1/0#0BE | 2/0#1BE | 3/0#2BE | 4/0#3BE | 5/0#4BE")
	late := l.enqueue(full, Message{Policy: AbandonExpired, Expires: 100 * ms})
	kept := l.enqueue(full, Message{})
	l.now = 100 * ms
	list := l.s.Expire(l.now)
	must.That(t, len(list) == 1 && list[0].Token == late && !list[0].Sent, "expired: %v", list)
	l.sack(5)
	l.expectSent("the next", "6/0#5BE")
	l.sack(6)
	check.Equal(t, "the last acknowledged", l.acked[len(l.acked)-1], kept)
	check.Equal(t, "counted", l.s.Abandoned().Unsent[AbandonExpired], 1)
}

func TestExpiredMessageIsNotSentAgain(t *testing.T) {
	// req 3758-4.1-1
	l := newExtensionsLab(t, true, false)
	l.enqueue(100, Message{Policy: AbandonExpired, Expires: 1500 * ms})
	l.expectSent("first", "1/0#0BE")
	l.runNextTimeout() // at 1 s
	l.expectSent("again in time", "1/0#0BE")
	l.expectAbandoned("in time")
	l.s.Expire(1500 * ms) // it drops only what was never sent
	l.runNextTimeout()    // at 3 s
	l.expectAbandoned("too late", 1)
	l.expectSent("instead", "F 1 0#0")
}

// It is marked in time, and expires before cwnd lets it go.
func TestExpiredMessageIsNotSentAgainThoughItWasMarked(t *testing.T) {
	// req 3758-4.1-1
	l := newExtensionsLab(t, true, false)
	l.enqueue(100, Message{Policy: AbandonExpired, Expires: 1500 * ms})
	l.expectSent("first", "1/0#0BE")
	l.runNextTimeout()
	check.Equal(t, "marked", int(l.s.outstanding.numToRetransmit), 1)
	l.now = 1500 * ms
	l.expectSent("instead", "F 1 0#0")
	l.expectAbandoned("then", 1)
}

func TestAllFragmentsAreAbandonedTogether(t *testing.T) {
	// req 3758-3.5-3
	for _, c := range []struct {
		name         string
		interleaves  bool
		sent, expect string
	}{
		{"DATA", false, "1/0#0BE | 2/1#0B | 3/1#0 | 4/1#0E", "F 4 1#0"},
		{"I-DATA", true, "1/0#0.0BE | 2/1#0.0B | 3/1#0.1 | 4/1#0.2E", "IF 4 1#0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newExtensionsLab(t, true, c.interleaves)
			room := l.s.MaxPayload()
			l.enqueue(room, Message{})
			token := l.enqueue(3*room, Message{Stream: 1, Policy: AbandonResent})
			l.expectSent("all", c.sent)
			l.sack(1, [2]wire.TSN{3, 3})
			l.sack(1, [2]wire.TSN{3, 4})
			l.runNextTimeout() // TSN 2 is lost; 3 and 4 have arrived, and are of no use
			l.expectAbandoned("all of it", token)
			l.expectSent("instead", c.expect)
			l.sack(4)
			check.Equal(t, "outstanding", l.s.Outstanding(), 0)
			check.Slice(t, "acknowledged", l.acked, []uint64{1})
		})
	}
}

// What is not sent of a message is dropped with the rest. Its last TSN never leaves, so that the
// peer sees where the message ends.
func TestRestOfAnExpiredMessageIsDropped(t *testing.T) {
	// req 3758-4.1-1
	// req 3758-3.5-3
	l := newExtensionsLab(t, true, false)
	l.enqueue(10*full, Message{Policy: AbandonExpired, Expires: 100 * ms})
	next := l.enqueue(10, Message{})
	l.expectSent("the window", "1/0#0B | 2/0#0 | 3/0#0 | 4/0#0 | 5/0#0")
	l.sack(5)
	l.now = 100 * ms
	l.expectSent("the rest, and the next message", "F 6 0#0 7/0#1BE")
	l.expectAbandoned("in the middle", 1)
	l.sack(7)
	check.Slice(t, "acknowledged", l.acked, []uint64{next})
	check.Equal(t, "buffered", l.s.Buffered(), 0)
}

// A closed window has the rest of a message wait for a probe. When its life ends, the FORWARD TSN
// is outstanding, and no probe may go. Its timer does not go off again and again until then.
func TestNoProbeTimerWhileAForwardTSNIsOutstanding(t *testing.T) {
	l := newExtensionsLab(t, true, false)
	l.enqueue(10*full, Message{Policy: AbandonExpired, Expires: 100 * ms})
	l.enqueue(full, Message{})
	l.expectSent("the window", "1/0#0B | 2/0#0 | 3/0#0 | 4/0#0 | 5/0#0")
	l.handleSack(makeSack(5, 0))
	l.expectSent("nothing yet", "")
	l.now = 100 * ms
	l.expectSent("without the rest", "F 6 0#0")
	for range 20 {
		was := l.now
		l.runNextTimeout()
		l.s.Expire(l.now)
		l.sendPackets()
		must.That(t, l.s.NextTimeout() > l.now, "a timer of %v, at %v and at %v", l.s.NextTimeout(), was, l.now)
	}
}

func TestRestIsDroppedWithAFragmentThatIsLost(t *testing.T) {
	// req 3758-3.5-3
	l := newExtensionsLab(t, true, false)
	l.enqueue(10*full, Message{Policy: AbandonResent})
	l.expectSent("the window", "1/0#0B | 2/0#0 | 3/0#0 | 4/0#0 | 5/0#0")
	l.runNextTimeout()
	l.expectAbandoned("all of it", 1)
	l.expectSent("instead", "F 6 0#0")
	check.Equal(t, "queued", l.s.Queued(), 0)
}

// A packet that the link has refused has not left: what goes in its place is no retransmission.
func TestRefusedPacketIsNoTransmission(t *testing.T) {
	// req 7496-3.1-2
	for limit := range uint32(3) {
		l := newExtensionsLab(t, true, false)
		l.enqueue(100, Message{Policy: AbandonResent, Limit: limit})
		l.expectSent("first", "1/0#0BE")
		for range 3 {
			l.s.OnSendRefused(l.pathAt(0), 1)
			l.expectSent("in its place", "1/0#0BE")
			l.expectAbandoned("and it has never left")
		}
		for range limit {
			l.runNextTimeout()
			l.expectSent("again", "1/0#0BE")
		}
		l.expectAbandoned("before the limit")
		l.runNextTimeout()
		l.expectAbandoned("beyond the limit", 1)
	}
}

func TestRoomIsMadeForAMessageThatIsMoreImportant(t *testing.T) {
	// req 7496-3.2-1
	// req 7496-3.2-2
	// req 7496-3.2-3
	// req 7496-3.2-4
	// req 7496-4.3-1
	// req 7496-4.4-1
	l := newExtensionsLab(t, true, false)
	l.s.cfg.SendBuffer = 10 * full
	for range 3 { // sent
		l.enqueue(full, Message{Policy: AbandonForRoom, Limit: 5})
	}
	l.enqueue(full, Message{})
	l.expectSent("all", "1/0#0BE | 2/0#1BE | 3/0#2BE | 4/0#3BE")
	l.enqueue(full, Message{Policy: AbandonForRoom, Limit: 7})
	l.expectSent("one more", "5/0#4BE")
	l.enqueue(2*full, Message{Policy: AbandonForRoom, Limit: 7}) // 6
	l.enqueue(full, Message{Policy: AbandonForRoom, Limit: 3})   // 7
	l.enqueue(2*full, Message{})                                 // 8, never dropped
	check.Error(t, "full", l.s.Enqueue(&Message{Body: [2][]byte{make([]byte, 1)}}), ErrSendBufferFull)
	check.That(t, !l.s.MakeRoom(0, full, 7), "a message of the same priority is abandoned")
	check.That(t, !l.s.MakeRoom(0, 9*full, 1), "there is room that reliable messages have")
	l.expectAbandoned("for nothing")
	check.That(t, l.s.MakeRoom(0, full, 6), "no room was made")
	l.expectAbandoned("the least important, the oldest of them", 5)
	check.That(t, l.s.MakeRoom(0, 4*full, 4), "no room was made")
	l.expectAbandoned("then the next", 1, 6)
	check.Equal(t, "sent", l.s.Abandoned().Sent[AbandonForRoom], 2)
	check.Equal(t, "unsent", l.s.Abandoned().Unsent[AbandonForRoom], 1)
	l.check()
}

func TestPolicyNeedsThePeersConsent(t *testing.T) {
	// req 3758-3.3-2
	l := newLab(t, 1)
	err := l.s.Enqueue(&Message{Body: [2][]byte{{1}}, Policy: AbandonResent})
	check.Error(t, "without PR-SCTP", err, ErrNoPartialReliability)
}

// A chunk that may not go again is not sent as a tail loss probe.
func TestTailLossProbeIsNoRetransmissionTooMany(t *testing.T) {
	// req 7496-3.1-1
	// req 7496-3.1-2
	for limit := range uint32(2) {
		l := newExtensionsLab(t, true, false)
		l.s.cfg.StrictRFC = false
		l.pathAt(0).ObserveRTT(100 * time.Millisecond)
		l.enqueue(100, Message{Policy: AbandonResent, Limit: limit})
		l.expectSent("first", "1/0#0BE")
		l.runNextTimeout()
		want := "1/0#0BE"
		if limit == 0 {
			want = ""
		}
		l.expectSent("after the silence", want)
		l.expectAbandoned("by a probe")
	}
}
