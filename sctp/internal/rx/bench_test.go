package rx

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	r := NewReceiver(Config{PeerTSN: 1, RecvBuffer: 1 << 20, MaxMessage: 1 << 20, PMDCS: 1400, InStreams: 4,
		SackDelay: time.Second})
	pool := rawio.NewPool(2048, 8)
	out := make([]byte, 0, 1500)
	tsn, ssn := 1, 0
	d := dataChunk(0, 0, 0, string(make([]byte, 1400)))
	put := func(t, s int, flags uint8) {
		wire.AppendDataHeader(d[:0], wire.DataFields{Flags: flags, TSN: wire.TSN(t), SSN: wire.SSN(s),
			PayloadLen: 1400})
		buf := pool.Get()
		if r.Admit(d) == New && r.Queue(d, buf) != nil {
			panic("Queue")
		}
		buf.Release()
		if r.PacketDone(0) != nil {
			panic("PacketDone")
		}
		out = r.AppendSack(out[:0], 1400)
	}
	round := func() {
		put(tsn, ssn, be)
		put(tsn+1, ssn+1, wire.FlagB)
		put(tsn+2, ssn+1, wire.FlagE)
		put(tsn+4, ssn+3, be) // reordered
		put(tsn+3, ssn+2, be)
		r.reassembly.store.dropPiece(r.reassembly.store.keepData(d[:100], nil)) // a copy
		tsn, ssn = tsn+5, ssn+4
		for m, ok := r.Receive(); ok; m, ok = r.Receive() {
			r.Release(m)
		}
	}
	round()
	check.Equal(t, "allocations a round", testing.AllocsPerRun(200, round), 0)
}

func BenchmarkTracker(b *testing.B) {
	b.Run("in order", func(b *testing.B) {
		k := NewTracker(1)
		for b.Loop() {
			t := k.Cum() + 1
			if k.Check(t) == Fresh {
				k.Add(t)
			}
		}
	})
	b.Run("swapped pairs", func(b *testing.B) {
		k := NewTracker(1)
		for b.Loop() {
			t := k.Cum()
			k.Add(t + 2)
			k.Add(t + 1)
		}
	})
	b.Run("sack with 300 gaps", func(b *testing.B) {
		k := NewTracker(1)
		for i := range wire.TSN(300) {
			k.Add(2 + 3*i)
		}
		out := make([]byte, 0, 1500)
		for b.Loop() {
			out = k.AppendSack(out[:0], 0, 1400)
		}
	})
}

func BenchmarkReceive(b *testing.B) {
	r := NewReceiver(Config{PeerTSN: 1, RecvBuffer: 1 << 20, MaxMessage: 1 << 20, PMDCS: 1400, InStreams: 4})
	d := dataChunk(0, 0, 0, string(make([]byte, 1400)))
	b.SetBytes(1400)
	for i := 0; b.Loop(); i++ {
		wire.AppendDataHeader(d[:0], wire.DataFields{Flags: be, TSN: wire.TSN(1 + i), SSN: wire.SSN(i),
			PayloadLen: 1400})
		if r.Admit(d) != New || r.Queue(d, nil) != nil || r.PacketDone(0) != nil {
			b.Fatal("refused")
		}
		m, _ := r.Receive()
		r.Release(m)
	}
}
