package wan

import (
	"reflect"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/must"
)

// What a seed yields is the code's alone, and no answer comes before the road lets it.
func TestVirtualTimeRepeats(t *testing.T) {
	for _, size := range Sizes {
		c := &Cell{RTT: 20 * time.Millisecond, Loss: 0.03, Size: size, Rate: 12_500_000, Hold: 1}
		read, _ := ParseSize(SizeName(size))
		s, err := Virtual(c, nil, 3, 2, 1, time.Second)
		again, _ := Virtual(c, nil, 3, 2, 1, time.Second)
		if err != nil || read != size || !reflect.DeepEqual(s, again) || size > 0 && s.Quantile(0) < c.RTT || size == 0 && s.Mbits(0, time.Second) < 4 {
			t.Errorf("%v, read as %d: %v, %+v and then %+v", c, read, err, s, again)
		}
	}
}

// Packets that change places by a fifth of the round trip are late, not lost.
func TestReorderingCostsNothing(t *testing.T) {
	for _, share := range []float64{0.01, 0.5} {
		c := &Cell{RTT: 20 * time.Millisecond, Rate: 12_500_000, Hold: 1, Reorder: share, ReorderDelay: 4 * time.Millisecond}
		s := must.Get(Virtual(c, nil, 3, 1, 1, 4*time.Second))(t)
		if got := s.Mbits(time.Second, 4*time.Second); got < 90 {
			t.Errorf("%v of the packets are late: %.1f of 95 Mbit/s", share, got)
		}
	}
}
