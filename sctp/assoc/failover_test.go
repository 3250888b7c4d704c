package assoc_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// steady keeps heartbeats out of a story about data.
var steady = assoc.Config{HeartbeatInterval: time.Hour, SendBuffer: 32 << 10}

func TestFailedPrimaryPathCostsNoMessage(t *testing.T) {
	for _, row := range []struct {
		name     string
		first    int // the host whose packets are lost from the beginning; the other's for a round trip later
		timeouts uint64
	}{
		{"all that arrived was acknowledged", 0, 1},
		// An acknowledgement of what was sent nowhere else makes the path active again: req
		// 7829-3.2-15.
		{"much arrived whose acknowledgement is lost", 1, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := sctptest.NewMulti(t, 2)
			letter := steady
			letter.RFC9260 = true // else another path is asked, and data leaves, long before
			a, b := w.Associate(letter, letter)
			s := w.StartStream(a, b, 6000)
			var last rawio.Time // when a SACK came last
			sacks := uint64(0)
			step := func() bool {
				if n := a.Stats().SacksIn; n != sacks {
					sacks, last = n, w.Now
				}
				return s.Done()
			}
			w.RunUntil(w.Now.Add(2*time.Second), step)
			w.Net.SetLink(w.Addrs[row.first][0], w.Addrs[1-row.first][0],
				simnet.Params{Delay: sctptest.Latency, Loss: 1})
			w.RunUntil(w.Now.Add(sctptest.RoundTrip), step)
			w.Cut(0)
			cut := w.Now
			last = min(last, cut)
			began, rto := last, sctptest.PathTo(t, a, w.Addrs[1][0]).RTO
			must.That(t, w.RunUntil(w.Now.Add(time.Hour), step), "%d messages sent, %d arrived", s.Sent, s.Want)
			// T3-rtx runs since that SACK. What it has timed out leaves at once on the other path,
			// and arrives after the latency.
			failed, ok := w.When(0, assoc.EventPathPotentiallyFailed, w.Addrs[1][0], cut)
			// req 7829-3.2-2, 7829-6-1, 7829-3.2-16
			check.That(t, ok && failed == began.Add(rto), "potentially failed %v after the last SACK, RTO %v",
				failed.Sub(began), rto)
			first := w.Seen(w.Addrs[1][1], wire.ChunkData, cut)[0]
			check.That(t, first.At == failed, "DATA on the other path after %v", first.At.Sub(began)) // req 9260-6.4-5
			bound := rto + sctptest.Latency
			if row.timeouts == 2 {
				bound = rto + 2*rto + 2*sctptest.RoundTrip // DATA tries the path once more, with the RTO doubled
			}
			p := s.Pause(began)
			check.That(t, p <= bound, "nothing arrived for %v, at most %v expected", p, bound)
			check.Equal(t, "timeouts", a.Stats().Timeouts, row.timeouts)
			// Then nothing goes to the failed path any more: req 7829-3.2-3, 9260-6.4.1-1.
			for _, p := range w.Seen(w.Addrs[1][0], wire.ChunkData,
				failed.Add(time.Duration(row.timeouts-1)*(2*rto+4*sctptest.RoundTrip))) {
				t.Errorf("DATA to the failed path at %v", p.At.Sub(began))
			}
		})
	}
}

