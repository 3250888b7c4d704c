package tx

import (
	"fmt"
	"testing"

	"github.com/rddp-go/rddp/internal/invariant"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/sched"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Each message, and each fragment, has a TSN, of which there are not more outstanding than that.
func TestSendWindowOfIDataStopsAt65535TSNs(t *testing.T) {
	// req 8260-2.1-4
	l := newExtensionsLab(t, false, true)
	l.pathAt(0).cc = newFixedWindow(1 << 30)
	l.s.SetPeer(1<<30, 2)
	for range 66_000 {
		l.enqueue(1, Message{Stream: 1, Unordered: l.token%2 == 0})
	}
	for l.sendPackets() != "" {
	}
	check.Equal(t, "outstanding", l.s.Outstanding(), 65535)
	l.sack(65535)
	for l.sendPackets() != "" {
	}
	check.Equal(t, "outstanding then", l.s.Outstanding(), 66_000-65535)
}

// Two streams with long messages, and one with short ones.
func TestSchedulersChooseAmongStreams(t *testing.T) {
	// req 8260-3-1
	// req 8260-3-2
	// req 8260-3-3
	// req 8260-3-4
	// req 8260-2.2.2-1
	// req 8260-2.2.2-3
	// req 8260-2.2.2-4
	for _, c := range []struct {
		name        string
		scheduler   sched.Scheduler
		interleaves bool
		want        string
	}{
		{"as they came", nil, false, "1/1#0B 2/1#0 3/1#0E 4/2#0B 5/2#0 6/2#0E 7/3#0BE 8/3#1BE"},
		{"round robin", sched.RoundRobin(), false, "1/1#0B 2/1#0 3/1#0E 4/2#0B 5/2#0 6/2#0E 7/3#0BE 8/3#1BE"},
		{"priority", sched.Priority(), false, "1/3#0BE 2/3#1BE 3/2#0B 4/2#0 5/2#0E 6/1#0B 7/1#0 8/1#0E"},
		{"fair", sched.FairCapacity(), false, "1/1#0B 2/1#0 3/1#0E 4/2#0B 5/2#0 6/2#0E 7/3#0BE 8/3#1BE"},
		{"as they came, I-DATA", nil, true,
			"1/1#0.0B 2/1#0.1 3/1#0.2E 4/2#0.0B 5/2#0.1 6/2#0.2E 7/3#0.0BE 8/3#1.0BE"},
		{"round robin, I-DATA", sched.RoundRobin(), true,
			"1/1#0.0B 2/2#0.0B 3/3#0.0BE 4/1#0.1 5/2#0.1 6/3#1.0BE 7/1#0.2E 8/2#0.2E"},
		{"priority, I-DATA", sched.Priority(), true,
			"1/3#0.0BE 2/3#1.0BE 3/2#0.0B 4/2#0.1 5/2#0.2E 6/1#0.0B 7/1#0.1 8/1#0.2E"},
		{"fair, I-DATA", sched.FairCapacity(), true,
			"1/1#0.0B 2/2#0.0B 3/3#0.0BE 4/3#1.0BE 5/1#0.1 6/2#0.1 7/1#0.2E 8/2#0.2E"},
		{"weighted, I-DATA", sched.WeightedFairQueueing(), true,
			"1/1#0.0B 2/2#0.0B 3/3#0.0BE 4/3#1.0BE 5/2#0.1 6/1#0.1 7/2#0.2E 8/1#0.2E"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newExtensionsLab(t, false, c.interleaves)
			l.s.SetScheduler(c.scheduler)
			for id, value := range map[wire.StreamID]uint16{1: 4, 2: 3} {
				if c.name == "weighted, I-DATA" {
					value = map[wire.StreamID]uint16{1: 2, 2: 3}[id]
				}
				l.s.SetStreamValue(id, value)
				check.Equal(t, "value", l.s.StreamValue(id), value)
			}
			room := l.s.MaxPayload()
			l.enqueue(3*room, Message{Stream: 1})
			l.enqueue(3*room, Message{Stream: 2})
			l.enqueue(10, Message{Stream: 3})
			l.enqueue(10, Message{Stream: 3})
			check.Equal(t, "chunks", l.sendAll(), c.want)
		})
	}
}

