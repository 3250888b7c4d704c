package cc

import "time"

// Pacer is a Controller that says how fast packets leave. Those of others are spread a little
// faster than a window in each round trip. So the window decides and not the pace.
type Pacer interface {
	Controller
	// PacingRate returns how many octets of DATA chunks may leave in a second at a smoothed round
	// trip time of srtt. 0 is as many as the window allows. What a millisecond carries may go at
	// once; of a Modeler ten packets, while no more are in flight.
	PacingRate(srtt time.Duration) int64
}
