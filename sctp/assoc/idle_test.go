package assoc_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/sched"
	"github.com/rddp-go/rddp/sctp/wire"
)

// A host whose associations rest whenever nothing is under way does what it would do otherwise, to
// the octet. What was sent again recently is forgotten, and so what a duplicate that comes later
// says of it: which no peer lets wait for IdleAfter.
func TestWhoRestsForgetsNothing(t *testing.T) {
	const few = 10
	stories := 1000
	if testing.Short() {
		stories = 100
	}
	rests, late := 0, 0
	for seed := range int64(stories) {
		script := sctptest.RandomScenario(seed)
		want := sctptest.RunScenario(t, script)
		got := sctptest.RunScenario(t, script, func(h *sctptest.Host) {
			h.OnPoll = func(a *assoc.Assoc) {
				if !a.IsIdle() && a.GoIdle() {
					rests++
				}
			}
		})
		if got != want && strings.Contains(want, "DuplicatesReported") {
			late++
			continue
		}
		check.That(t, got == want, "the story of seed %d is otherwise where associations rest", seed)
	}
	check.That(t, rests > stories, "%d rests in %d stories", rests, stories)
	check.That(t, late < few, "%d stories of late duplicates are otherwise", late)
}

// snapshotOf is all that others see of an association.
func snapshotOf(a *assoc.Assoc) string {
	streams, _ := a.Streams(0, make([]assoc.StreamStats, 0, 99))
	return fmt.Sprintf("%+v %+v %v %v %v %+v %v %v %v %v", a.Stats(), a.Marks(), a.Steps(), a.DataSent(),
		a.Buffered(), streams, a.NextTimeout(), a.PeerAddr(), a.PathStats(0), a.State())
}

// An association that is idle looks as before, and keeps less. HEARTBEATs do not end it, and
// whatever has to do with DATA does.
func TestRest(t *testing.T) {
	const halves = 1 << 10 // it is more
	for _, row := range []struct {
		name  string
		stays bool
		does  func(w *sctptest.World, a, b *assoc.Assoc)
	}{
		{"nothing", true, func(*sctptest.World, *assoc.Assoc, *assoc.Assoc) {}},
		{"HEARTBEATs", true, func(w *sctptest.World, a, _ *assoc.Assoc) {
			n := a.Stats().HeartbeatAcksIn
			w.Run(2 * time.Minute)
			check.That(t, a.Stats().HeartbeatAcksIn > n, "there are no HEARTBEATs")
		}},
		{"reading nothing", true, func(_ *sctptest.World, a, _ *assoc.Assoc) {
			_, ok := a.Receive()
			a.HoldSack(true)
			a.HoldSack(false)
			a.Expect(false)
			check.That(t, !ok && !a.Detach(0, nil), "there is something to receive, or to copy")
		}},
		{"sending", false, func(w *sctptest.World, a, _ *assoc.Assoc) { w.Send(a, 3, []byte("x")) }},
		{"more to come", false, func(_ *sctptest.World, a, _ *assoc.Assoc) { a.Expect(true) }},
		{"DATA", false, func(w *sctptest.World, a, b *assoc.Assoc) {
			w.Send(b, 3, []byte("x"))
			w.Run(100 * time.Millisecond)
		}},
		{"want of memory", false, func(_ *sctptest.World, a, _ *assoc.Assoc) { a.SetMemoryPressure(true) }},
		{"a shutdown", false, func(w *sctptest.World, a, _ *assoc.Assoc) { must.OK(t, a.Shutdown(w.Now)) }},
		{"its end", false, func(w *sctptest.World, a, _ *assoc.Assoc) { a.Abort(w.Now, nil) }},
		{"a change of what it is configured with", false, func(w *sctptest.World, a, _ *assoc.Assoc) {
			must.OK(t, a.Reconfigure(w.Now, func(c *assoc.Config) { c.RecvBuffer = 9999 }))
		}},
	} {
		w, a, b := sctptest.Pair(t, nil, nil)
		w.Hosts[0].Reads, w.Hosts[1].Reads = true, true
		if w.Run(3 * time.Second); !a.IsIdle() || !b.IsIdle() {
			t.Errorf("%s: an association that has sent no DATA does not rest", row.name)
		}
		idle := a.Held()
		for i := range 9 {
			w.Send(a, wire.StreamID(i), []byte("there"))
			w.Send(b, wire.StreamID(i/2), []byte("and back"))
		}
		w.Run(assoc.IdleAfter / 2)
		w.Flush()
		check.That(t, !a.IsIdle() && !b.IsIdle(), "%s: they rest too early", row.name)
		before, held := snapshotOf(a), a.Held()
		must.That(t, a.GoIdle() && a.IsIdle() && a.GoIdle(), "%s: it does not rest when told to", row.name)
		check.Equal(t, row.name+": what can be seen", snapshotOf(a), before)
		rested := a.Held()
		check.That(t, held-rested > halves && rested >= idle+2*64,
			"%s: it holds %d octets, %d before, %d without streams", row.name, rested, held, idle)
		must.OK(t, a.Audit(0))
		row.does(w, a, b)
		check.That(t, a.IsIdle() == row.stays || a.State() != assoc.Established, "%s: it rests: %v", row.name,
			a.IsIdle())
		check.That(t, (a.Held() > rested+halves) != row.stays, "%s: it holds %d octets, and %d at rest", row.name,
			a.Held(), rested)
		if a.State() == assoc.Established {
			got := w.Hosts[1].Received.Len()
			w.Send(a, 1, []byte("goes on"))
			w.Run(time.Second)
			check.That(t, w.Hosts[1].Received.Len() >= got+len("goes on"), "%s: nothing comes from who has rested",
				row.name)
			must.OK(t, a.Audit(0))
		}
	}
}

