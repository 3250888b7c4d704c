package raw

import (
	"testing"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/rawio/internal/mmsg"
)

// Sinks that an alarm has woken rest again after so many looks at a buffer that is not pressed.
func TestSinksRestAgainAfterAnAlarm(t *testing.T) {
	s := sinks{alert: 2}
	for _, rest := range []bool{false, false, true} {
		s.received(lookEvery, new(mmsg.Group))
		check.Equal(t, "they rest", s.resting, rest)
	}
}

// Where the reader parks now and then, two changes of a filter cost more than what they spare.
func TestSinksRestOnlyWhereTheReaderIsAtWorkForLong(t *testing.T) {
	var s sinks
	for range 100 {
		s.wake()
		for range restAfter {
			s.received(lookEvery, new(mmsg.Group))
		}
		check.Equal(t, "they rest after less than 4096 packets", s.resting, false)
	}
	s.received(lookEvery, new(mmsg.Group))
	check.Equal(t, "they rest after 4096", s.resting, true)
}
