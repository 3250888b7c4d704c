package wan

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
)

// A path that is cut costs a pause that nobody notices, and one whose delay rises for a while costs next to nothing. make wan has the long form.
func TestPathsFailOverBeforeAnybodyNotices(t *testing.T) {
	bulk, trickle := Twins()
	for _, w := range []*Twin{&bulk, &trickle} {
		list := must.Get(w.Cuts(3, 4))(t)
		if p50, most := list[len(list)/2], list[len(list)-1]; p50 > 150*time.Millisecond || most > 250*time.Millisecond {
			t.Errorf("%v: silences of %v", w, list)
		}
		s := must.Get(w.Shaky().Spikes(4, 3*time.Minute))(t)
		check.That(t, s.Spikes > 15 && s.Moves > 2 && s.Most == 1 && s.Again > 0.005 && s.Again < 0.02 && s.PathsDown == 0 && !s.Ended &&
			s.Longest < 500*time.Millisecond, "%v: %+v", w, s)
	}
}
