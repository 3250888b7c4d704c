package relay

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
)

func TestPacketsWaitAndAreDroppedAsTheWireIsBusy(t *testing.T) {
	const ms = int64(time.Millisecond)
	// 1500 octets take 1 ms
	w := NewWay(Params{Delay: 10 * time.Millisecond, Rate: 1_500_000, Queue: 3000, MarkQueue: 1000}, 1)
	for i, want := range []Fate{
		{Copies: 1, At: [2]int64{11 * ms}},
		{Copies: 1, At: [2]int64{12 * ms}, Waited: time.Millisecond, Mark: true},
		{Full: true, Waited: 2 * time.Millisecond},
		{Copies: 1, At: [2]int64{16 * ms}}, // after a pause
	} {
		if got := w.Pass(int64(i/3)*5*ms, 1500, true); got != want {
			t.Errorf("packet %d: %+v, want %+v", i, got, want)
		}
	}
}

// Whoever sends, and whenever, loses the same numbers: as many as asked, and in runs of the length
// asked.
func TestLossFollowsFromTheNumberAlone(t *testing.T) {
	for _, p := range []Params{{Loss: 0.03}, {Loss: 0.03, Burst: 4},
		{Loss: 0.03, Jitter: time.Second, Reorder: 0.5, Duplicate: 0.5}} {
		a, b := NewWay(p, 7), NewWay(Params{Loss: p.Loss, Burst: p.Burst}, 7)
		lost, runs, before := 0.0, 0.0, false
		for i := range 200_000 {
			f := a.Pass(int64(i), 100, false)
			if g := b.Pass(int64(i*i), 1500, false); f.Lost != g.Lost {
				t.Fatalf("%+v: packet %d is lost for one sender only", p, i)
			}
			if f.Lost {
				lost++
			} else if before {
				runs++
			}
			before = f.Lost
		}
		share, length, want := lost/200_000, lost/runs, max(p.Burst, 1/(1-p.Loss))
		check.That(t, share >= 0.85*p.Loss && share <= 1.15*p.Loss && length >= 0.9*want && length <= 1.1*want,
			"%+v: %.4f lost, in runs of %.2f, want %.2f", p, share, length, want)
	}
}
