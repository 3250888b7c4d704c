package pmtud_test

import (
	"fmt"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/pmtud"
)

// An Ethernet link over which everything passes: the base size, then the largest.
func ExampleSearch() {
	const rtt = 20 * time.Millisecond
	now := rawio.Time(0)
	s := pmtud.New(pmtud.Limits{Min: 556, Base: 1200, Max: 1480, Overhead: 20})
	s.Start(now)
	for size := s.Due(now); size > 0; size = s.Due(now) {
		s.Sent(now, rtt, time.Second)
		now = now.Add(rtt)
		s.Acked(now)
		fmt.Println(size, "octets passed:", s.State())
	}
	// Output:
	// 1200 octets passed: SEARCHING
	// 1480 octets passed: SEARCH_COMPLETE
}