func TestFailoverTimeWithoutPotentiallyFailed(t *testing.T) {
	// Path.Max.Retrans errors are allowed, then the path is inactive and new DATA moves too.
	// Messages are delayed by no more than the sum of these timeouts.
	const pmr = 2
	cfg := steady
	cfg.PathMaxRetrans, cfg.PotentiallyFailedMaxRetrans, cfg.RFC9260 = pmr, pmr, true
	w := sctptest.NewMulti(t, 2)
	a, b := w.Associate(cfg, steady)
	s := w.StartStream(a, b, 3000)
	w.RunUntil(w.Now.Add(300*time.Millisecond), s.Done)
	// All that arrived is acknowledged: a late acknowledgement would clear the path's error
	// counter.
	w.Net.SetLink(w.Addrs[0][0], w.Addrs[1][0], simnet.Params{Delay: sctptest.Latency, Loss: 1})
	cut := w.Now
	w.RunUntil(w.Now.Add(sctptest.RoundTrip), s.Done)
	w.Cut(0)
	rto := sctptest.PathTo(t, a, w.Addrs[1][0]).RTO
	must.That(t, w.RunUntil(w.Now.Add(time.Hour), s.Done), "%d messages sent, %d arrived", s.Sent, s.Want)
	down, ok := w.When(0, assoc.EventPathDown, w.Addrs[1][0], cut) // req 9260-8.2-2
	// After each timeout what was in flight leaves on the other path before DATA is tried here
	// again.
	least := rto*(1<<(pmr+1)-1) - 2*sctptest.Latency
	d := down.Sub(cut)
	check.That(t, ok && d >= least && d <= least+(1+3*pmr)*sctptest.RoundTrip,
		"path down after %v, want little more than %v", d, least)
	_, pf := w.When(0, assoc.EventPathPotentiallyFailed, netip.Addr{}, 0)
	check.That(t, !pf, "potentially failed although that state is off") // req 7829-3.2-1
	n := len(w.Seen(w.Addrs[1][0], wire.ChunkData, cut.Add(100*time.Millisecond)))
	// one packet after each timeout, req 9260-7.2.1-2
	check.That(t, n >= pmr && n <= 3*pmr, "%d packets with DATA on the failing path", n)
	p := s.Pause(cut)
	check.That(t, p <= rto<<pmr+2*sctptest.Latency, "nothing arrived for %v", p)
}

func TestDataReturnsToThePrimaryPath(t *testing.T) {
	// req 7829-5-3: switchback is the default
	for _, row := range []struct {
		name   string
		outage time.Duration
		state  assoc.PathState
		most   int                                   // PotentiallyFailed.Max.Retrans
		within func(p assoc.PathStats) time.Duration // of the return of the network
	}{
		// req 7829-3.2-10
		{"potentially failed: a HEARTBEAT each RTO finds it", 2500 * time.Millisecond, assoc.PathPotentiallyFailed, 0,
			func(p assoc.PathStats) time.Duration { return p.RTO + 2*sctptest.Latency }},
		// req 9260-8.3-7
		{"inactive: a HEARTBEAT each HB.interval and RTO finds it", 200 * time.Second, assoc.PathInactive, 9,
			func(p assoc.PathStats) time.Duration { return 30*time.Second + p.RTO*3/2 + 2*sctptest.Latency }},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := sctptest.NewMulti(t, 2)
			a, b := w.Associate(assoc.Config{PotentiallyFailedMaxRetrans: row.most}, assoc.Config{})
			s := w.Trickle(a, b, 50*time.Millisecond)
			w.RunUntil(w.Now.Add(300*time.Millisecond), s.Done)
			w.Cut(0)
			w.RunUntil(w.Now.Add(row.outage), s.Done)
			before := sctptest.PathTo(t, a, w.Addrs[1][0])
			must.That(t, before.State == row.state && before.Primary && !before.Suspected, "%+v", before)
			w.Heal(0)
			healed := w.Now
			back := func() bool {
				s.Done()
				return sctptest.PathTo(t, a, w.Addrs[1][0]).State == assoc.PathActive
			}
			must.That(t, w.RunUntil(w.Now.Add(row.within(before)), back), "not back after %v", row.within(before))
			at, ok := w.When(0, assoc.EventPathUp, w.Addrs[1][0], healed)
			check.That(t, ok && at == w.Now, "EventPathUp at %v %v", at.Sub(healed), ok) // req 9260-8.2-3
			w.RunUntil(w.Now.Add(time.Second), s.Done)
			d := w.Seen(w.Addrs[1][0], wire.ChunkData, healed)
			// req 9260-6.4-1
			check.That(t, len(d) != 0 && d[0].At.Sub(healed) <= row.within(before)+2*sctptest.Latency,
				"%d packets with DATA on the primary path", len(d))
			end := w.Now
			w.RunUntil(w.Now.Add(time.Second), s.Done)
			check.Equal(t, "packets with DATA on the other path", len(w.Seen(w.Addrs[1][1], wire.ChunkData, end)), 0)
		})
	}
}

