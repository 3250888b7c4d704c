package simulated

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
)

// A path that is cut costs a pause that nobody notices, the less if it is cut here, and one whose
// delay rises for a while costs next to nothing. make wan has the long form.
func TestPathsFailOverBeforeAnybodyNotices(t *testing.T) {
	race.Alone(t)
	bulk, trickle := Twins()
	for _, w := range []*TwoPaths{&bulk, &trickle} {
		list := must.Get(w.Cuts(3, 4, false))(t)
		check.That(t, list[len(list)/2] <= 150*time.Millisecond && list[len(list)-1] <= 250*time.Millisecond,
			"%v: silences of %v", w, list)
		list = must.Get(w.Cuts(3, 8, true))(t)
		check.That(t, list[len(list)-1] <= 50*time.Millisecond, "%v, own interface down: silences of %v", w, list)
		list = must.Get(w.Jumbo().Falls(3, 8))(t)
		check.That(t, list[len(list)-1] <= 3*w.RTT, "%v, the MTU falls: silences of %v", w, list)
		s := must.Get(w.Shaky().Spikes(4, 3*time.Minute))(t)
		check.That(t, s.Spikes > 15 && s.Moves > 2 && s.Most == 1 && s.Again > 0.005 && s.Again < 0.02 &&
			s.PathsDown == 0 && !s.Ended &&
			s.Longest < 500*time.Millisecond, "%v: %+v", w, s)
	}
}
