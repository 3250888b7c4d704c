package assoc_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/sched"
	"github.com/rddp-go/rddp/sctp/wire"
)

// schedulers are all that there are; nil is the order in which messages were written.
var schedulers = []struct {
	name string
	make func() sched.Scheduler
}{{"as written", nil}, {"round robin", sched.RoundRobin}, {"round robin per packet", sched.RoundRobinPerPacket},
	{"priority", sched.Priority}, {"fair capacity", sched.FairCapacity}, {"weighted", sched.WeightedFairQueueing}}

// A message of 1 GiB does not delay a short one of another stream by more than a round trip, if
// they are interleaved and a scheduler has the streams take turns. Else the short one waits for all
// of it.
func TestLongMessageDelaysNoOther(t *testing.T) {
	// req 8260-2.2.2-3
	const ms = time.Millisecond
	const delay, rate = 50 * ms, 1_250_000
	half := make([]byte, 1<<29)
	for _, s := range schedulers {
		for _, interleaves := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, I-DATA %v", s.name, interleaves), func(t *testing.T) {
				r := sctptest.NewMTUPair(t, sctptest.IPv4, 1500, simnet.Params{})
				for i, h := range r.Hosts {
					h.Reads = false
					r.Path(i, func(p *simnet.Params) { p.Delay, p.Rate, p.Queue = delay, rate, rate/10 })
				}
				a, b := r.Join(&assoc.Config{Interleaving: interleaves, NewScheduler: s.make, SendBuffer: 1<<30 + 1<<20,
					NewController: cc.NewBBR, NoDelay: true, DisablePMTUD: true},
					&assoc.Config{Interleaving: interleaves, PartialDelivery: 10_000, DisablePMTUD: true})
				must.OK(t, a.SetStreamValue(1, 1)) // less important
				var worst time.Duration
				arrived := 0
				r.Hosts[1].OnPoll = func(*assoc.Assoc) {
					for m, ok := b.Receive(); ok; m, ok = b.Receive() {
						if m.Stream == 2 {
							var at [8]byte
							m.CopyTo(at[:], 0)
							worst = max(worst, time.Duration(int64(r.Now)-int64(binary.BigEndian.Uint64(at[:]))))
							arrived++
						}
						b.Release(m)
					}
				}
				must.OK(t, a.Send(r.Now, &assoc.Message{Stream: 1, Body: [2][]byte{half, half}}))
				r.Run(3 * time.Second)
				for range 300 {
					short := binary.BigEndian.AppendUint64(make([]byte, 0, 100), uint64(r.Now))[:100]
					must.OK(t, a.Send(r.Now, &assoc.Message{Stream: 2, Body: [2][]byte{short}}))
					r.Run(10 * ms)
				}
				r.Run(500 * ms)
				if !interleaves || s.make == nil {
					check.Equal(t, "short messages that arrive before the long one", arrived, 0)
					return
				}
				check.Equal(t, "short messages that arrive", arrived, 300)
				check.That(t, worst <= delay+2*delay, "one of them takes %v, over a road of %v", worst, delay)
			})
		}
	}
}

// Messages of several streams, of any length, arrive once each, whole, and those that are ordered
// in the order of their streams: under each scheduler, with I-DATA and without it, over a road that
// loses and reorders.
func TestSchedulersEndToEnd(t *testing.T) {
	for i, s := range schedulers {
		for _, interleaves := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, I-DATA %v", s.name, interleaves), func(t *testing.T) {
				for seed := range uint64(4) {
					playStreams(t, rand.New(rand.NewPCG(seed, uint64(i))), s.make, interleaves)
				}
			})
		}
	}
}

// sentMessage is a message of playStreams: its octets say which of its stream it is.
type sentMessage struct {
	octets    []byte
	unordered bool
	arrived   bool
}

func playStreams(t *testing.T, rnd *rand.Rand, scheduler func() sched.Scheduler, interleaves bool) {
	const streams = 5
	r := sctptest.NewMTUPair(t, sctptest.IPv4, 1500, simnet.Params{})
	cfg := &assoc.Config{Interleaving: interleaves, NewScheduler: scheduler, DisablePMTUD: true, RTOMin: 200 * time.Millisecond,
		PartialDelivery: 3000 * rnd.IntN(2), RecvBuffer: 30_000}
	ends := [2]*assoc.Assoc{}
	ends[0], ends[1] = r.Join(cfg, cfg)
	var sent [2][streams][]*sentMessage // by the sender
	var next [2][streams]int            // ordered messages that have arrived
	var pieces [2][streams][]byte       // of the message of a stream
	reads := [2]bool{true, true}
	for i, h := range r.Hosts {
		r.Path(i, func(p *simnet.Params) { p.Loss, p.Reorder, p.ReorderDelay = 0.02, 0.05, 15*time.Millisecond })
		h.Reads = false
		h.OnPoll = func(*assoc.Assoc) {
			for reads[i] {
				m, ok := ends[i].Receive()
				if !ok {
					return
				}
				b := make([]byte, m.Size)
				m.CopyTo(b, 0)
				id := m.Stream
				if m.Offset == 0 && len(pieces[i][id]) > 0 {
					t.Fatalf("a message of stream %d begins in the midst of another", id)
				}
				pieces[i][id] = append(pieces[i][id], b...)
				more, unordered := m.More, m.Unordered
				ends[i].Release(m)
				if more {
					continue
				}
				got := pieces[i][id]
				pieces[i][id] = nil
				n := int(binary.BigEndian.Uint32(got))
				list := sent[1-i][id]
				must.That(t, n < len(list) && bytes.Equal(got, list[n].octets) && unordered == list[n].unordered && !list[n].arrived,
					"stream %d: message %d of %d octets is not what was sent, or comes again", id, n, len(got))
				list[n].arrived = true
				if !unordered {
					for next[i][id] < len(list) && list[next[i][id]].unordered {
						next[i][id]++
					}
					must.Equal(t, "the next of the stream", n, next[i][id])
					next[i][id]++
				}
			}
		}
	}
	for range 60 {
		from, id := rnd.IntN(2), rnd.IntN(streams)
		size := 4 + rnd.IntN([]int{10, 1000, 5000, 40_000}[rnd.IntN(4)])
		b := binary.BigEndian.AppendUint32(make([]byte, 0, size), uint32(len(sent[from][id])))[:size]
		for k := 4; k < size; k++ {
			b[k] = byte(rnd.Uint32())
		}
		m := &sentMessage{octets: b, unordered: rnd.IntN(3) == 0}
		err := ends[from].Send(r.Now, &assoc.Message{Stream: wire.StreamID(id), Unordered: m.unordered, Body: [2][]byte{b}})
		must.OK(t, err)
		sent[from][id] = append(sent[from][id], m)
		must.OK(t, ends[from].SetStreamValue(wire.StreamID(id), uint16(rnd.IntN(4))))
		reads[rnd.IntN(2)] = rnd.IntN(3) > 0
		r.Run(time.Duration(rnd.IntN(30)) * time.Millisecond)
	}
	reads = [2]bool{true, true}
	r.Run(time.Minute)
	for from := range sent {
		for id := range sent[from] {
			for n, m := range sent[from][id] {
				must.That(t, m.arrived, "stream %d: message %d of %d octets has not arrived", id, n, len(m.octets))
			}
		}
		must.OK(t, ends[from].Audit(0))
		check.Equal(t, "octets held", ends[from].Stats().Buffered, 0)
	}
}
