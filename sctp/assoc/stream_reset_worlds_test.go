package assoc_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/sched"
	"github.com/rddp-go/rddp/sctp/wire"
)

// resetWorld is two associations that send each other messages and reset their streams.
type resetWorld struct {
	*sctptest.World
	rand   *rand.Rand
	assocs [2]*assoc.Assoc
	sent   [2]map[wire.StreamID]int      // messages sent
	got    [2]map[wire.StreamID]int      // messages received of the other's
	ssns   [2]map[wire.StreamID]wire.SSN // the last one received
	asked  [2]int
	done   [2]int // of what was asked
	failed [2]int
	resets int // SSNs that began anew
}

func newResetWorld(t *testing.T, seed int) *resetWorld {
	w := &resetWorld{rand: rand.New(rand.NewPCG(uint64(seed), 1))}
	cfg := func() *assoc.Config {
		c := &assoc.Config{StreamReset: allResets, RTOMin: 50 * time.Millisecond, RTOInitial: 200 * time.Millisecond,
			AssocMaxRetrans: 100, PathMaxRetrans: 100, OutStreams: 6, InStreams: 20, MaxOutStreams: 20}
		if w.rand.IntN(3) == 0 {
			c.NewScheduler = sched.RoundRobin
		}
		c.RFC9260 = w.rand.IntN(3) == 0
		c.Interleaving = seed%2 == 1
		return c
	}
	w.World, w.assocs[0], w.assocs[1] = sctptest.Pair(t, cfg(), cfg())
	for i := range w.assocs {
		w.sent[i], w.got[i], w.ssns[i] = map[wire.StreamID]int{}, map[wire.StreamID]int{}, map[wire.StreamID]wire.SSN{}
		w.Hosts[i].OnEvent = func(_ *assoc.Assoc, e assoc.Event) { w.hear(i, e) }
		w.Hosts[i].Events = nil
	}
	return w
}

// setLoss makes the network lose, repeat and reorder packets.
func (w *resetWorld) setLoss(loss float64) {
	w.Net.Connect(w.Hosts[0].Addr.Addr(), w.Hosts[1].Addr.Addr(), simnet.Params{Delay: sctptest.Latency, Loss: loss,
		Duplicate: loss / 4, Reorder: loss / 2, ReorderDelay: 30 * time.Millisecond, Jitter: 3 * time.Millisecond})
}

// hear takes an event: what was asked for ends well, or both sides have asked at once.
func (w *resetWorld) hear(i int, e assoc.Event) {
	if e.Change == nil {
		return
	}
	var refused *assoc.StreamResetError
	switch {
	case e.Err != nil:
		check.That(w, e.Err == assoc.ErrTSNResetTooSoon || errors.As(e.Err, &refused) && refused.Result == wire.ReconfigAlreadyInProgress, "%v of host %d: %v",
			e.Kind, i, e.Err)
		w.failed[i]++
	case !e.Change.ByPeer:
		w.done[i]++
	}
}

// act has an association send a message, or ask for something.
func (w *resetWorld) act(i int) {
	a := w.assocs[i]
	if w.rand.IntN(40) == 0 && w.ask(a) == nil {
		w.asked[i]++
	}
	for range w.rand.IntN(4) {
		s := wire.StreamID(w.rand.IntN(a.OutStreams()))
		size := 1 + w.rand.IntN(40)
		if w.rand.IntN(20) == 0 {
			size = 2000
		}
		text := fmt.Appendf(nil, "%d:%d:%0*d", s, w.sent[i][s], size, 0)
		if a.Send(w.Now, &assoc.Message{Stream: s, Body: [2][]byte{text}}) == nil {
			w.sent[i][s]++
		}
	}
}

