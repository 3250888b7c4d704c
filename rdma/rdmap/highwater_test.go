package rdmap_test

import (
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/rdmaptest"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

func TestPeerThatCompletesNoMessageIsNoticed(t *testing.T) {
	// req 5042-6.4.3.1-3: a peer that begins messages and completes none is noticed, per stream,
	// with buffers of its own and shared ones.
	begin := func(msn uint32) []byte {
		return rdmaptest.Untagged(0, msn, [5]byte{0x43}, 0, false, []byte("first half"))
	}
	finish := func(msn uint32) []byte {
		return rdmaptest.Untagged(0, msn, [5]byte{0x43}, 0, true, []byte("all of it"))
	}
	for _, name := range []string{"own receive queue", "shared receive queue"} {
		t.Run(name, func(t *testing.T) {
			var e *rdmaptest.End
			if name == "shared receive queue" {
				p, srq, r, _ := rdmaptest.SharedPair(t, 8, 8)
				for i := range uint64(8) {
					must.OK(t, srq.Post(&rdmap.RecvWR{ID: i, SGL: []rdmap.SGE{rdmaptest.SGE(r, 0, 100)}}))
				}
				e = p.B
			} else {
				e = rdmaptest.NewPair(t, nil).B
				r, _ := e.Memory(100, ddp.LocalWrite)
				for i := range uint64(8) {
					e.Recv(i, r, 0, 100)
				}
			}
			steps := func(segs ...[]byte) {
				for _, s := range segs {
					e.Inject(s)
				}
			}
			want := func(after string, inProcess, told int) {
				t.Helper()
				check.That(t, e.QP.InProcess() == inProcess && e.High == told,
					"%s: %d in process, told %d times; want %d and %d", after, e.QP.InProcess(), e.High, inProcess,
					told)
			}
			steps(begin(1), begin(2), begin(3))
			want("nobody asked", 3, 0)
			e.QP.SetHighWater(3)
			steps(finish(1))
			want("as many as allowed, and one complete", 2, 0)
			steps(begin(4), begin(5), begin(5))
			want("one too many", 4, 1)
			steps(begin(6))
			want("told once", 5, 1)
			e.QP.SetHighWater(4)
			want("too many when asked", 5, 2)
			steps(finish(2), finish(3), finish(4), finish(5), finish(6))
			e.QP.SetHighWater(0)
			want("all complete", 0, 2)
			steps(begin(7))
			want("any at all", 1, 3)
			e.QP.SetHighWater(-1)
			steps(begin(8))
			want("nobody asks any more", 2, 3)
		})
	}
}