// sendAll sends one chunk a packet, acknowledges it, and so on.
func (l *extensionsLab) sendAll() (all string) {
	l.t.Helper()
	for range 10000 {
		p := l.s.Poll(l.now)
		if p == nil {
			return all
		}
		l.b.Reset()
		l.b.Begin(1, 2, 3, p.Local, p.Remote, 12+l.s.dataHeaderLen()+wire.PaddedLen(l.s.nextChunkSize()))
		l.s.Fill(l.now, l.b, p)
		l.b.End()
		if all != "" {
			all += " "
		}
		all += describePacket(l.t, l.b.Pkts[0])
		l.check()
		l.sack(l.s.NextTSN() - 1)
	}
	l.t.Fatal("no end of it")
	return ""
}

// A packet of the scheduler per packet has chunks of one stream alone.
func TestPacketsOfOneStream(t *testing.T) {
	// req 8260-3-3
	for scheduler, want := range map[sched.Scheduler]string{
		nil:                         "1/1#0BE 2/2#0BE 3/1#1BE 4/2#1BE 5/3#0BE",
		sched.RoundRobin():          "1/1#0BE 2/2#0BE 3/3#0BE 4/1#1BE 5/2#1BE",
		sched.RoundRobinPerPacket(): "1/1#0BE 2/1#1BE | 3/2#0BE 4/2#1BE | 5/3#0BE",
	} {
		l := newExtensionsLab(t, false, false)
		l.s.SetScheduler(scheduler)
		for _, id := range []wire.StreamID{1, 2, 1, 2, 3} {
			l.enqueue(10, Message{Stream: id})
		}
		l.expectSent(fmt.Sprintf("%T", scheduler), want)
	}
}

// A message that is more important goes at once, though another is in the slot already. One that
// has begun is finished first without I-DATA.
func TestImportantMessageDoesNotWaitForTheSlot(t *testing.T) {
	// req 8260-3-4
	for interleaves, want := range map[bool]string{
		false: "1/1#0B 2/1#0E 3/2#0BE 4/1#1BE", true: "1/1#0.0B 2/2#0.0BE 3/1#0.1E 4/1#1.0BE",
	} {
		l := newExtensionsLab(t, false, interleaves)
		l.s.SetScheduler(sched.Priority())
		l.s.SetStreamValue(1, 9)
		l.enqueue(l.s.MaxPayload()+1, Message{Stream: 1})
		l.enqueue(10, Message{Stream: 1})
		p := l.s.Poll(0)
		l.b.Reset()
		l.b.Begin(1, 2, 3, p.Local, p.Remote, p.MTU())
		l.s.Fill(0, l.b, p)
		l.b.End()
		first := describePacket(t, l.b.Pkts[0])
		must.That(t, l.s.Poll(0) != nil, "nothing more to send") // the rest of it is in the slot
		l.enqueue(10, Message{Stream: 2})
		check.Equal(t, "chunks", first+" "+l.sendPackets(), want)
	}
}

// The scheduler may be another one at any time, and none. What has begun is finished as it was.
func TestSchedulerChangesWhileMessagesWait(t *testing.T) {
	for _, interleaves := range []bool{false, true} {
		schedulers := []func() sched.Scheduler{sched.RoundRobin, sched.Priority, sched.FairCapacity,
			sched.WeightedFairQueueing, sched.RoundRobinPerPacket, func() sched.Scheduler { return nil }}
		l := newExtensionsLab(t, false, interleaves)
		total := 0
		for i := range 300 {
			l.enqueue(100+i*37%3000, Message{Stream: wire.StreamID(i * 7 % 11), Unordered: i%5 == 0})
			total++
			l.s.SetScheduler(schedulers[i%len(schedulers)]())
			l.check()
			if i%3 == 0 {
				l.sendPackets()
				l.sack(l.s.NextTSN() - 1)
			}
		}
		l.sendAll()
		check.Equal(t, "messages acknowledged", len(l.acked), total)
		check.Equal(t, "buffered", l.s.Buffered(), 0)
		l.s.Trim()
		check.Equal(t, "messages that wait", l.s.queue.numWaiting(), 0)
	}
}

// What is left when the association ends fails once, message by message.
func TestQueuedMessagesFailAtTheEndUnderAScheduler(t *testing.T) {
	l := newExtensionsLab(t, false, true)
	l.s.SetScheduler(sched.RoundRobin())
	for i := range 10 {
		l.enqueue(3000, Message{Stream: wire.StreamID(i % 3)})
	}
	l.sendPackets()
	l.s.Stop()
	seen := map[uint64]int{}
	for f, ok := l.s.NextFailed(); ok; f, ok = l.s.NextFailed() {
		seen[f.Token]++
	}
	for token := range uint64(10) {
		check.Equal(t, fmt.Sprint("message ", token+1), seen[token+1], 1)
	}
}

// wrongScheduler chooses a stream that has nothing to send.
type wrongScheduler struct{ sched.Scheduler }