func TestAssociationEndsWhenAllPathsFail(t *testing.T) {
	const amr = 10
	cfg := assoc.Config{HeartbeatInterval: -1, AssocMaxRetrans: amr}
	w := sctptest.NewMulti(t, 2)
	a, b := w.Associate(cfg, steady)
	start := w.Now
	for i := range 3 {
		w.CutAndSend(a, i)
	}
	rto := sctptest.PathTo(t, a, w.Addrs[1][0]).RTO
	w.RunUntil(w.Now.Add(time.Hour), func() bool { return a.State() == assoc.Closed })
	// The timeouts alternate, and each path's doubles: 1 1 2 2 4 4 ... The eleventh exceeds the
	// limit.
	want := time.Duration(0)
	for i := range amr + 1 {
		want += rto << (i / 2)
	}
	d := w.Now.Sub(start)
	check.That(t, d == want, "association down after %v, want %v", d, want) // req 9260-8.1-1, 9260-8.1-3
	err, _ := w.Hosts[0].DownErr()
	check.That(t, errors.Is(err, assoc.ErrTimeout), "ended by %v", err)
	var failed []uint64
	for _, e := range w.Hosts[0].Events {
		if e.Kind == assoc.EventSendFailed {
			failed = append(failed, e.Token)
		}
	}
	check.That(t, slices.Equal(failed, []uint64{0, 1, 2}), "messages reported: %v", failed) // req 9260-8.1-4
	check.That(t, b.State() == assoc.Established && len(sctptest.Drain(b)) == 0, "something arrived")
}

// With heartbeats an idle association notices too, and those of paths that data does not use never
// count against it.
func TestOnlyHeartbeatsOfTheDataPathCountAgainstTheAssociation(t *testing.T) {
	cfg := assoc.Config{HeartbeatInterval: time.Second, AssocMaxRetrans: 3, PathMaxRetrans: 5}
	t.Run("the other path is dead: nothing happens", func(t *testing.T) {
		w := sctptest.NewMulti(t, 2)
		a, _ := w.Associate(cfg, cfg)
		w.Cut(1)
		w.Run(time.Hour)
		check.That(t, a.State() == assoc.Established && sctptest.PathTo(t, a, w.Addrs[1][1]).State ==
			assoc.PathInactive,
			"state %v, path %+v", a.State(), sctptest.PathTo(t, a, w.Addrs[1][1])) // req 9260-8.1-2
	})
	t.Run("all are dead: the association ends", func(t *testing.T) {
		w := sctptest.NewMulti(t, 2)
		a, _ := w.Associate(cfg, cfg)
		w.Cut(0)
		w.Cut(1)
		w.Run(time.Hour)
		check.That(t, a.State() == assoc.Closed, "state %v", a.State()) // req 9260-8.1-1
	})
}

