package endpoint

import (
	"testing"

	"github.com/rddp-go/rddp/rawio"
)

// Tags are forgotten when their time is over, and the oldest when there are too many.
func TestSpentTagsAreBounded(t *testing.T) {
	var s spent
	key := func(i int) tagKey { return tagKey{uint32(i), 1, 2} }
	s.add(key(0), 0) // no cookie
	for i := 1; i <= maxSpent+10; i++ {
		s.add(key(i), rawio.Time(100+i%2))
	}
	if len(s.until) != maxSpent || len(s.order) != maxSpent {
		t.Errorf("%d tags, %d in order", len(s.until), len(s.order))
	}
	for i, want := range map[int]bool{0: false, 10: false, 11: true, maxSpent + 10: true, maxSpent + 11: false} {
		if s.has(100, key(i)) != want {
			t.Errorf("tag %d: %v", i, !want)
		}
	}
	s.add(key(12), 300)
	if s.has(102, key(11)) || !s.has(300, key(12)) || s.has(301, key(12)) || len(s.until) != 0 || len(s.order) != 0 {
		t.Errorf("%d tags of the past", len(s.until))
	}
}
