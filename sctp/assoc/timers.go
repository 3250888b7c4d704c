package assoc

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// NextTimeout returns when HandleTimeout is to be called, rawio.Never if no timer runs.
func (a *Assoc) NextTimeout() rawio.Time {
	next := a.autoCloseAt()
	if a.state == Closed {
		return rawio.Never
	}
	if a.setup != nil {
		next = min(next, a.setup.t1ExpiresAt)
	}
	if a.shutdownState != nil {
		next = min(next, a.shutdownState.t2ExpiresAt, a.shutdownState.t5ExpiresAt)
	}
	if a.recv != nil {
		next = min(next, a.recv.Deadline())
	}
	beats := heartbeatStates.has(a.state)
	for _, p := range a.paths {
		if beats {
			next = min(next, p.heartbeat.nextAt)
		}
		if p.heartbeat.resendDue {
			next = min(next, *a.nextResendAt(p))
		}
	}
	if a.isSearchingMTU() {
		for _, p := range a.paths {
			next = min(next, p.mtuSearch.Deadline())
		}
	}
	if !a.IsIdle() && sendStates.has(a.state) {
		next = min(next, a.sender().NextTimeout())
	}
	return next
}

// Slack returns how much earlier than next, which NextTimeout has returned, HandleTimeout may be
// called. A caller that then handles other associations uses it.
func (a *Assoc) Slack(next rawio.Time) time.Duration {
	for _, p := range a.paths {
		if p.heartbeat.nextAt == next {
			return p.heartbeat.slack
		}
	}
	return 0
}

// HandleTimeout runs what is due at now. A delayed SACK that is due leaves with the next
// PollTransmit.
func (a *Assoc) HandleTimeout(now rawio.Time) {
	a.resendPostponed(now)
	if a.setup != nil && now >= a.setup.t1ExpiresAt {
		a.handleSetupTimeout()
	}
	if a.shutdownState != nil && now >= min(a.shutdownState.t2ExpiresAt, a.shutdownState.t5ExpiresAt) {
		a.handleShutdownTimeout(now)
	}
	if !a.IsIdle() && sendStates.has(a.state) && now >= a.sender().NextTimeout() {
		a.handleDataTimeout(now)
	}
	if heartbeatStates.has(a.state) {
		a.handleHeartbeatTimeouts(now)
	}
	a.runMTUSearches(now)
	a.closeIfIdle(now)
	if a.state != Closed {
		a.advanceShutdown(now)
	}
}

// handleDataTimeout handles the expiry of T3-rtx of one or more paths (section 6.3.3). PollTransmit
// handles the end of a message's life.
func (a *Assoc) handleDataTimeout(now rawio.Time) {
	expired := a.sender().HandleTimeout(now)
	for i, p := range a.paths {
		if expired.Has(i) && a.state != Closed {
			a.countPathError(now, p, true)
			a.probeStuckPeer(now, p)
		}
	}
}

// probeStuckPeer asks the peer by HEARTBEAT whether it is there. It does so if what is not
// acknowledged is too long for every path. The answer separates a *StuckError from a peer that no
// longer answers.
func (a *Assoc) probeStuckPeer(now rawio.Time, p *path) {
	if !heartbeatStates.has(a.state) || p.heartbeat.awaitsAck {
		return
	}
	if packet, _, _ := a.sender().OversizedChunk(now); packet > 0 {
		a.sendHeartbeat(now, p)
	}
}