func TestDormantAssociationGoesOn(t *testing.T) {
	// Path.Max.Retrans is exceeded on both paths long before Association.Max.Retrans.
	cfg := assoc.Config{HeartbeatInterval: -1, PathMaxRetrans: 1, AssocMaxRetrans: 100, RTOMax: 2 * time.Second}
	w := sctptest.NewMulti(t, 2)
	a, b := w.Associate(cfg, steady)
	w.CutAndSend(a, 1)
	w.Run(30 * time.Second)
	p, q := sctptest.PathTo(t, a, w.Addrs[1][0]), sctptest.PathTo(t, a, w.Addrs[1][1])
	must.That(t, p.State == assoc.PathInactive && q.State == assoc.PathInactive, "%+v %+v", p, q)
	// req 7829-4.1-3: above PMR + 1, and alternating
	check.That(t, p.Errors >= 6 && q.Errors >= 6 && p.Errors <= q.Errors+1 && q.Errors <= p.Errors+1,
		"%d and %d errors", p.Errors, q.Errors)

	for k := range 2 { // req 7829-4.1-1
		n := len(w.Seen(w.Addrs[1][k], wire.ChunkData, w.Now.Add(-10*time.Second)))
		check.That(t, n >= 2, "%d transmissions to path %d in the dormant state", n, k)
	}
	w.Heal(1)
	check.That(t, w.RunUntil(w.Now.Add(10*time.Second), func() bool { return len(sctptest.Drain(b)) == 1 }),
		"the message does not arrive")
}

func TestAcknowledgementsThatClearAPath(t *testing.T) {
	cfg := assoc.Config{HeartbeatInterval: -1}
	fail := func(t *testing.T) (w *sctptest.Multi, a, b *assoc.Assoc) {
		w = sctptest.NewMulti(t, 2)
		a, b = w.Associate(cfg, steady)
		w.Cut(0)
		m := assoc.Message{Body: [2][]byte{make([]byte, sctptest.StreamSize)}}
		must.OK(t, a.Send(w.Now, &m))
		w.Run(900 * time.Millisecond)
		return w, a, b
	}
	t.Run("of DATA that was sent to two of them: neither", func(t *testing.T) { // req 7829-3.2-14
		w, a, b := fail(t)
		w.Run(10 * time.Second)
		must.Equal(t, "messages that arrived", len(sctptest.Drain(b)), 1)
		p := sctptest.PathTo(t, a, w.Addrs[1][0])
		check.That(t, p.State == assoc.PathPotentiallyFailed && p.Errors == 1, "%+v", p)
		// Heartbeats are disabled, so that nothing finds out that the path is back: req 7829-3.2-8.
		w.Heal(0)
		w.Run(time.Hour)
		check.Equal(t, "HEARTBEATs", len(w.Seen(w.Addrs[1][0], wire.ChunkHeartbeat, w.Now.Add(-time.Hour))), 0)
		// But when all others fail, data does: req 7829-3.2-15, 7829-3.2-5.
		w.Cut(1)
		m := assoc.Message{Body: [2][]byte{make([]byte, sctptest.StreamSize)}}
		for range 2 {
			must.OK(t, a.Send(w.Now, &m))
			w.Run(10 * time.Second)
		}
		p = sctptest.PathTo(t, a, w.Addrs[1][0])
		check.That(t, p.State == assoc.PathActive && p.Errors == 0, "%+v", p)
		check.Equal(t, "messages", len(sctptest.Drain(b)), 2)
	})
	t.Run("of DATA on one path: that one", func(t *testing.T) { // req 9260-8.2-3
		w, a, _ := fail(t)
		w.Heal(0) // before T3-rtx expires: the retransmission will be the first that arrives
		w.Cut(1)
		w.Run(10 * time.Second)
		m := assoc.Message{Body: [2][]byte{make([]byte, sctptest.StreamSize)}}
		must.OK(t, a.Send(w.Now, &m))
		w.Run(10 * time.Second)
		p := sctptest.PathTo(t, a, w.Addrs[1][0])
		check.That(t, p.State == assoc.PathActive && p.Errors == 0, "%+v", p)
	})
}

