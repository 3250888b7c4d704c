package sched_test

import (
	"fmt"

	"github.com/rddp-go/rddp/sctp/sched"
)

// Stream 2 has twice the weight of stream 1, and so twice the octets.
func ExampleWeightedFairQueueing() {
	s := sched.WeightedFairQueueing()
	s.SetValue(2, 2)
	s.Activate(1)
	s.Activate(2)
	for range 6 {
		stream, _ := s.Next(false)
		fmt.Print(stream, " ")
		s.Sent(stream, 1000, true)
	}
	// Output: 1 2 2 1 2 2
}
