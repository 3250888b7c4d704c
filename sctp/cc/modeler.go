package cc

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// Modeler is a Controller that has a model of the path, which delivery-rate samples feed
// (draft-ietf-ccwg-bbr). All of them are about one destination: what went to another one is in
// neither.
type Modeler interface {
	Pacer
	// OnSample comes once for each SACK that is processed, after everything else that it brings
	// about. It returns whether what is sent next counts as limited by the program, because it is
	// slowed down on purpose.
	OnSample(now rawio.Time, s *Sample) (limited bool)
	// OnLost says that a chunk is taken for lost, each time that one is. What OnLoss and OnTimeout
	// say comes after it.
	OnLost(now rawio.Time, l *Lost)
	// OnRestart comes before a transmission with nothing in flight, when the program had nothing to
	// send for a while.
	OnRestart(now rawio.Time)
}

// Sample is the draft's RS, with the totals of its C. Sizes are octets of DATA chunks.
type Sample struct {
	Delivered  uint64        // C.delivered: acknowledged so far
	Inflight   int           // C.inflight, after the SACK
	SRTT       time.Duration // C.srtt, 0 before the first measurement
	NewlyAcked int           // since the last sample
	Recovery   bool          // what was lost is still being repaired

	// These are of the chunk sent last among those that the SACK acknowledges. Valid is false if of
	// none of them it is known when it was sent.
	Valid          bool
	PriorDelivered uint64        // C.delivered when it was sent
	Volume         int           // RS.delivered: acknowledged since
	Rate           int64         // RS.delivery_rate in octets a second, 0 if it is not to be relied on
	AppLimited     bool          // the program had too little to send meanwhile
	TxInFlight     int           // C.inflight when it was sent, with it
	Lost           int           // taken for lost between its transmission and now
	RTT            time.Duration // of the latest chunk that was sent once, 0 if there is none
}

// Lost is a chunk that is taken for lost.
type Lost struct {
	Octets     int
	Delivered  uint64 // C.delivered
	TxInFlight int    // C.inflight when it was sent, with it
	Since      int    // octets taken for lost since then, with it
	AppLimited bool
	Adjacent   bool // the one before it in the order of TSNs was the last that was lost
}
