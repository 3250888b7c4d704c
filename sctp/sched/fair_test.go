package sched

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
)

// While all are silent few streams are kept, and all weights.
func TestSilentStreamsAreForgotten(t *testing.T) {
	f := newFair(false)
	use := func(n uint16) {
		for id := range n {
			f.Activate(id)
		}
		for id := range n {
			f.Deactivate(id)
		}
	}
	f.SetValue(7, 2)
	f.SetValue(8, 1)
	use(keptStreams)
	check.Equal(t, "streams, of few", len(f.streams), keptStreams)
	use(keptStreams + 1)
	check.Equal(t, "streams, of many", len(f.streams), 0)
	check.That(t, len(f.weights) == 1 && f.weights[7] == 2, "weights %v", f.weights)
	f.SetValue(7, 0)
	check.Equal(t, "weights that are taken back", len(f.weights), 0)
}
