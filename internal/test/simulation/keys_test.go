package simulation

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
)

// Whole worlds whose associations are encrypted, and whose keys change meanwhile: the same
// operations, ends and losses, against the same oracle. A failure prints its seed; -seed N replays
// it exactly.
func TestSeedsEncrypted(t *testing.T) {
	first, n := uint64(1), *seedsFlag
	switch {
	case *seedFlag != 0:
		first, n = *seedFlag, 1
	case n == 0 && race.Enabled:
		n = 20
	case n == 0 && testing.Short():
		n = 60
	case n == 0:
		n = 300
	}
	var seen Coverage
	for seed, failed := first, 0; seed < first+uint64(n) && failed < 5; seed++ {
		w := NewEncrypted(seed)
		if err := w.Run(); err != nil {
			failed++
			t.Errorf("seed %d: %v\n\treplay: go test ./internal/test/simulation -run TestSeedsEncrypted -seed %d -v",
				seed, err, seed)
		}
		seen.Add(&w.coverage)
	}
	t.Logf("%d worlds: %+v", n, seen)
	if n < 20 {
		return
	}
	check.That(t, seen.Sessions >= n && seen.Rekeys >= n/4 && seen.Restarts >= n/10 && seen.Done > 10*n,
		"%d worlds prove less than they should: %+v", n, seen)
}

// Two runs of a seed are the same run, packet for packet.
func TestSeedsEncryptedReplayExactly(t *testing.T) {
	race.Costly(t)
	for seed := uint64(1); seed <= 5; seed++ {
		a, b := NewEncrypted(seed), NewEncrypted(seed)
		must.OK(t, a.Run())
		must.OK(t, b.Run())
		check.That(t, a.Hash() == b.Hash(), "seed %d: trace hash %016x, then %016x", seed, a.Hash(), b.Hash())
	}
}