func TestPotentiallyFailedPathIsProbedEachRTO(t *testing.T) {
	w := sctptest.NewMulti(t, 2)
	cfg := assoc.Config{HeartbeatInterval: 100 * time.Second, PathMaxRetrans: 3}
	a, b := w.Associate(cfg, steady)
	s := w.Trickle(a, b, 100*time.Millisecond)
	w.RunUntil(w.Now.Add(300*time.Millisecond), s.Done)
	w.Cut(0)
	cut := w.Now
	w.RunUntil(w.Now.Add(300*time.Second), s.Done)
	failed, _ := w.When(0, assoc.EventPathPotentiallyFailed, w.Addrs[1][0], cut)
	var at []time.Duration
	for _, p := range w.Seen(w.Addrs[1][0], wire.ChunkHeartbeat, failed) {
		at = append(at, p.At.Sub(failed))
	}
	// T3-rtx had expired after 1 s and doubled it: 2 s, 4 s, and after 8 s the fourth error.
	// req 7829-3.2-7, 7829-3.2-9
	must.That(t, len(at) >= 4 && slices.Equal(at[:3], []time.Duration{0, 2 * time.Second, 6 * time.Second}),
		"HEARTBEATs at %v", at)
	down, ok := w.When(0, assoc.EventPathDown, w.Addrs[1][0], cut)
	// req 7829-3.2-12, 7829-3.2-13
	check.That(t, ok && down.Sub(failed) == 14*time.Second, "down after %v", down.Sub(failed))
	// Inactive: HB.interval and the RTO of 16 s, and it goes on. req 7829-3.2-13, 9260-8.3-5
	d := at[3] - 14*time.Second
	check.That(t, d >= 108*time.Second && d <= 124*time.Second, "next HEARTBEAT after %v", d)
}

func TestPotentiallyFailedCanBeHidden(t *testing.T) {
	// req 7829-3.2-16
	w := sctptest.NewMulti(t, 2)
	cfg := assoc.Config{HidePotentiallyFailed: true}
	a, b := w.Associate(cfg, steady)
	up := len(w.Hosts[0].Events)
	s := w.Trickle(a, b, 20*time.Millisecond)
	w.RunUntil(w.Now.Add(300*time.Millisecond), s.Done)
	w.Cut(0)
	w.RunUntil(w.Now.Add(3*time.Second), s.Done)
	p := sctptest.PathTo(t, a, w.Addrs[1][0])
	check.That(t, p.State == assoc.PathActive && p.Errors != 0, "%+v", p)
	w.Heal(0)
	w.RunUntil(w.Now.Add(10*time.Second), s.Done)
	for _, e := range w.Hosts[0].Events[up:] {
		check.Equal(t, "event", e.Kind, assoc.EventSenderDry)
	}
	check.Equal(t, "errors", sctptest.PathTo(t, a, w.Addrs[1][0]).Errors, 0)
}

func TestPrimaryPathSwitchover(t *testing.T) {
	for _, row := range []struct {
		name      string
		limit     *int
		switched  bool
		afterward int // the network of the data at the end
	}{
		{"off: data returns to the primary path", nil, false, 0}, // req 7829-5-3
		{"after the first error", ptrTo(0), true, 1},             // req 7829-5-2, 7829-5-4
		{"after the second error", ptrTo(1), true, 1},
		{"after more errors than there were", ptrTo(9), false, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := sctptest.NewMulti(t, 2)
			cfg := assoc.Config{PrimarySwitchoverMaxRetrans: row.limit}
			a, b := w.Associate(cfg, steady)
			s := w.Trickle(a, b, 20*time.Millisecond)
			w.RunUntil(w.Now.Add(300*time.Millisecond), s.Done)
			w.Cut(0)
			failed := -1 // errors of the old primary path when there is a new one
			w.Hosts[0].OnEvent = func(a *assoc.Assoc, e assoc.Event) {
				if e.Kind == assoc.EventPrimary && e.Path.Addr() == w.Addrs[1][1] {
					failed = sctptest.PathTo(t, a, w.Addrs[1][0]).Errors
				}
			}
			w.RunUntil(w.Now.Add(5*time.Second), s.Done)
			w.Heal(0)
			w.RunUntil(w.Now.Add(10*time.Second), s.Done)
			check.That(t, (!row.switched || failed == *row.limit+1) && (row.switched || failed < 0) &&
				sctptest.PathTo(t, a, w.Addrs[1][1]).Primary == row.switched,
				"a new primary path after %d errors", failed)
			end := w.Now
			w.RunUntil(w.Now.Add(time.Second), s.Done)
			check.That(t, len(w.Seen(w.Addrs[1][row.afterward], wire.ChunkData, end)) != 0 &&
				len(w.Seen(w.Addrs[1][1-row.afterward], wire.ChunkData, end)) == 0, "data is not where it should be")
		})
	}
}

