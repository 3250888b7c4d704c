package assoc

import (
	"net/netip"
	"slices"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/tx"
)

// Own addresses go and come back, and interfaces with them. What was sent in between is lost, and
// T1, T2 and T3-rtx have backed off, but that says nothing of the network. When packets can leave
// again, one goes at once: what the timer would have sent, or a HEARTBEAT where no timer waits. The
// timers and the error counters go on as if it had not.

// UsableFrom says from which own addresses something can be sent, link-local ones with their zones;
// the list is kept. Paths that begin elsewhere, where the interface is down or has that address no
// more, are left at once, as those are over which the link refuses a packet (Unroutable).
// HEARTBEATs find out when they can be used again. Over a path whose own address is back one packet
// goes at once, but no more than one in an RTO, without backing off: an INIT, COOKIE ECHO, SHUTDOWN
// or SHUTDOWN ACK that waits for its answer, the earliest chunk in flight, or a HEARTBEAT. Where
// the link chooses the own address, one that is new and of the same kind as the peer's is taken for
// it. PollTransmit has something to send then. What addresses this host has now is asked as well
// (Env.Own): a path to one of them is none.
func (a *Assoc) UsableFrom(now rawio.Time, list []netip.Addr) {
	if a.state == Closed {
		return
	}
	var back [MaxPaths]bool
	chosen := false // by the link: the own address of a path
	for i, p := range a.paths {
		a.heedOwn(now, p)
		own := p.Local.Addr().Unmap()
		if !Unicast(own) {
			back[i], chosen = a.gains(p, list), true
			continue
		}
		away := !usable(own, list)
		back[i] = p.beat.away && !away
		if p.beat.away = away; away {
			p.beat.owed = false
			if !own.IsLinkLocalUnicast() && !own.IsLoopback() {
				p.Sever()
			}
		} else if back[i] {
			p.Mend()
		}
	}
	if chosen {
		a.exception().usable = list
	}
	for i, p := range a.paths {
		switch own := p.Local.Addr().Unmap(); {
		case back[i]:
			a.hasten(now, p)
		case p.beat.away && !own.IsLinkLocalUnicast() && !own.IsLoopback():
			a.cut(now, p)
		}
	}
}

// usable says whether something can be sent from an own address. Of the loopback network the list
// has one.
func usable(own netip.Addr, list []netip.Addr) bool {
	return slices.ContainsFunc(list, func(u netip.Addr) bool {
		return u == own || own.IsLoopback() && u.IsLoopback() && familyOf(u) == familyOf(own)
	})
}

// gains says whether the link has got an address that it may choose for a path.
func (a *Assoc) gains(p *path, list []netip.Addr) bool {
	peer := p.Remote.Addr()
	return slices.ContainsFunc(list, func(u netip.Addr) bool {
		near := min(scopeOf(u), siteScope) == min(scopeOf(peer), siteScope) && u.Zone() == peer.Zone()
		return near && familyOf(u) == familyOf(peer) && (a.exceptions == nil || !slices.Contains(a.exceptions.usable, u))
	})
}

// resting is until when no other packet goes over a path because its own address is back.
func (a *Assoc) resting(p *path) *rawio.Time { return &a.exception().resting[p.Index()] }

// hasten has one packet go over a path whose own address is back, now or when an RTO has passed
// since the last that has gone for that.
func (a *Assoc) hasten(now rawio.Time, p *path) {
	b := &p.beat
	if a.state == Closed || a.avoids(p) {
		b.owed = false
		return
	}
	rest := a.resting(p)
	if b.owed = now.Before(*rest); b.owed {
		return
	}
	*rest = now.Add(p.BaseRTO())
	switch s, c := a.setup, a.closing; {
	case s != nil:
		if !s.due && p.State == tx.Active {
			s.path, s.due, s.hurried = slices.Index(a.paths, p), true, true
		}
	case c != nil:
		if p == c.path || p.State != tx.Unconfirmed && c.path.beat.away {
			c.path, c.due = p, true
		}
	case !a.hastenData(now, p):
		a.hastenBeat(now, p)
	}
}

// hastenData has the earliest chunk go that did not leave, if there is one.
func (a *Assoc) hastenData(now rawio.Time, p *path) bool {
	if p.State == tx.Unconfirmed || a.Rests() {
		return false
	}
	s := a.sender()
	if !s.HastenFor(now, &p.Path) {
		return false
	}
	if now >= s.NextTimeout() {
		a.dataTimeout(now)
	}
	return true
}

// hastenBeat sends a HEARTBEAT, where the user wants any. The wait for the one before goes on: it is
// an error if neither is answered by then.
func (a *Assoc) hastenBeat(now rawio.Time, p *path) {
	b := &p.beat
	if p.interval < 0 && p.State != tx.Unconfirmed {
		return
	}
	if !a.countBeat(now, p) {
		b.owed, *a.resting(p) = true, a.beats.until
		return
	}
	waiting, until := b.waiting, b.deadline
	if a.sendHeartbeat(now, p); waiting {
		b.at(min(until, b.deadline))
	}
}

// hastenLate does what hasten has put off.
func (a *Assoc) hastenLate(now rawio.Time) {
	for _, p := range a.paths {
		if p.beat.owed && now >= *a.resting(p) {
			a.hasten(now, p)
		}
	}
}