func (w *resetWorld) ask(a *assoc.Assoc) error {
	var list []wire.StreamID
	for s := range min(a.OutStreams(), a.InStreams()) {
		if w.rand.IntN(3) == 0 {
			list = append(list, wire.StreamID(s))
		}
	}
	var r assoc.StreamRequest
	switch w.rand.IntN(7) {
	case 0, 1:
		r = assoc.StreamRequest{ResetOut: true, Streams: list}
	case 2:
		r = assoc.StreamRequest{ResetIn: true, Streams: list}
	case 3:
		r = assoc.StreamRequest{ResetOut: true, ResetIn: true, Streams: list}
	case 4:
		r = assoc.StreamRequest{ResetTSNs: true}
	case 5:
		r = assoc.StreamRequest{AddOut: 1}
	default:
		r = assoc.StreamRequest{AddOut: w.rand.IntN(2), AddIn: 1}
	}
	_, err := a.StartInTurn(w.Now, r)
	return err
}

// read takes what an association has received: each message of a stream in its turn, with SSNs that
// go on or begin with 0.
func (w *resetWorld) read(i int) {
	a := w.assocs[i]
	for r, ok := a.Receive(); ok; r, ok = a.Receive() {
		b := make([]byte, r.Size)
		r.CopyTo(b, 0)
		want := fmt.Sprintf("%d:%d:", r.Stream, w.got[i][r.Stream])
		must.That(w, len(b) > len(want) && string(b[:len(want)]) == want, "host %d got %.12q of stream %d, and not %s", i, b,
			r.Stream, want)
		last, isKnown := w.ssns[i][r.Stream]
		must.That(w, r.SSN == 0 || isKnown && r.SSN == last+1, "host %d: SSN %d of stream %d comes behind %d", i, r.SSN,
			r.Stream, last)
		if isKnown && r.SSN == 0 {
			w.resets++
		}
		w.got[i][r.Stream]++
		w.ssns[i][r.Stream] = r.SSN
		a.Release(r)
	}
}

func (w *resetWorld) isQuiet() bool {
	for i, a := range w.assocs {
		if st := a.Stats(); a.StreamResetUnderWay() || st.Outstanding > 0 || st.Queued > 0 {
			return false
		}
		for s, n := range w.sent[i] {
			if w.got[1-i][s] != n {
				return false
			}
		}
	}
	return true
}

// Both ends send, reset and add streams, over a bad network. No message is lost, repeated or out of
// order, and both ends have the same streams and TSNs in the end.
func TestWorldsThatResetStreams(t *testing.T) {
	worlds := 60
	if testing.Short() {
		worlds = 12
	}
	done, resets := 0, 0
	for seed := range worlds {
		w := newResetWorld(t, seed)
		w.setLoss(float64(w.rand.IntN(4)) / 20)
		for range 400 {
			for i := range w.assocs {
				w.act(i)
			}
			w.RunUntil(w.Now.Add(10*time.Millisecond), func() bool { return false })
			for i := range w.assocs {
				w.read(i)
			}
		}
		w.setLoss(0)
		end := w.Now.Add(10 * time.Minute)
		for !w.isQuiet() {
			must.That(t, w.Now < end, "seed %d: it never ends; sent %v, received %v; %+v", seed, w.sent, w.got,
				[]assoc.Stats{w.assocs[0].Stats(), w.assocs[1].Stats()})
			w.Run(100 * time.Millisecond)
			w.read(0)
			w.read(1)
		}
		for i, a := range w.assocs {
			b := w.assocs[1-i]
			check.Equal(t, "streams of the other side", b.InStreams(), a.OutStreams())
			check.Equal(t, "state", a.State(), assoc.Established)
			m, n := a.Marks(), b.Marks()
			check.Equal(t, "next TSN", m.Next, n.Received+1)
			done += w.done[i]
		}
		resets += w.resets
	}
	t.Logf("%d requests were performed, %d SSNs began anew", done, resets)
	check.That(t, done > 4*worlds && resets > 4*worlds, "%d requests were performed, %d SSNs began anew", done, resets)
}