func ptrTo[T any](v T) *T { return &v }

func TestSetPrimary(t *testing.T) {
	w := sctptest.NewMulti(t, 2)
	a, b := w.Associate(steady, steady)
	err := a.SetPrimary(netip.MustParseAddr("10.9.9.9"))
	check.That(t, errors.Is(err, assoc.ErrNoPath), "a stranger's address: %v", err) // req 9260-11.1-6
	s := w.StartStream(a, b, 1<<30)
	w.RunUntil(w.Now.Add(300*time.Millisecond), s.Done)
	must.OK(t, a.SetPrimary(w.Addrs[1][1]))
	at := w.Now + 1 // what left at this same time left before
	w.RunUntil(w.Now.Add(time.Second), s.Done)
	check.That(t, len(w.Seen(w.Addrs[1][0], wire.ChunkData, at)) == 0 &&
		len(w.Seen(w.Addrs[1][1], wire.ChunkData, at)) != 0,
		"data does not follow the primary path") // req 9260-6.4-1
	p := sctptest.PathTo(t, a, w.Addrs[1][1])
	check.That(t, p.Primary && a.PeerAddr().Addr() == w.Addrs[1][1] && a.Stats().Primary == 1, "%+v", p)
}

func TestShutdownFindsAnotherPath(t *testing.T) {
	w := sctptest.NewMulti(t, 2)
	a, b := w.Associate(steady, steady)
	w.Cut(0)
	start := w.Now
	rto := sctptest.PathTo(t, a, w.Addrs[1][0]).RTO
	must.OK(t, a.Shutdown(w.Now))
	over := func() bool { return a.State() == assoc.Closed && b.State() == assoc.Closed }
	must.That(t, w.RunUntil(w.Now.Add(time.Minute), over), "states %v and %v", a.State(), b.State())
	// SHUTDOWN is sent again after one T2-shutdown, and so is SHUTDOWN ACK, whose first goes to the
	// dead primary path of the other side.
	d := w.Now.Sub(start)
	check.That(t, d <= 2*rto+4*sctptest.Latency, "it took %v", d)
	for i, h := range w.Hosts {
		err, _ := h.DownErr()
		check.That(t, errors.Is(err, assoc.ErrShutdown), "host %d: %v", i, err)
	}
}

func TestEachPathHasItsOwnState(t *testing.T) {
	w := sctptest.NewMulti(t, 2)
	a, b := w.Associate(steady, steady)
	s := w.StartStream(a, b, 1<<30)
	w.RunUntil(w.Now.Add(2*time.Second), s.Done)
	p, q := sctptest.PathTo(t, a, w.Addrs[1][0]), sctptest.PathTo(t, a, w.Addrs[1][1])
	// req 9260-7.2-3, 9260-7.2-1
	check.That(t, p.Cwnd > q.Cwnd && p.Flight != 0 && q.Flight == 0, "cwnd %d and %d, flight %d and %d", p.Cwnd,
		q.Cwnd, p.Flight, q.Flight)
	w.Cut(0)
	w.RunUntil(w.Now.Add(5*time.Second), s.Done)
	p, q = sctptest.PathTo(t, a, w.Addrs[1][0]), sctptest.PathTo(t, a, w.Addrs[1][1])
	check.That(t, p.RTO > q.RTO && p.Flight == 0 && q.Flight != 0 && p.Cwnd < q.Cwnd,
		// req 9260-6.3.1-1, 9260-6.3.3-1, 9260-6.4-7
		"RTO %v and %v, flight %d and %d, cwnd %d and %d", p.RTO, q.RTO, p.Flight, q.Flight, p.Cwnd, q.Cwnd)
}

