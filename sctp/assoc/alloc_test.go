package assoc_test

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// spring is a Source that never dries up.
type spring struct {
	data  []byte
	acked int
}

func (s *spring) Next(_ rawio.Time, max int, m *assoc.Message) bool {
	m.Unordered, m.HeadLen, m.Body[0] = true, 20, s.data[:min(len(s.data), max-20)]
	return true
}

func (s *spring) Idle() bool { return false }

func (s *spring) Acked(rawio.Time, wire.StreamID, uint64) { s.acked++ }

// sink places every chunk.
type sink struct{ octets int }

func (s *sink) Place(_ rawio.Time, d wire.Data, _ *rawio.Buf) assoc.Verdict {
	s.octets += len(d.Payload())
	return assoc.Consumed
}

// TestSteadyStateAllocatesNothing moves bulk data from one association to another, back to back,
// and its SACKs the other way.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, row := range []struct {
		name   string
		placer assoc.Placer
	}{
		{"placed at arrival", &sink{}},
		{"queued, received and released", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			w, a, b := sctptest.Pair(t, &assoc.Config{MaxBurst: -1, HeartbeatInterval: -1},
				&assoc.Config{RecvBuffer: 1 << 17, HeartbeatInterval: -1})
			src := &spring{data: make([]byte, 1400)}
			a.SetUpper(nil, src)
			b.SetUpper(row.placer, nil)
			pool := rawio.NewPool(2048, 4096)
			batch := assoc.NewTxBatch(32)
			now := w.Now
			var p rawio.Packet
			carry := func(from, to *assoc.Assoc, at *sctptest.Host) {
				for more := true; more; batch.Reset() {
					more = from.PollTransmit(now, batch)
					for i := range batch.Pkts {
						buf := pool.Get()
						n := 0
						for _, v := range batch.Pkts[i].Vec {
							n += copy(buf.B[n:], v)
						}
						p = rawio.Packet{Data: buf.B[:n], Buf: buf, Local: w.Hosts[at.ID].Addr,
							Remote: w.Hosts[1-at.ID].Addr}
						to.HandlePacket(now, &p)
						p.Release()
					}
				}
			}
			round := func() {
				now = now.Add(time.Millisecond)
				carry(a, b, w.Hosts[1])
				for r, ok := b.Receive(); ok; r, ok = b.Receive() {
					b.Release(r)
				}
				now = now.Add(time.Millisecond)
				carry(b, a, w.Hosts[0])
			}
			for range 600 {
				round()
			}
			before := src.acked
			check.Equal(t, "allocations in a round", testing.AllocsPerRun(100, round), 0)
			check.That(t, src.acked-before >= 5000, "only %d messages were acknowledged", src.acked-before)
			check.Equal(t, "buffers held", pool.Outstanding(), 0)
		})
	}
}
