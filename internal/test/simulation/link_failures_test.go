package simulation

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// Hosts joined by two networks that fail and return lose nothing, duplicate nothing, and end
// gracefully.
func TestNetworksThatFailAndReturn(t *testing.T) {
	n := *seedsFlag
	if n == 0 {
		n = 500
		if race.Enabled {
			n = 20
		}
	}
	failures, moved := 0, 0
	first := uint64(1)
	if *seedFlag != 0 {
		first, n = *seedFlag, 1
	}
	for seed := first; seed < first+uint64(n); seed++ {
		w := NewMultihomed(seed)
		err := w.Run()
		check.That(t, err == nil,
			"seed %d: %v\n\treplay: go test ./internal/test/simulation -run TestNetworksThatFail -seed %d -v", seed,
			err, seed)
		failures += w.linkFailures.kept
		if w.err != nil {
			continue
		}
		for _, h := range []*Host{w.a, w.b} {
			used := 0
			for i := range h.conns[0].a.NumPaths() {
				if s := h.conns[0].a.PathStats(i); s.SRTT > 0 && s.State != assoc.PathUnconfirmed {
					used++
				}
			}
			if used > 1 {
				moved++
			}
		}
		if *seedFlag != 0 {
			t.Logf("%v of virtual time, %d failures, network %+v", w.Elapsed(), w.linkFailures.kept, w.net.Stats())
		}
	}
	check.That(t, failures >= n && (moved >= n || *seedFlag != 0),
		"%d failures in %d worlds, %d hosts with two paths: the story proves less than it should", failures, n, moved)
}

// A world with failures is repeated exactly by its seed.
func TestFateIsRepeated(t *testing.T) {
	race.Costly(t)
	for seed := uint64(1); seed <= 5; seed++ {
		a, b := NewMultihomed(seed), NewMultihomed(seed)
		err := a.Run()
		must.That(t, err == nil, "seed %d: %v", seed, err)
		err = b.Run()
		check.That(t, err == nil && a.Hash() == b.Hash(), "seed %d: hash %016x, then %016x, %v", seed, a.Hash(),
			b.Hash(), err)
	}
}
