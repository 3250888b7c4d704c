package cc

import "time"

// Pacer is a Controller that asks for its packets to be spread over the round trip instead of leaving in bursts as
// SACKs open the window. A path of shallow buffers loses less of them.
type Pacer interface {
	Controller
	// PacingRate returns how many octets of DATA chunks may leave in a second at a smoothed round trip time of srtt,
	// or 0 for as many as the window allows. More may go at once by what a millisecond would carry.
	PacingRate(srtt time.Duration) int64
}

// Paced returns a Factory whose controllers are those of f, paced a little faster than a window in each round
// trip, so that the window and not the pace decides: by the factors that Linux has for TCP, the second of
// which RFC 9002 section 7.7 recommends.
func Paced(f Factory) Factory {
	return func(pmdcs int, ipv6 bool) Controller { return &paced{f(pmdcs, ipv6)} }
}

type paced struct{ Controller }

// PacingRate implements Pacer.
func (p *paced) PacingRate(srtt time.Duration) int64 {
	if srtt <= 0 {
		return 0
	}
	rate := int64(float64(p.Window()) / srtt.Seconds())
	if p.Window() < p.Ssthresh() {
		return 2 * rate
	}
	return rate + rate/4
}
