package simulation

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// Whole worlds over TCP: the same operations, ends and violations, against the same oracle. A
// failure prints its seed; -seed N replays it exactly.
func TestSeedsOverTCP(t *testing.T) {
	if *seedFlag != 0 {
		w := NewOverTCP(*seedFlag)
		err := w.Run()
		check.That(t, err == nil, "seed %d: %v", *seedFlag, err)
		t.Logf("seed %d: %v of virtual time, %+v, hash %016x", *seedFlag, w.Elapsed(), w.coverage, w.Hash())
		return
	}
	n := *seedsFlag
	if n == 0 {
		switch {
		case race.Enabled:
			n = 40
		case testing.Short():
			n = 200
		default:
			n = 1000
		}
	}
	var seen Coverage
	for seed, failed := uint64(1), 0; seed <= uint64(n) && failed < 5; seed++ {
		w := NewOverTCP(seed)
		if err := w.Run(); err != nil {
			failed++
			t.Errorf("seed %d: %v\n\treplay: go test ./internal/test/simulation -run TestSeedsOverTCP -seed %d -v",
				seed, err, seed)
		}
		seen.Add(&w.coverage)
	}
	t.Logf("%d worlds: %+v", n, seen)
	for _, c := range []struct {
		what    string
		n, each int // of so many worlds, at least
	}{
		{"sessions", seen.Sessions, 1}, {"rejected sessions", seen.Rejected, 10}, {"graceful ends", seen.Gracious, 2},
		{"violations", seen.Violated, 5}, {"revoked windows", seen.Revoked, 5}, {"closed windows", seen.Windows, 1},
		{"requests cut off", seen.CutOff, 1}, {"lost connections", seen.Losses, 20},
		{"receives used up", seen.Droughts, 10},
		{"FetchAdd", seen.Adds, 1}, {"Swap and CmpSwap", seen.Ops[rdmap.WRAtomic] - seen.Adds, 1},
	} {
		check.That(t, c.n*c.each >= n || n < 100, "%d %s in %d worlds: the story proves less than it should", c.n,
			c.what, n)
	}
}

// Two runs of a seed are the same run, completion for completion.
func TestSeedsOverTCPReplayExactly(t *testing.T) {
	race.Costly(t)
	for seed := uint64(1); seed <= 10; seed++ {
		a, b := NewOverTCP(seed), NewOverTCP(seed)
		must.OK(t, a.Run())
		must.OK(t, b.Run())
		check.That(t, a.Hash() == b.Hash(), "seed %d: trace hash %016x, then %016x", seed, a.Hash(), b.Hash())
	}
}