// After IdleAfter, with the next packet that it has reason to send or gets, it rests by itself; not
// while a message is unread, outstanding, or comes in pieces.
func TestRestAfterAWhile(t *testing.T) {
	w, a, b := sctptest.Pair(t, nil, nil)
	w.Send(a, 0, []byte("x"))
	w.Run(5 * assoc.IdleAfter)
	check.That(t, a.IsIdle() && !b.IsIdle(), "who has sent a message rests: %v, and who has not read it: %v",
		a.IsIdle(), b.IsIdle())
	m, ok := b.Receive()
	must.That(t, ok && !b.GoIdle(), "it rests with a message in use")
	b.Release(m)
	check.That(t, b.GoIdle(), "it does not rest when that is released")
	w.Net.Partition(w.Hosts[0].Addrs[0], w.Hosts[1].Addrs[0])
	w.Send(a, 0, []byte("y"))
	w.Run(time.Second)
	check.That(t, !a.GoIdle(), "it rests while DATA is outstanding")
}

// A Source that has something ends a rest as well, and one that has nothing is all that is asked.
func TestSourceEndsARest(t *testing.T) {
	w, a, _ := sctptest.Pair(t, nil, nil)
	s := new(tap)
	a.SetUpper(nil, s)
	w.Run(time.Minute)
	check.That(t, a.IsIdle(), "it does not rest")
	s.n = 1
	w.Flush()
	sent := w.Seen(0, wire.ChunkData)
	check.That(t, !a.IsIdle() && len(sent) == 1, "%d DATA chunks were sent, it rests: %v", len(sent), a.IsIdle())
}

// An association that has used all extensions, on ten streams, rests in 8 KiB, its part of
// sctp.Conn included. One that has agreed on them takes less, see
// sctp.TestIdleAssociationWithExtensionsIsSmall.
func TestRestWithExtensionsIsSmall(t *testing.T) {
	const most, restOfConn = 8 << 10, 1 << 10
	cfg := func() *assoc.Config {
		return &assoc.Config{PartialReliability: true, Interleaving: true, StreamReset: allResets,
			NewScheduler: sched.WeightedFairQueueing}
	}
	w, a, b := sctptest.Pair(t, cfg(), cfg())
	for _, x := range []*assoc.Assoc{a, b} {
		for i := range wire.StreamID(10) {
			for _, unordered := range []bool{false, true} {
				must.OK(t, x.Send(w.Now, &assoc.Message{Stream: i, Unordered: unordered, Body: [2][]byte{make([]byte, 3000)},
					Policy: assoc.AbandonResent, Limit: 3}))
			}
		}
		w.Run(time.Second)
		must.OK(t, resetStreams(x, w.Now, true, true, []wire.StreamID{1, 5}))
		w.Run(time.Second)
		must.OK(t, addStreams(x, w.Now, 1, 1))
		w.Run(time.Second)
		must.OK(t, resetTSNs(x, w.Now))
		w.Run(time.Second)
		w.Send(x, 5, []byte("again"))
		w.Run(time.Second)
	}
	sctptest.Drain(a)
	sctptest.Drain(b)
	w.Run(5 * time.Minute)
	for name, x := range map[string]*assoc.Assoc{"first": a, "second": b} {
		t.Logf("the %s holds %d octets", name, x.Held())
		check.That(t, x.IsIdle(), "the %s does not rest", name)
		check.That(t, x.Held() <= most-restOfConn, "the %s holds %d octets", name, x.Held())
	}
}