func TestMTUReportConcernsOnePath(t *testing.T) {
	w := sctptest.NewMulti(t, 2)
	a, _ := w.Associate(steady, steady)
	before := a.MaxPayload()
	quote := wire.AppendHeader(nil, sctptest.PortA, sctptest.PortB, a.PeerTag())
	p := rawio.Packet{Kind: rawio.KindPacketTooBig, MTU: 1000, Data: quote,
		Local: netip.AddrPortFrom(w.Addrs[0][1], 0), Remote: netip.AddrPortFrom(w.Addrs[1][1], 0)}
	w.Hosts[0].Receive(w.Now, &p)
	x, y := sctptest.PathTo(t, a, w.Addrs[1][0]).MaxPacket, sctptest.PathTo(t, a, w.Addrs[1][1]).MaxPacket
	// req 9260-10-8, 9260-7.3-2
	check.That(t, x == sctptest.MTU && y == 980, "MTU %d and %d", x, y)
	// req 9260-7.3-3
	check.That(t, a.MaxPayload() == before-(sctptest.MTU-980), "MaxPayload %d, was %d", a.MaxPayload(), before)
}

// The advertised window grows by a full chunk of the primary path (section 6.2, silly window
// avoidance), whatever the MaxPacket of another path.
func TestWindowGrowsByAChunkOfThePrimaryPath(t *testing.T) {
	const payload = 1100 // octets: less than a full chunk at first, more than one where the MaxPacket is 980
	tooBig := func(l *sctptest.Lab, at netip.AddrPort) {
		l.DeliverPacket(rawio.Packet{Kind: rawio.KindPacketTooBig, MTU: 1000,
			Data: sctptest.Packet(sctptest.PortB, sctptest.PortA, l.PeerTag), Remote: at})
	}
	for _, row := range []struct {
		name  string
		do    func(l *sctptest.Lab)
		grows bool
	}{
		{"both paths carry 1452 octets", func(*sctptest.Lab) {}, false},
		{"the MTU of the other path falls", func(l *sctptest.Lab) { tooBig(l, sctptest.Second) }, false},
		{"the MTU of the primary path falls", func(l *sctptest.Lab) { tooBig(l, l.Peer) }, true},
		{"the path of the smaller MTU becomes the primary path", func(l *sctptest.Lab) {
			tooBig(l, sctptest.Second)
			must.OK(l, l.A.SetPrimary(sctptest.Second.Addr()))
		}, true},
		{"it does so because the primary path fails", func(l *sctptest.Lab) {
			tooBig(l, sctptest.Second)
			must.OK(l, l.A.Reconfigure(l.Now, func(c *assoc.Config) {
				c.PotentiallyFailedMaxRetrans, c.PrimarySwitchoverMaxRetrans = 0, ptrTo(0)
			}))
			must.OK(l, l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{make([]byte, 10)}}))
			l.Wait(2 * time.Second)
			must.That(l, l.A.PathStats(1).Primary, "the first path is the primary one still")
		}, true},
		{"and the other path becomes it again", func(l *sctptest.Lab) {
			tooBig(l, sctptest.Second)
			must.OK(l, l.A.SetPrimary(sctptest.Second.Addr()))
			must.OK(l, l.A.SetPrimary(l.Peer.Addr()))
		}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := sctptest.TwoPaths(t)
			l.Send(l.Tag, l.Data("x")) // an association that does nothing has no window of its own
			sctptest.Drain(l.A)
			row.do(l)
			window := func(payloads ...string) (rwnd uint32) {
				var out []wire.Packet
				for _, s := range payloads {
					out = append(out, l.Send(l.Tag, l.Data(s))...)
				}
				for _, p := range append(out, l.Wait(time.Second)...) {
					if k, err := wire.AsSack(sctptest.ChunkOf(p, wire.ChunkSack)); err == nil {
						rwnd = k.ARwnd()
					}
				}
				return rwnd
			}
			first := window(strings.Repeat("x", payload), strings.Repeat("x", payload))
			r, ok := l.A.Receive()
			must.That(t, ok, "nothing has come")
			l.A.Release(r)
			then := window("x", "x")
			check.That(t, (then > first) == row.grows, "%d octets are free again: the window is %d, after %d",
				payload, then, first)
		})
	}
}

