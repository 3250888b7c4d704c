package assoc

import (
	"net/netip"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/tx"
)

// A path whose address the peer has deleted stays in its place, as chunks that are outstanding name
// it by that. It is unconfirmed for good, so that nothing goes there, and no packet is from there.
// Another address may take the place when nothing is in flight any more.

// removePath removes a path (RFC 5061 section 5.3, F13). There is another that is confirmed.
func (a *Assoc) removePath(now rawio.Time, p *path) {
	s := a.sender()
	s.LeavePath(now, &p.Path)
	p.MarkFailed(now)
	p.State, p.reach.isRemoved, p.reach.resendDue = tx.Unconfirmed, true, false
	p.heartbeat = heartbeat{interval: p.heartbeat.interval, nextAt: rawio.Never}
	if s.Primary() == &p.Path {
		a.makePrimary(s.Alternate(&p.Path).Index())
	}
	instead := a.dataPath()
	if a.sacks.path == p {
		a.sacks.path, a.sacks.local = instead, netip.AddrPort{}
	}
	if c := a.shutdownState(); c != nil && c.path == p {
		c.path = instead
	}
	if h := a.asconf(); h != nil && h.own.path == p {
		h.own.path = nil
	}
	for i := range a.control.entries {
		if e := &a.control.entries[i]; e.path == p {
			e.path, e.local = instead, netip.AddrPort{}
		}
	}
	a.events.push(Event{Kind: EventPathDown, Path: p.Remote})
}

// reusePath returns the place of a removed path, nil if none is free.
func (a *Assoc) reusePath() *path {
	for _, p := range a.paths {
		if p.reach.isRemoved && p.Flight() == 0 {
			return p
		}
	}
	return nil
}

// pathAt returns the i-th path that is not removed.
func (l *pathList) pathAt(i int) *path {
	for _, p := range l.paths {
		if p.reach.isRemoved {
			continue
		}
		if i == 0 {
			return p
		}
		i--
	}
	return nil
}
