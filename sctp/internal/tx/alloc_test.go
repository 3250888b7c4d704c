package tx

import (
	"encoding/binary"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	l := newLab(t, 1)
	src := &countedSource{n: 1 << 30, size: full, body: make([]byte, full), acked: make([]uint64, 0, 1<<20)}
	l.s.SetUpper(src, nil)
	k := makeSack(0, 1<<20, wire.GapBlock{Start: 2, End: 2})
	small := &Message{Body: [2][]byte{make([]byte, 100)}}
	feed := func(cum wire.TSN, k wire.Sack) {
		binary.BigEndian.PutUint32(k[4:], uint32(cum))
		if _, err := l.s.HandleSack(l.now, k); err != nil {
			t.Fatal(err)
		}
	}
	whole := makeSack(0, 1<<20)
	round := func() {
		must.OK(t, l.s.Enqueue(small))
		l.transmit()
		feed(l.s.CumTSN()+1, k) // one more, and one beyond a gap
		feed(l.s.CumTSN()+2, whole)
		l.now += ms
	}
	for range 200 {
		round()
	}
	check.Equal(t, "allocations a round of sending and acknowledging", testing.AllocsPerRun(500, round), 0)
}
