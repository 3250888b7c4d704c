// Package grace has those that wait for peers to agree to an end share the time that may be lost with peers that are gone.
package grace

import (
	"sync"
	"time"
)

// Period is a time that calls which end associations share, however many there are, and whether they come together or one after the
// other. Its zero value is ready for use.
type Period struct {
	mu    sync.Mutex
	until time.Time // its end, guarded by mu
	vain  time.Time // when a call last waited in vain, guarded by mu
}

// The least that each call has, in round trips, and bounds for it.
const (
	leastTrips = 4
	leastShort = 2 * time.Millisecond
	leastLong  = time.Second
)

// Left returns how long a call may wait that begins now: until the end of the period, and at least for four round trips, so that a
// peer which is there can answer. Another period, of that length, begins once no call has waited in vain for as long.
func (p *Period) Left(length, trip time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if !now.Before(p.until) && now.Sub(p.vain) >= length {
		p.until = now.Add(length)
	}
	return min(length, max(p.until.Sub(now), min(max(leastTrips*trip, leastShort), leastLong)))
}

// InVain notes that a call has waited until now, and the peer has not answered.
func (p *Period) InVain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.vain = time.Now()
}
