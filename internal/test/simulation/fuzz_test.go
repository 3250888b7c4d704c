package simulation

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio/simnet"
)

// FuzzWorld lets octets choose what happens in a whole world: of two stacks, the operations and
// their ends, and what the network does to their packets and when. The oracle is that of the seeds.
//
// fuzz:covers ./ddp ./ddpadapt ./rdma/rdmap ./sctp/assoc ./sctp/endpoint ./sctp/internal/rx
// ./sctp/internal/tx
func FuzzWorld(f *testing.F) {
	f.Add(uint64(1), []byte{}, []byte{})
	f.Add(uint64(2), []byte{200, 3, 90, 14, 255, 0, 17, 60}, []byte{5, 0, 200, 255, 5, 1, 200, 255})
	f.Add(uint64(7), []byte{0, 0, 0, 0, 255, 255, 255, 255}, []byte{1, 4, 255, 128, 30, 6, 100, 60, 2, 3, 255, 255})
	f.Add(uint64(11), []byte("an arbitrary text does as well as any"),
		[]byte{1, 8, 250, 200, 9, 11, 250, 3, 1, 13, 90, 99, 4, 14, 255, 255})
	f.Fuzz(func(t *testing.T, seed uint64, choices, troubles []byte) {
		w := New(seed)
		w.ops, w.sessions = min(w.ops, 30), min(w.sessions, 2) // short stories, but many
		w.rand.Play(choices)
		var good [2]simnet.Params
		good[0], _ = w.net.Link(w.a.connectAddr(), w.b.connectAddr())
		good[1], _ = w.net.Link(w.b.connectAddr(), w.a.connectAddr())
		at := time.Duration(0)
		for n := 0; len(troubles) >= 4 && n < maxTroubles; n++ {
			b := troubles[:4]
			troubles = troubles[4:]
			at += time.Duration(b[0]) * 20 * time.Millisecond
			w.scheduleAfter(at, func() { w.injectFault(b, good) })
			at += time.Duration(b[2]) * 10 * time.Millisecond
		}
		err := w.Run()
		must.That(t, err == nil, "%v, after %v", err, w.Elapsed())
	})
}
