package simulation

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/rawio/simnet"
)

// From the work request to the octets in the peer's memory and the completion, a DDP segment costs
// no allocation on either side.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	b := newBulk(t, 200_000, simnet.Params{}, nil)
	for range 50 {
		b.writeOnce() // rings and pools grow to their size
	}
	n := testing.AllocsPerRun(100, b.writeOnce)
	check.That(t, n == 0, "%v allocations for a Write of %d octets and its completion", n, b.src.n)
	if b.err != nil {
		t.Fatal(b.err)
	}
	check.Slice(t, "what arrived", b.src.actualBytes(), b.dst.actualBytes())
}

// BenchmarkWrite is the whole protocol, both sides and the simulated wire, on one processor.
func BenchmarkWrite(b *testing.B) {
	x := newBulk(b, 200_000, simnet.Params{}, nil)
	b.SetBytes(int64(x.src.n))
	b.ReportAllocs()
	for b.Loop() {
		x.writeOnce()
	}
	if x.err != nil {
		b.Fatal(x.err)
	}
}
