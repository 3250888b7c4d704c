package raw

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/rawio/internal/mmsg"
)

// Sinks that an alarm has woken rest again after so many looks at a buffer that is not pressed.
func TestSinksRestAgainAfterAnAlarm(t *testing.T) {
	s := sinkSockets{checksUntilRest: 2}
	for _, rest := range []bool{false, false, true} {
		s.countReceived(packetsPerCheck, new(mmsg.Group))
		check.Equal(t, "they rest", s.isResting, rest)
	}
}

// Where the reader parks now and then, two changes of a filter cost more than what they spare.
func TestSinksRestOnlyWhereTheReaderIsAtWorkForLong(t *testing.T) {
	var s sinkSockets
	for range 100 {
		s.wakeSinks()
		for range checksBeforeRest {
			s.countReceived(packetsPerCheck, new(mmsg.Group))
		}
		check.Equal(t, "they rest after less than 4096 packets", s.isResting, false)
	}
	s.countReceived(packetsPerCheck, new(mmsg.Group))
	check.Equal(t, "they rest after 4096", s.isResting, true)
}
