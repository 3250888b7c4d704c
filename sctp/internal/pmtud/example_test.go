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
	for size := s.ProbeDue(now); size > 0; size = s.ProbeDue(now) {
		nonce := uint64(size) // of the owner's choice
		s.ProbeSent(now, nonce, rtt, time.Second)
		now = now.Add(rtt)
		s.ProbeAcked(now, nonce, size)
		fmt.Println(size, "octets passed:", s.State())
	}
	// Output:
	// 1200 octets passed: SEARCHING
	// 1480 octets passed: SEARCH_COMPLETE
}
