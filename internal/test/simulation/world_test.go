package simulation

import (
	"flag"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "replay this one seed")
	seedsFlag = flag.Int("seeds", 0, "run this many seeds (0: 2000, under the race detector 100, with -short 300)")
)

// TestSeeds runs whole worlds. A failure prints its seed; -seed N replays it exactly.
func TestSeeds(t *testing.T) {
	if *seedFlag != 0 {
		w := New(*seedFlag)
		err := w.Run()
		check.That(t, err == nil, "seed %d: %v", *seedFlag, err)
		t.Logf("seed %d: %v of virtual time, network %+v, %+v, hash %016x", *seedFlag, w.Elapsed(), w.net.Stats(),
			w.coverage, w.Hash())
		return
	}
	n := *seedsFlag
	if n == 0 {
		switch {
		case race.Enabled:
			n = 40
		case testing.Short():
			n = 300
		default:
			n = 2000
		}
	}
	var next, failed atomic.Int64
	var wg sync.WaitGroup
	var mu sync.Mutex
	var seen Coverage
	for range runtime.GOMAXPROCS(0) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				seed := next.Add(1)
				if seed > int64(n) || failed.Load() >= 10 {
					return
				}
				w := New(uint64(seed))
				err := w.Run()
				mu.Lock()
				seen.Add(&w.coverage)
				mu.Unlock()
				if err != nil {
					failed.Add(1)
					t.Errorf("seed %d: %v\n\treplay: go test ./internal/test/simulation -run TestSeeds -seed %d -v",
						seed, err, seed)
				}
			}
		}()
	}
	wg.Wait()
	t.Logf("%d worlds: %+v", n, seen)
	type tale struct {
		what string
		n    int
		each int // of so many worlds, at least
	}
	tales := []tale{
		{"sessions", seen.Sessions, 1}, {"rejected sessions", seen.Rejected, 10}, {"graceful ends", seen.Gracious, 2},
		{"violations", seen.Violated, 5}, {"revoked windows", seen.Revoked, 5}, {"closed windows", seen.Windows, 1},
		{"requests cut off", seen.CutOff, 1}, {"lost associations", seen.Losses, 20}, {"changes of the MTU", seen.MTUs, 10},
		{"receives used up", seen.Droughts, 10},
		{"FetchAdd", seen.Adds, 1}, {"Swap and CmpSwap", seen.Ops[rdmap.WRAtomic] - seen.Adds, 1},
	}
	for op, n := range seen.Ops {
		tales = append(tales, tale{fmt.Sprintf("requests of opcode %d", op), n, 1})
	}
	for _, c := range tales {
		check.That(t, c.n*c.each >= n || n < 100, "%d %s in %d worlds: the story proves less than it should", c.n,
			c.what, n)
	}
}

// Two runs of a seed are the same run, octet for octet.
func TestSeedsReplayExactly(t *testing.T) {
	race.Costly(t)
	for seed := uint64(1); seed <= 10; seed++ {
		a, b := New(seed), New(seed)
		err := a.Run()
		must.That(t, err == nil, "seed %d: %v", seed, err)
		err = b.Run()
		must.That(t, err == nil, "seed %d: %v", seed, err)
		check.That(t, a.Hash() == b.Hash(), "seed %d: trace hash %016x, then %016x", seed, a.Hash(), b.Hash())
	}
	check.Equal(t, "fresh worlds differ before anything has happened: the hash is not one of events", New(1).Hash(),
		New(2).Hash())
}
