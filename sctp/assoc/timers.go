package assoc

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// NextTimeout returns when HandleTimeout is to be called, rawio.Never if no timer runs.
func (a *Assoc) NextTimeout() rawio.Time {
	next := a.idleUntil()
	if a.state == Closed {
		return rawio.Never
	}
	if a.setup != nil {
		next = min(next, a.setup.deadline)
	}
	if a.closing != nil {
		next = min(next, a.closing.t2, a.closing.guard)
	}
	if a.recv != nil {
		next = min(next, a.recv.Deadline())
	}
	beats := beatStates.has(a.state)
	for _, p := range a.paths {
		if beats {
			next = min(next, p.beat.deadline)
		}
		if p.beat.owed {
			next = min(next, *a.resting(p))
		}
	}
	if a.searching() {
		for _, p := range a.paths {
			next = min(next, p.mtu.Deadline())
		}
	}
	if !a.Rests() && sendStates.has(a.state) {
		next = min(next, a.sender().NextTimeout())
	}
	return next
}

// Slack returns how much earlier than next, which NextTimeout has returned, HandleTimeout may as well be called: for who calls it for other
// associations then.
func (a *Assoc) Slack(next rawio.Time) time.Duration {
	for _, p := range a.paths {
		if p.beat.deadline == next {
			return p.beat.slack
		}
	}
	return 0
}

// HandleTimeout runs what is due at now. A delayed SACK that is due leaves with the next PollTransmit.
func (a *Assoc) HandleTimeout(now rawio.Time) {
	a.hastenLate(now)
	if a.setup != nil && now >= a.setup.deadline {
		a.setupTimeout()
	}
	if a.closing != nil && now >= min(a.closing.t2, a.closing.guard) {
		a.closingTimeout(now)
	}
	if !a.Rests() && sendStates.has(a.state) && now >= a.sender().NextTimeout() {
		a.dataTimeout(now)
	}
	if beatStates.has(a.state) {
		a.beatTimeouts(now)
	}
	a.tendMTUs(now)
	a.autoclose(now)
	if a.state != Closed {
		a.progress(now)
	}
}

// dataTimeout is the expiry of T3-rtx of one or more paths (section 6.3.3). That of the life of a message is for PollTransmit.
func (a *Assoc) dataTimeout(now rawio.Time) {
	expired := a.sender().HandleTimeout(now)
	for i, p := range a.paths {
		if expired.Has(i) && a.state != Closed {
			a.pathError(now, p, true)
			a.askStuck(now, p)
		}
	}
}

// askStuck asks the peer by HEARTBEAT whether it is there, where what is not acknowledged is too long for every path: that tells a *StuckError from a peer that
// answers no more.
func (a *Assoc) askStuck(now rawio.Time, p *path) {
	if !beatStates.has(a.state) || p.beat.waiting {
		return
	}
	if packet, _, _ := a.sender().Stuck(now); packet > 0 {
		a.sendHeartbeat(now, p)
	}
}
