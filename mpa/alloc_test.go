package mpa

import (
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/must"
)

// bulk is a connection by which one end writes to memory of the other, over and over.
type bulk struct {
	a, b   *end
	gather ddp.Gather
	buf    []byte // of the receiver
	fill   int
}

func newBulk(t testing.TB, cfg Config, size int) *bulk {
	k := &bulk{buf: make([]byte, 1<<20)}
	k.a, k.b = pair(t, cfg, cfg)
	k.gather = ddp.Gather{{Mem: ddp.Bytes(make([]byte, size)), Len: uint64(size)}}
	k.a.ds, k.b.ds = nil, nil
	k.a.Conn.ds = ddp.NewStream(ddp.StreamConfig{ID: 1, PD: 1, Table: k.b.Conn.ds.Table(), ULP: sink{}, Queues: 1})
	k.a.Conn.ds.Attach(k.a.Conn)
	table := k.b.Conn.ds.Table()
	k.b.Conn.ds = ddp.NewStream(ddp.StreamConfig{ID: 1, PD: 1, Table: table, ULP: sink{}, Queues: 1})
	k.b.Conn.ds.Attach(k.b.Conn)
	return k
}

// sink is a ULP that forgets.
type sink struct{}

func (sink) AdmitTagged(uint8, *ddp.Region, ddp.STag, uint64, int) (ddp.Access, *ddp.Error) {
	return ddp.RemoteWrite, nil
}
func (sink) Buffer(_, _ uint32, _ [5]byte) (*ddp.RecvBuffer, uint8)              { return nil, ddp.CodeNoBuffer }
func (sink) DeliverTagged(uint8, ddp.STag, uint64, uint64)                       {}
func (sink) DeliverUntagged(_, _ uint32, _ [5]byte, _ uint32, _ *ddp.RecvBuffer) {}
func (sink) Drained()                                                            {}
func (sink) Completed(uint64)                                                    {}
func (sink) Failed(uint64, error)                                                {}
func (sink) Fatal(*ddp.Error)                                                    {}
func (sink) PeerClosed()                                                         {}

// writeOnce lets one message go all the way.
func (k *bulk) writeOnce(t testing.TB) {
	must.OK(t, k.a.Conn.ds.SendTagged(k.b.stag, 0, 0, k.gather, 1))
	for act, pieces := k.a.Next(0, MaxBatch); act == ActWrite; act, pieces = k.a.Next(0, MaxBatch) {
		n := 0
		for _, p := range pieces {
			k.fill += copy(k.buf[k.fill:], p)
			n += len(p)
		}
		k.a.Written(0, n)
		k.fill = copy(k.buf, k.buf[k.b.Receive(0, k.buf[:k.fill]):k.fill])
	}
}

func TestNothingIsAllocatedForAnFPDU(t *testing.T) {
	for _, row := range []struct {
		name string
		cfg  Config
		size int
	}{
		{"a little", Config{}, 8},
		{"a packet", Config{}, 1400},
		{"many packets", Config{}, 100_000},
		{"long FPDUs", Config{EMSS: 65483}, 130_000},
		{"without CRC", Config{NoCRC: true}, 100_000},
		{"with Markers", Config{Markers: true}, 100_000},
	} {
		k := newBulk(t, row.cfg, row.size)
		for range 10 {
			k.writeOnce(t)
		}
		n := testing.AllocsPerRun(100, func() { k.writeOnce(t) })
		must.That(t, n == 0, "%s: %v allocations a message", row.name, n)
	}
}

func BenchmarkWrite(b *testing.B) {
	for _, row := range []struct {
		name string
		cfg  Config
	}{
		{"1448", Config{EMSS: 1448}}, {"1448/nocrc", Config{EMSS: 1448, NoCRC: true}},
		{"64K", Config{EMSS: 65483}}, {"64K/nocrc", Config{EMSS: 65483, NoCRC: true}},
	} {
		b.Run(row.name, func(b *testing.B) {
			const size = 128 << 10
			k := newBulk(b, row.cfg, size)
			b.SetBytes(size)
			for b.Loop() {
				k.writeOnce(b)
			}
		})
	}
}
