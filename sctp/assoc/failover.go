package assoc

import (
	"net/netip"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/tx"
)

// handleT3Timeout handles the expiry of T3-rtx of one or more paths (section 6.3.3). PollTransmit
// handles the end of a message's life.
func (a *Assoc) handleT3Timeout(now rawio.Time) {
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

// countPathError counts an error of a path, and of the association if ofAssoc is set. It acts on
// limits that are exceeded (sections 8.1 and 8.2, RFC 7829).
func (a *Assoc) countPathError(now rawio.Time, p *path, ofAssoc bool) {
	if p.Errors < a.maxPathErrors() {
		p.Errors++
	}
	switch {
	case p.reach.isRemoved: // what was in flight there
	case p.State == tx.Unconfirmed: // section 5.4: the rate of its probes depends on it, and whose it is taken to be
		if p.Errors == a.cfg.PathMaxRetrans+1 {
			a.rareCounters().PathsDown++
			a.events.push(Event{Kind: EventPathDown, Path: p.Remote})
		}
	case p.Errors > a.cfg.PathMaxRetrans:
		if p.State != tx.Inactive {
			p.MarkFailed(now)
			p.State = tx.Inactive
			a.rareCounters().PathsDown++
			a.events.push(Event{Kind: EventPathDown, Path: p.Remote})
		}
	case p.Errors > a.cfg.PotentiallyFailedMaxRetrans && p.State == tx.Active:
		p.MarkFailed(now)
		p.State = tx.PotentiallyFailed
		if !a.cfg.HidePotentiallyFailed {
			a.events.push(Event{Kind: EventPathPotentiallyFailed, Path: p.Remote})
		}
		if !p.heartbeat.awaitsAck {
			a.scheduleHeartbeat(p, now)
		}
	}
	if p.Errors > 1 && !p.reach.isRemoved {
		a.switchSource(p)
	}
	a.switchPrimary(p)
	if ofAssoc {
		a.health.errorCount++
		if a.health.errorCount > a.cfg.AssocMaxRetrans {
			if why := a.lastRefusal(p); why != nil {
				a.endByRefusal(p, why)
				return
			}
			// probeStuckPeer got an answer
			if packet, mtu, ago := a.sender().OversizedChunk(now); packet > 0 && now.Sub(a.health.lastHeardAt) <= ago {
				a.endAssoc(onEnd, &StuckError{p.Remote, packet, mtu})
				return
			}
			a.endAssoc(onEnd, ErrTimeout)
		}
	}
}

// maxPathErrors returns where path error counters stop. Beyond Path.Max.Retrans a counter shows
// which of several inactive paths is the least bad one (RFC 7829 section 4.1). A single path has no
// use for that (section 8.3).
func (a *Assoc) maxPathErrors() int {
	limit := a.cfg.PathMaxRetrans + 1
	if len(a.paths) > 1 {
		limit *= 10
	}
	return limit
}

// switchPrimary makes the path that data now takes the primary one. It does so when the primary
// path has failed too often (RFC 7829 section 5).
func (a *Assoc) switchPrimary(p *path) {
	limit := a.cfg.PrimarySwitchoverMaxRetrans
	if limit == nil || p.Errors <= *limit || p != a.primaryPath() {
		return
	}
	if q := a.sender().DataPath(); q != &p.Path {
		a.makePrimary(q.Index())
		a.events.push(Event{Kind: EventPrimary, Path: q.Remote})
	}
}

// switchSource gives a path that does not answer another source address, if there is one that suits
// it. The path is the pair of addresses, so it begins with fresh congestion control (section
// 7.2.5).
func (a *Assoc) switchSource(p *path) {
	next := a.nextSource(p)
	if next == p.Local {
		return
	}
	p.Local, p.lastLocalAddr = next, netip.AddrPort{}
	p.reach.localAddrGone = a.follower().isGone(next.Addr())
	p.Mend()
	p.ResetCongestion()
	a.restartMTUSearch(p)
}

// markPathAlive clears the error counter of a path that the peer has answered on.
func (a *Assoc) markPathAlive(now rawio.Time, p *path) {
	if p.reach.isRemoved {
		return
	}
	p.Errors = 0
	p.ConfirmReachable(now)
	if p.State == tx.Active {
		return
	}
	if p.State != tx.PotentiallyFailed {
		a.rareCounters().PathsUp++
	}
	if p.State != tx.PotentiallyFailed || !a.cfg.HidePotentiallyFailed {
		a.events.push(Event{Kind: EventPathUp, Path: p.Remote})
	}
	p.State = tx.Active
	if !p.heartbeat.awaitsAck {
		a.scheduleHeartbeat(p, now)
	}
}

// probeSuspectedPath probes a path that is silent while another answers. An unanswered HEARTBEAT is
// an error; the silence is none. What the path has carried before, if so, still counts.
func (a *Assoc) probeSuspectedPath(now rawio.Time, p *path, carried bool) {
	if carried {
		p.Errors = 0
	}
	if heartbeatStates.has(a.state) {
		a.sendHeartbeat(now, p)
	}
}

// leavePath leaves a path over which nothing can be sent, and says whether there is another.
func (a *Assoc) leavePath(now rawio.Time, p *path) bool {
	if a.state == Closed || len(a.paths) == 1 || !a.sender().LeavePath(now, &p.Path) {
		return false
	}
	a.probeSuspectedPath(now, p, false)
	return true
}

// SetPrimary makes the path to addr the primary path, which new data takes while it is active
// (section 6.4). It fails with ErrNoPath if addr is not an address of the peer.
func (a *Assoc) SetPrimary(addr netip.Addr) error {
	p := a.findPath(addr.Unmap())
	if p == nil {
		return ErrNoPath
	}
	a.makePrimary(p.Index())
	return nil
}

// makePrimary makes path i the primary path. From now on the window grows by a chunk of it (see
// setMTU).
func (a *Assoc) makePrimary(i int) {
	a.sender().SetPrimary(i)
	if a.recv != nil {
		a.recv.SetPMDCS(a.paths[i].PMDCS())
	}
}
