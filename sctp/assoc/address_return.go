package assoc

import (
	"net/netip"
	"slices"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/tx"
)

// Own addresses go and come back, and interfaces with them. What was sent in between is lost. T1,
// T2 and T3-rtx have backed off, but that says nothing about the network. When packets can leave
// again, one goes at once: what the timer would have sent, or else a HEARTBEAT. The timers and the
// error counters go on as before.

// UsableFrom sets the own addresses that something can be sent from, link-local ones with their
// zones. The association keeps the list. It leaves at once a path whose own address is not listed:
// the interface is down, or has lost it. It does the same when the link refuses a packet
// (HandleUnroutable). HEARTBEATs find out when such a path can be used again.
//
// When a path's own address is back, one packet goes over it at once, without backing off. There is
// no more than one in an RTO. It is the INIT, COOKIE ECHO, SHUTDOWN or SHUTDOWN ACK that waits for
// its answer. Otherwise it is the earliest chunk in flight, or a HEARTBEAT. PollTransmit has
// something to send then.
//
// If the link chooses the own address, a new one of the peer's kind is taken for it. UsableFrom
// also asks for the addresses that this host has now (Env.Own). A path to one of them is not used
// while there is another.
func (a *Assoc) UsableFrom(now rawio.Time, list []netip.Addr) {
	if a.state == Closed {
		return
	}
	var back [MaxPaths]bool
	chosen := false // by the link: the own address of a path
	for i, p := range a.paths {
		if p.reach.isRemoved {
			continue
		}
		a.refreshPathIsLocal(now, p)
		own := p.Local.Addr().Unmap()
		if !Unicast(own) {
			back[i], chosen = a.hasNewAddrFor(p, list), true
			continue
		}
		away := !isUsable(own, list)
		back[i] = p.reach.localAddrGone && !away
		if p.reach.localAddrGone = away; away {
			p.reach.resendDue = false
			if isLeftWith(own) {
				p.Sever()
			}
		} else if back[i] {
			p.Mend()
		}
	}
	if chosen {
		a.ensureRareState().usableAddrs = list
	}
	for i, p := range a.paths {
		switch {
		case back[i]:
			a.resendEarly(now, p)
		case p.reach.localAddrGone && isLeftWith(p.Local.Addr().Unmap()):
			a.leavePath(now, p)
		}
	}
}

// isUsable says whether something can be sent from an own address. The list has one of the loopback
// network.
func isUsable(own netip.Addr, list []netip.Addr) bool {
	return slices.ContainsFunc(list, func(u netip.Addr) bool {
		return u == own || own.IsLoopback() && u.IsLoopback() && familyOf(u) == familyOf(own)
	})
}

// isLeftWith says whether a path is left when its own address is gone. Those of the link and of the
// loopback network are not always listed.
func isLeftWith(own netip.Addr) bool { return !own.IsLinkLocalUnicast() && !own.IsLoopback() }

// hasNewAddrFor says whether the link has got an address that it may choose for a path.
func (a *Assoc) hasNewAddrFor(p *path, list []netip.Addr) bool {
	peer := p.Remote.Addr()
	return slices.ContainsFunc(list, func(u netip.Addr) bool {
		near := min(scopeOf(u), siteScope) == min(scopeOf(peer), siteScope) && u.Zone() == peer.Zone()
		return near && familyOf(u) == familyOf(peer) &&
			(a.rareState == nil || !slices.Contains(a.rareState.usableAddrs, u))
	})
}

// nextResendAt returns until when no other packet goes over a path because its own address is back.
func (a *Assoc) nextResendAt(p *path) *rawio.Time {
	return &a.ensureRareState().nextResendAt[p.Index()]
}

// resendEarly sends one packet over a path whose own address is back. It does so now, or an RTO
// after the last packet that was sent for that reason.
func (a *Assoc) resendEarly(now rawio.Time, p *path) {
	if a.state == Closed || a.isAvoided(p) {
		p.reach.resendDue = false
		return
	}
	rest := a.nextResendAt(p)
	if p.reach.resendDue = now.Before(*rest); p.reach.resendDue {
		return
	}
	*rest = now.Add(p.BaseRTO())
	switch s, c := a.setup(), a.shutdownState(); {
	case s != nil:
		if !s.sendDue && p.State == tx.Active {
			s.pathIndex, s.sendDue, s.resentEarly = slices.Index(a.paths, p), true, true
		}
	case c != nil:
		if p == c.path || p.State != tx.Unconfirmed && c.path.reach.localAddrGone {
			c.path, c.sendDue = p, true
		}
	case !a.resendData(now, p):
		a.heartbeatEarly(now, p)
	}
}

// resendData sends again the earliest chunk that did not leave, if there is one.
func (a *Assoc) resendData(now rawio.Time, p *path) bool {
	if p.State == tx.Unconfirmed || a.IsIdle() {
		return false
	}
	s := a.sender()
	if !s.HastenFor(now, &p.Path) {
		return false
	}
	if now >= s.NextTimeout() {
		a.handleT3Timeout(now)
	}
	return true
}

// heartbeatEarly sends a HEARTBEAT, if the user wants any. The wait for the one before goes on: it
// is an error if neither is answered by then.
func (a *Assoc) heartbeatEarly(now rawio.Time, p *path) {
	b := &p.heartbeat
	if b.interval < 0 && p.State != tx.Unconfirmed {
		return
	}
	if !a.allowHeartbeat(now, p) {
		p.reach.resendDue, *a.nextResendAt(p) = true, a.limits.heartbeats.windowEndsAt
		return
	}
	waiting, until := b.awaitsAck, b.nextAt
	if a.sendHeartbeat(now, p); waiting {
		b.setNextAt(min(until, b.nextAt))
	}
}

// resendPostponed does what resendEarly has put off.
func (a *Assoc) resendPostponed(now rawio.Time) {
	for _, p := range a.paths {
		if p.reach.resendDue && now >= *a.nextResendAt(p) {
			a.resendEarly(now, p)
		}
	}
}
