// Package grace has those that wait for peers to agree to an end share the time that may be lost
// with peers that are gone.
package grace

import (
	"sync"
	"time"
)

// Period is a time that calls which end associations share, however many there are, and whether
// they come together or one after the other. Its zero value is ready for use.
type Period struct {
	mu         sync.Mutex
	endsAt     time.Time // its end, guarded by mu
	lastVainAt time.Time // when a call last waited in vain, guarded by mu
}

// The least that each call has, in round trips, and bounds for it.
const (
	minRoundTrips = 4
	minTripsWait  = 2 * time.Millisecond
	maxTripsWait  = time.Second
)

// WaitLeft returns how long a call may wait that begins now: until the end of the period, and at
// least for four round trips, so that a peer which is there can answer. Another period, of that
// length, begins once no call has waited in vain for as long.
func (p *Period) WaitLeft(length, trip time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if !now.Before(p.endsAt) && now.Sub(p.lastVainAt) >= length {
		p.endsAt = now.Add(length)
	}
	return min(length, max(p.endsAt.Sub(now), min(max(minRoundTrips*trip, minTripsWait), maxTripsWait)))
}

// RecordVainWait notes that a call has waited until now, and the peer has not answered.
func (p *Period) RecordVainWait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastVainAt = time.Now()
}
