package assoc

import (
	"net/netip"
	"slices"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/tx"
)

// An address that both hosts have, such as that of a bridge for containers, is no path. What is
// sent there comes back to this host, whose own answer, an ABORT, would end the association. So an
// address of this host counts as one of the peer's only if the peer is on this host.

// isLocalAddr says whether an address is one of this host's now.
func (e *Env) isLocalAddr(a netip.Addr) bool { return a.IsLoopback() || e.Own != nil && e.Own(a) }

// areLocalAddrs says whether addresses are all this host's.
func (e *Env) areLocalAddrs(list []netip.AddrPort) bool {
	return !slices.ContainsFunc(list, func(r netip.AddrPort) bool { return !e.isLocalAddr(r.Addr().Unmap()) })
}

// isFromThisHost says whether a packet, or what a report quotes, is of this host. If so it is not
// of a peer elsewhere. It asks anew each time, as addresses come and go.
func (a *Assoc) isFromThisHost(p *rawio.Packet) bool {
	return !a.addrs.peerIsLocal && a.env.isLocalAddr(p.Remote.Addr().Unmap())
}

// refreshPathIsLocal records which addresses of the peer this host has now. While there is another
// path, nothing is sent there until this host no longer has the address.
func (a *Assoc) refreshPathIsLocal(now rawio.Time, p *path) {
	ours := !a.addrs.peerIsLocal && a.env.isLocalAddr(p.Remote.Addr())
	if ours == p.reach.addrIsLocal {
		return
	}
	p.reach.addrIsLocal = ours
	if ours && (p.State == tx.Active || p.State == tx.PotentiallyFailed) {
		if !a.IsIdle() {
			a.sender().LeavePath(now, &p.Path)
		}
		p.MarkFailed(now)
		p.State = tx.Inactive
		a.rareCounters().PathsDown++
		a.events.push(Event{Kind: EventPathDown, Path: p.Remote})
	}
	if heartbeatStates.has(a.state) {
		p.heartbeat.awaitsAck = false
		a.scheduleHeartbeat(p, now)
	}
}

// isAvoided says whether nothing is to be sent over a path, because this host has its address.
func (a *Assoc) isAvoided(p *path) bool {
	return p.reach.addrIsLocal && slices.ContainsFunc(a.paths, func(q *path) bool {
		return !q.reach.addrIsLocal
	})
}
