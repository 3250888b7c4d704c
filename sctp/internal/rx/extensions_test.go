package rx_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/fuzzinput"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/sctp/internal/rx/model"
)

// FuzzExtensions gives the receiving half chunks, and FORWARD TSNs, of a peer that gives messages
// up, in any order, and reads. It does what a plain receiver does: nothing given up is delivered
// late, nothing kept is lost, and each stream is in order.
func FuzzExtensions(f *testing.F) {
	race.Alone(f)
	for seed := range 600 {
		f.Add(fuzzinput.Random(seed, 800))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 0 && len(in) <= 1000 {
			model.PlayExtensions(t, in, nil)
		}
	})
}
