// Package grace limits the time that ends of associations lose with peers that are gone.
//
//   - In: each call that waits for the end of an association, and whether it waited for nothing.
//   - Out: how long the next call may wait.
//   - Invariant: peers that are gone cost one period, however many there are.
package grace

import (
	"sync"
	"time"
)

// Period is a time shared by calls that end associations. It does not matter how many there are,
// nor whether they come together or one after the other. Its zero value is ready for use.
type Period struct {
	mu         sync.Mutex
	endsAt     time.Time // its end, guarded by mu
	lastVainAt time.Time // when a call last waited without an answer, guarded by mu
}

// The least that each call has, in round trips, and bounds for it.
const (
	minRoundTrips = 4
	minTripsWait  = 2 * time.Millisecond
	maxTripsWait  = time.Second
)

// WaitLeft returns how long a call that begins now may wait. It waits until the end of the period,
// and at least for four round trips, so that a live peer can answer. Another period of that length
// begins once no call has failed for as long.
func (p *Period) WaitLeft(length, trip time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if !now.Before(p.endsAt) && now.Sub(p.lastVainAt) >= length {
		p.endsAt = now.Add(length)
	}
	return min(length, max(p.endsAt.Sub(now), min(max(minRoundTrips*trip, minTripsWait), maxTripsWait)))
}

// RecordVainWait notes that a call has waited until now without an answer.
func (p *Period) RecordVainWait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastVainAt = time.Now()
}
