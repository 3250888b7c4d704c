package ddpadapt

import (
	"encoding/binary"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// sink is a ULP that counts.
type sink struct{ delivered, completed int }

func (*sink) AdmitTagged(uint8, *ddp.Region, ddp.STag, uint64, int) (ddp.Access, *ddp.Error) {
	return ddp.RemoteWrite, nil
}
func (*sink) Buffer(_, _ uint32, _ [5]byte) (*ddp.RecvBuffer, uint8)                { return nil, ddp.CodeNoBuffer }
func (s *sink) DeliverTagged(uint8, ddp.STag, uint64, uint64)                       { s.delivered++ }
func (s *sink) DeliverUntagged(_, _ uint32, _ [5]byte, _ uint32, _ *ddp.RecvBuffer) { s.delivered++ }
func (s *sink) Drained()                                                            {}
func (s *sink) Completed(uint64)                                                    { s.completed++ }
func (s *sink) Failed(uint64, error)                                                {}
func (s *sink) Fatal(*ddp.Error)                                                    {}
func (s *sink) PeerClosed()                                                         {}

// bulk is a session on which a writes to memory of b, and chunks under way between them.
type bulk struct {
	a, b     *end
	ua       *ddp.Stream
	from, to *sink
	stag     ddp.STag
	gather   ddp.Gather
	chunk    [64][2048]byte
	token    [64]uint64
}

func newBulk(t testing.TB, size int) *bulk {
	k := &bulk{from: new(sink), to: new(sink)}
	k.a, k.b = newPair(t)
	mem := make([]byte, size)
	region := must.Get(k.b.table.Register(ddp.Spec{PD: 1, Mem: ddp.Bytes(mem), Access: ddp.RemoteWrite}))(t)
	k.stag = region.STag()
	k.gather = ddp.Gather{{Mem: ddp.Bytes(make([]byte, size)), Len: uint64(size)}}
	k.ua = ddp.NewStream(ddp.StreamConfig{ID: 1, PD: 1, Table: k.a.table, ULP: k.from, Queues: 1})
	ub := ddp.NewStream(ddp.StreamConfig{ID: 1, PD: 1, Table: k.b.table, ULP: k.to, Queues: 1})
	must.Do(k.a.Open(0, 0, k.ua, nil))(t)
	exchangeAll(k.a, k.b)
	must.OK(t, k.b.expectEvents(EventInitiate)[0].Session.Accept(0, ub, nil))
	exchangeAll(k.a, k.b)
	k.a.expectEvents(EventAccepted)
	return k
}

// writeMessage sends one message and returns how many chunks it took. last first: the chunks arrive
// in reverse order.
func (k *bulk) writeMessage(t testing.TB, reverse bool) int {
	must.OK(t, k.ua.SendTagged(k.stag, 0, 0, k.gather, 1))
	n := 0
	var msg assoc.Message
	for k.a.Next(0, 1200, &msg) {
		b := wire.AppendDataHeader(k.chunk[n][:0], wire.DataFields{Flags: wire.FlagB | wire.FlagE | wire.FlagU,
			Stream: msg.Stream, PPID: msg.PPID, PayloadLen: msg.Len()})
		b = append(append(append(b, msg.Head[:msg.HeadLen]...), msg.Body[0]...), msg.Body[1]...)
		binary.BigEndian.PutUint16(k.chunk[n][2:], uint16(len(b)))
		k.token[n] = msg.Token
		n++
	}
	for i := range n {
		if reverse {
			i = n - 1 - i
		}
		d := wire.Data(k.chunk[i][:binary.BigEndian.Uint16(k.chunk[i][2:])])
		must.Equal(t, "verdict", k.b.Place(0, d, nil), assoc.Consumed)
	}
	for i := range n {
		k.a.Acked(0, 0, k.token[i])
	}
	return n
}

func TestNoAllocationPerSegment(t *testing.T) {
	for _, c := range []struct {
		name    string
		reverse bool
	}{{"in order", false}, {"in reverse order", true}} {
		t.Run(c.name, func(t *testing.T) {
			k := newBulk(t, 32<<10)
			k.writeMessage(t, c.reverse)
			must.Equal(t, "allocations for a message of 28 segments",
				testing.AllocsPerRun(2000, func() { k.writeMessage(t, c.reverse) }), 0)
			must.That(t, k.to.delivered == k.from.completed && k.to.delivered >= 2000, "%d delivered, %d completed",
				k.to.delivered, k.from.completed)
		})
	}
}

func BenchmarkSegment(b *testing.B) {
	for _, c := range []struct {
		name    string
		reverse bool
	}{{"inorder", false}, {"reverse", true}} {
		b.Run(c.name, func(b *testing.B) {
			k := newBulk(b, 32<<10)
			b.SetBytes(32 << 10)
			b.ReportAllocs()
			segments := 0
			for b.Loop() {
				segments += k.writeMessage(b, c.reverse)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(segments), "ns/segment")
		})
	}
}
