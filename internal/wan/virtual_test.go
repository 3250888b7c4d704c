package wan

import (
	"reflect"
	"testing"
	"time"
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
