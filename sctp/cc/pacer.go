package cc

import "time"

// Pacer is a Controller that says how fast packets leave. Those of others are spread a little
// faster than a window in each round trip, so that the window and not the pace decides.
type Pacer interface {
	Controller
	// PacingRate returns how many octets of DATA chunks may leave in a second at a smoothed round
	// trip time of srtt, or 0 for as many as the window allows. More may go at once by what a
	// millisecond would carry; of a Modeler ten packets, while no more are in flight.
	PacingRate(srtt time.Duration) int64
}