func TestHeartbeatsDoNotHideThatDataIsLost(t *testing.T) {
	// A path on which DATA gets lost and HEARTBEATs do not: the association ends all the same.
	l := sctptest.Passive(t, &assoc.Config{HeartbeatInterval: time.Second, AssocMaxRetrans: 3, PathMaxRetrans: 3,
		PotentiallyFailedMaxRetrans: 3})
	beats := 0
	must.OK(t, l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{make([]byte, 100)}}))
	l.Until(l.Now.Add(time.Hour), func(p sctptest.SentPacket) {
		if b := sctptest.ChunkOf(p.Pkt, wire.ChunkHeartbeat); b != nil {
			beats++
			l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag,
				wire.AppendChunk(nil, wire.ChunkHeartbeatAck, 0, b.Value())))
		}
	})
	l.Collect()
	err, _ := l.Host.DownErr()
	// req 9260-8.1-7
	check.That(t, errors.Is(err, assoc.ErrTimeout) && beats >= 2, "ended by %v with %d HEARTBEATs answered", err, beats)
	e, _ := l.Host.Event(assoc.EventSendFailed)
	check.That(t, e.Kind != 0, "the message is not reported")
}

// Paths that begin at an own address that is not usable are left, and asked; not those of a link or
// of this host, nor where the link chooses.
func TestPathsFromWhereNothingCanBeSentAreLeft(t *testing.T) {
	for _, row := range []struct {
		local, peers, usable string
		left                 bool
	}{
		{"10.0.0.1:0", "10.0.0.%d:0", "10.0.0.2", true}, {"10.0.0.1:0", "10.0.0.%d:0", "10.0.0.1", false}, {"", "10.0.0.%d:0", sctptest.IPv4[0].Addr().String(), false},
		{"[fe80::1%eth0]:0", "[fe80::%d%%eth0]:0", "10.0.0.2", false}, {"127.0.0.1:0", "127.0.0.%d:0", "10.0.0.2", false},
	} {
		l := sctptest.NewLab(t)
		local, _ := netip.ParseAddrPort(row.local)
		second := netip.MustParseAddrPort(fmt.Sprintf(row.peers, 8))
		l.Peer = netip.MustParseAddrPort(fmt.Sprintf(row.peers, 9))
		if local.IsValid() {
			l.Host.Addr = local
		}
		l.Dial(nil, local, l.Peer, second)
		l.Flush()
		l.Send(l.A.LocalTag(), sctptest.InitAckChunk(l.PeerTag, l.TSN, []byte("cookie")))
		l.Send(l.A.LocalTag(), wire.AppendCookieAck(nil))
		l.A.UsableFrom(l.Now, []netip.Addr{netip.MustParseAddr(row.usable)})
		p, q, out := l.A.PathStats(0), l.A.PathStats(1), sctptest.Describe(l.Flush())
		check.That(t, p.Suspected == row.left && !q.Suspected && (out == "HEARTBEAT") == row.left,
			"%+v: %+v, %+v, %q", row, p, q, out)
	}
}
