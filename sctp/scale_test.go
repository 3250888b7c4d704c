package sctp

import (
	"net/netip"
	"runtime"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
	"github.com/rddp-go/rddp/sctp/sched"
	"github.com/rddp-go/rddp/sctp/wire"
)

// liveHeap returns the octets of live objects.
func liveHeap() uint64 {
	runtime.GC()
	runtime.GC() // pools need two
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// idleAssociations returns what an idle association costs in memory, in octets: one end of it, API
// included, with so many associations of cfg to one listener.
func idleAssociations(t testing.TB, count int, cfg Config) float64 {
	p := newPair(t)
	cfg.Backlog = count
	l := must.Get(p.b.Listen(0, &cfg))(t)
	ctx := deadlineCtx(t)
	before := liveHeap()
	conns := make([]*Conn, count)
	for i := range conns {
		conns[i] = must.Get(p.a.Dial(ctx, netip.AddrPortFrom(p.bAddr, l.Port()), &cfg))(t)
	}
	after := liveHeap()
	for _, c := range conns {
		want := cfg.StreamReset != 0
		must.That(t, c.Extensions().Has(StreamReconfiguration) == want, "extensions are agreed on, or not")
	}
	runtime.KeepAlive(conns)
	p.a.Close()
	p.b.Close()
	return (float64(after) - float64(before)) / float64(2*count)
}

// BenchmarkIdleAssociation prints it.
func BenchmarkIdleAssociation(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(idleAssociations(b, 10_000, Config{}), "B/association")
	}
}

// An association that is idle takes no more than 4 KiB, each end of it.
func TestIdleAssociationIsSmall(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector takes memory of its own")
	}
	each := idleAssociations(t, 4000, Config{})
	check.That(t, each <= 4<<10, "an idle association takes %.0f octets", each)
}

// One that has agreed on all extensions takes no more than 6 KiB.
func TestIdleAssociationWithExtensionsIsSmall(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector takes memory of its own")
	}
	each := idleAssociations(t, 2000, Config{PartialReliability: true, Interleaving: true,
		StreamReset: AllowStreamReset | AllowTSNReset | AllowAddStreams, NewScheduler: sched.WeightedFairQueueing})
	t.Logf("%.0f octets", each)
	check.That(t, each <= 6<<10, "an idle association with extensions takes %.0f octets", each)
}

// A million INITs create no association and nothing else that stays (RFC 9260 section 5.1).
func TestInitFloodLeavesNothing(t *testing.T) {
	flood := 1_000_000
	if race.Enabled {
		flood = 100_000
	}
	e := endpoint.New(endpoint.Config{Rand: zeros{}, MTU: func(_, _ netip.Addr) int { return 1480 }})
	must.OK(t, e.Listen(5043, nil))
	out := assoc.NewTxBatch(32)
	send := func(i int) {
		b := wire.AppendHeader(nil, uint16(1+i%65535), 5043, 0)
		b = wire.AppendInit(b, wire.ChunkInit, wire.InitFields{Tag: uint32(i) + 1, ARwnd: 1 << 20, OutStreams: 10,
			InStreams: 10, TSN: wire.TSN(i)})
		wire.PutChecksum(b, wire.ChecksumBytes(b))
		addr := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		p := &rawio.Packet{Data: b, Remote: netip.AddrPortFrom(addr, 0)}
		a, ok := e.Lookup(p)
		must.That(t, ok && a == nil, "INIT %d: lookup gave %v, %v", i, a, ok)
		a, _ = e.HandleUnmatched(0, p)
		must.That(t, a == nil, "INIT %d made an association", i)
		for e.PollTransmit(0, out) {
			out.Reset()
		}
		out.Reset()
	}
	for i := range 1000 { // buffers grow to their size
		send(i)
	}
	before := liveHeap()
	for i := range flood {
		send(i)
	}
	after := liveHeap()
	n := e.Len()
	check.That(t, n == 0, "%d associations after %d INITs", n, flood) // req 9260-5.1-4
	grown := int64(after) - int64(before)
	check.That(t, grown <= 1<<20, "memory grew by %d octets", grown)
}

// zeros is a source of randomness for tests that need none.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(i + 1)
	}
	return len(p), nil
}
