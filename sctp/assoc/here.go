package assoc

import (
	"net/netip"
	"slices"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/tx"
)

// An address that both hosts have, such as that of a bridge for containers, is no path: what is
// sent there comes back to this host, whose own answer, an ABORT, would end the association. So an
// address of this host counts as one of the peer's only where the peer is on this host.

// own says whether an address is one of this host's now.
func (e *Env) own(a netip.Addr) bool { return a.IsLoopback() || e.Own != nil && e.Own(a) }

// allOwn says whether addresses are all this host's.
func (e *Env) allOwn(list []netip.AddrPort) bool {
	return !slices.ContainsFunc(list, func(r netip.AddrPort) bool { return !e.own(r.Addr().Unmap()) })
}

// fromHere says whether a packet, or what a report quotes, is of this host, and so not of a peer
// that is elsewhere. That is asked anew, as addresses come and go.
func (a *Assoc) fromHere(p *rawio.Packet) bool { return !a.here && a.env.own(p.Remote.Addr().Unmap()) }

// heedOwn takes down which addresses of the peer this host has now. Nothing is sent there any more
// while there is another path, until this host does not have the address any more.
func (a *Assoc) heedOwn(now rawio.Time, p *path) {
	ours := !a.here && a.env.own(p.Remote.Addr())
	if ours == p.beat.ours {
		return
	}
	p.beat.ours = ours
	if ours && (p.State == tx.Active || p.State == tx.PotentiallyFailed) {
		if !a.Rests() {
			a.sender().Cut(now, &p.Path)
		}
		p.Failed(now)
		p.State = tx.Inactive
		a.rare().PathsDown++
		a.events.push(Event{Kind: EventPathDown, Path: p.Remote})
	}
	if beatStates.has(a.state) {
		p.beat.waiting = false
		a.scheduleBeat(p, now)
	}
}

// avoids says whether nothing is to be sent over a path, because this host has its address.
func (a *Assoc) avoids(p *path) bool {
	return p.beat.ours && slices.ContainsFunc(a.paths, func(q *path) bool { return !q.beat.ours })
}
