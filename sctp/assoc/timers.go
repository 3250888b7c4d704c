package assoc

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// timer is one of the timers of an association. If several have expired, they fire in this order.
type timer uint8

const (
	timerEarlyResend timer = iota
	timerT1
	timerT5
	timerT2
	timerT3
	timerHeartbeat
	timerPMTUD
	timerSack
	timerAutoClose
	timerReconfig
	timerAsconf
	timerKeys

	numTimers
)

// timerRow says of one timer how it is called, when it expires and what it fires.
type timerRow struct {
	name string // the RFC's
	// expiresAt returns the deadline, rawio.Never while the timer does not run. Nil: each path has
	// such a timer.
	expiresAt func(*Assoc) rawio.Time
	// fire is called when the timer has expired. That of paths is called at each timeout, and looks
	// at each path. Nil: PollTransmit does what is due.
	fire func(a *Assoc, now rawio.Time)
}

// timers is the table of all timers, with what arms each and what it fires.
var timers = [numTimers]timerRow{
	// Armed by resendEarly, when an own address is back too soon after the last time. It sends one
	// packet.
	timerEarlyResend: {name: "early resend", fire: (*Assoc).resendPostponed},

	// Armed by transmitSetup, which sends INIT or COOKIE ECHO. It sends that again, up to
	// Max.Init.Retransmits times.
	timerT1: {name: "T1-init, T1-cookie", expiresAt: (*Assoc).t1ExpiresAt, fire: (*Assoc).handleT1Timeout},

	// Armed by sendShutdown, which enters SHUTDOWN-SENT. It aborts the association.
	timerT5: {name: "T5-shutdown-guard", expiresAt: (*Assoc).t5ExpiresAt, fire: (*Assoc).handleT5Timeout},

	// Armed by startT2, for SHUTDOWN or SHUTDOWN ACK. It sends that again, over another path.
	timerT2: {name: "T2-shutdown", expiresAt: (*Assoc).t2ExpiresAt, fire: (*Assoc).handleT2Timeout},

	// Armed by tx.Sender, which sends DATA. It sends DATA again, and counts an error of the path.
	// The deadline is also that of the other timers of the sender: RACK, tail-loss probe and
	// pacing.
	timerT3: {name: "T3-rtx", expiresAt: (*Assoc).t3ExpiresAt, fire: (*Assoc).handleT3Timeout},

	// Armed by scheduleHeartbeat, while the path is idle: it sends a HEARTBEAT. Armed by
	// sendHeartbeat, for the answer: it counts an error of the path.
	timerHeartbeat: {name: "HB.interval", fire: (*Assoc).handleHeartbeatTimeouts},

	// Armed by pmtud.Search, when it sends a probe, or has found the MTU. It sends the next probe.
	timerPMTUD: {name: "PROBE_TIMER, PMTU_RAISE_TIMER", fire: (*Assoc).runMTUSearches},

	// Armed by rx.Receiver, which receives DATA. PollTransmit sends a SACK.
	timerSack: {name: "SACK.Delay", expiresAt: (*Assoc).sackExpiresAt},

	// Armed by user data that is sent or received. It shuts the association down, which is
	// established (RFC 6458 section 8.1.8).
	timerAutoClose: {name: "SCTP_AUTOCLOSE", expiresAt: (*Assoc).autoCloseExpiresAt,
		fire: func(a *Assoc, now rawio.Time) { _ = a.Shutdown(now) }},

	// Armed by sendReconfig, for a request to reset or add streams. It sends that again, and counts
	// an error of the path (RFC 6525 section 5.1.1).
	timerReconfig: {name: "Re-configuration", expiresAt: (*Assoc).reconfigExpiresAt,
		fire: (*Assoc).handleReconfigTimeout},

	// Armed by sendAsconf, for a request to change addresses. It sends that again, over another
	// path, and counts an error of the path (RFC 5061 section 5.1).
	timerAsconf: {name: "T-4 RTO", expiresAt: (*Assoc).asconfExpiresAt, fire: (*Assoc).handleAsconfTimeout},

	// Armed by advanceKeys, under protection: a handshake ends in time, keys drain, or are
	// replaced.
	timerKeys: {name: "keys", expiresAt: (*Assoc).keysExpireAt, fire: (*Assoc).advanceKeys},
}

// NextTimeout returns when HandleTimeout is to be called, rawio.Never if no timer runs. It is
// called for each packet. So it does not walk the table, but names the deadlines, which the
// compiler then inlines.
func (a *Assoc) NextTimeout() rawio.Time {
	next := min(a.t3ExpiresAt(), a.sackExpiresAt(), a.autoCloseExpiresAt())
	if a.rareState != nil {
		next = min(next, a.reconfigExpiresAt(), a.asconfExpiresAt(), a.keysExpireAt())
	}
	if a.stateData != nil {
		next = min(next, a.t1ExpiresAt(), a.t5ExpiresAt(), a.t2ExpiresAt())
	}
	for _, p := range a.paths {
		next = min(next, a.earlyResendExpiresAt(p), a.heartbeatExpiresAt(p), a.pmtudExpiresAt(p))
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
	for i := range timers {
		if t := &timers[i]; t.fire != nil && t.mayHaveExpired(a, now) {
			t.fire(a, now)
		}
	}
	if a.state != Closed {
		a.advanceShutdown(now)
	}
}

// mayHaveExpired says whether to call fire.
func (t *timerRow) mayHaveExpired(a *Assoc, now rawio.Time) bool {
	if t.expiresAt == nil {
		return true
	}
	at := t.expiresAt(a)
	return now >= at && at != rawio.Never
}

func (a *Assoc) earlyResendExpiresAt(p *path) rawio.Time {
	if !p.reach.resendDue || a.state == Closed {
		return rawio.Never
	}
	return *a.nextResendAt(p)
}

func (a *Assoc) t1ExpiresAt() rawio.Time {
	if s := a.setup(); s != nil {
		return s.t1ExpiresAt
	}
	return rawio.Never
}

func (a *Assoc) t2ExpiresAt() rawio.Time {
	if s := a.shutdownState(); s != nil {
		return s.t2ExpiresAt
	}
	return rawio.Never
}

func (a *Assoc) t5ExpiresAt() rawio.Time {
	if s := a.shutdownState(); s != nil {
		return s.t5ExpiresAt
	}
	return rawio.Never
}

func (a *Assoc) t3ExpiresAt() rawio.Time {
	h := a.dataState.Load()
	if h == nil || !sendStates.has(a.state) {
		return rawio.Never
	}
	return h.sender.NextTimeout()
}

func (a *Assoc) heartbeatExpiresAt(p *path) rawio.Time {
	if !heartbeatStates.has(a.state) {
		return rawio.Never
	}
	return p.heartbeat.nextAt
}

func (a *Assoc) pmtudExpiresAt(p *path) rawio.Time {
	if !a.isSearchingMTU() {
		return rawio.Never
	}
	return p.mtuSearch.Deadline()
}

func (a *Assoc) sackExpiresAt() rawio.Time {
	if a.recv == nil || a.state == Closed {
		return rawio.Never
	}
	return a.recv.Deadline()
}

func (a *Assoc) autoCloseExpiresAt() rawio.Time {
	if a.cfg.AutoClose == 0 || a.state != Established {
		return rawio.Never
	}
	return a.lastDataAt.Add(a.cfg.AutoClose)
}