func (wrongScheduler) Next(bool) (uint16, bool) { return 7, true }

func TestSchedulerThatChoosesNonsenseIsAFault(t *testing.T) {
	defer invariant.TolerateInTest()()
	l := newExtensionsLab(t, false, false)
	l.s.SetScheduler(wrongScheduler{sched.RoundRobin()})
	l.enqueue(10, Message{Stream: 1})
	check.That(t, l.s.Poll(0) == nil && l.s.Fault() != nil, "no fault: %v", l.s.Fault())
}

func TestExpiredMessagesLeaveTheScheduler(t *testing.T) {
	l := newExtensionsLab(t, false, false)
	l.s.SetScheduler(sched.RoundRobin())
	l.enqueue(10, Message{Stream: 1, Expires: ms})
	l.enqueue(10, Message{Stream: 2, Expires: ms})
	l.enqueue(10, Message{Stream: 3})
	l.s.Poll(0) // one is in the slot
	check.Equal(t, "expired", len(l.s.Expire(ms)), 2)
	l.check()
	l.expectSent("the one that is left", "1/3#0BE")
	check.Equal(t, "active streams", l.s.queue.streams.active, 0)
}

// The amount of each stream follows its chunks, whenever somebody begins to ask.
func TestAmountsOfStreams(t *testing.T) {
	for _, askLate := range []bool{false, true} {
		l := newExtensionsLab(t, true, true)
		l.s.SetScheduler(sched.RoundRobin())
		if !askLate {
			l.s.SetLowMark(1, 100)
		}
		l.enqueue(5*full, Message{Stream: 1})
		l.enqueue(300, Message{Stream: 2, Policy: AbandonResent})
		l.enqueue(50, Message{Stream: 3, Expires: ms})
		l.sendPackets()
		if askLate {
			l.s.SetLowMark(1, 100)
		}
		check.Equal(t, "stream 1", l.s.BufferedOf(1), 5*full)
		check.Equal(t, "stream 2", l.s.BufferedOf(2), 300)
		check.Equal(t, "all", l.s.Buffered(), 5*full+350)
		l.sack(1)
		check.Equal(t, "low", len(l.s.TakeLow()), 0)
		l.sendAll()
		l.runOut()
		check.Equal(t, "stream 1 at the end", l.s.BufferedOf(1), 0)
		check.Equal(t, "stream 2 at the end", l.s.BufferedOf(2), 0)
		check.Slice(t, "low", l.s.TakeLow(), []wire.StreamID{1})
	}
}

// A stream that fills the send buffer leaves the reserve to others that have little: half of what
// is left of it each. What is acknowledged gives it back.
func TestReserveOfTheSendBuffer(t *testing.T) {
	for _, scheduled := range []bool{false, true} {
		l := newExtensionsLab(t, false, false)
		l.s.cfg.SendBuffer = 8 * full // of which one more is the reserve
		if scheduled {
			l.s.SetScheduler(sched.RoundRobin())
		}
		for range 8 {
			l.enqueue(full, Message{Stream: 1})
		}
		check.That(t, !l.s.HasRoom(1), "there is room in a full buffer")
		for _, m := range []struct {
			stream wire.StreamID
			octets int
			fits   bool
		}{
			{1, 1, false}, {2, full/2 + 1, false}, {2, full / 4, true}, {2, full / 4, false}, {3, full * 3 / 8, true},
			{4, full * 3 / 16, true}, {3, 1, false},
		} {
			fits := m.fits && scheduled
			check.Equal(t, "room in the reserve", l.s.HasReserve(m.stream, m.octets), fits)
			msg := Message{Stream: m.stream, Reserve: true, Body: [2][]byte{make([]byte, m.octets)}}
			check.Equal(t, "it is taken", l.s.Enqueue(&msg) == nil, fits)
			must.OK(t, l.s.Audit())
		}
		check.Equal(t, "with it all others wait", l.s.HasRoom(1), false)
		l.sendAll()
		l.runOut()
		check.That(t, l.s.HasRoom(8*full) && !l.s.HasRoom(8*full+1), "the buffer is not as it was")
		check.Equal(t, "half of the reserve", l.s.HasReserve(1, full/2), scheduled)
		check.Equal(t, "more", l.s.HasReserve(1, full/2+1), false)
	}
}

// runOut acknowledges whatever is outstanding.
func (l *extensionsLab) runOut() {
	for l.s.Outstanding() > 0 {
		l.sack(l.s.NextTSN() - 1)
		l.sendPackets()
	}
}
