package assoc

import (
	"net/netip"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/tx"
)

// MaxPaths is the most peer addresses that an association keeps; further ones are ignored.
const MaxPaths = 8

// path is one destination of the peer: what the sender keeps of it and its heartbeats.
type path struct {
	*tx.Path
	beat beat
}

// addPath adds a destination if there is room for it.
func (a *Assoc) addPath(local, remote netip.AddrPort, state tx.PathState) {
	remote = netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port())
	if len(a.paths) == MaxPaths || a.pathOf(remote.Addr()) != nil {
		return
	}
	rto := tx.RTOConfig{Initial: a.cfg.RTOInitial, Min: a.cfg.RTOMin, Max: a.cfg.RTOMax}
	p := tx.NewPath(local, remote, a.env.MTU(local.Addr(), remote.Addr()), rto, a.cfg.NewController)
	p.State = state
	if a.sender.AddPath(p) == nil {
		a.paths = append(a.paths, &path{Path: p, beat: beat{deadline: rawio.Never}})
	}
}

// pathOf returns the path to addr, nil if the peer did not announce it.
func (a *Assoc) pathOf(addr netip.Addr) *path {
	for _, p := range a.paths {
		if p.Remote.Addr() == addr {
			return p
		}
	}
	return nil
}

func (a *Assoc) primary() *path { return a.paths[a.sender.Primary().Index()] }

// pathError counts an error of a path, and of the association when ofAssoc is set, and marks the
// path inactive or ends the association when a limit is exceeded (sections 8.1 and 8.2).
func (a *Assoc) pathError(p *path, ofAssoc bool) {
	if p.Errors <= a.cfg.PathMaxRetrans {
		p.Errors++
		if p.Errors > a.cfg.PathMaxRetrans && p.State == tx.Active {
			p.State = tx.Inactive
			a.events.push(Event{Kind: EventPathDown, Path: p.Remote})
		}
	}
	if ofAssoc {
		a.errors++
		if a.errors > a.cfg.AssocMaxRetrans {
			a.down(ErrTimeout)
		}
	}
}

// pathAlive clears the error counter of a path that the peer answered on.
func (a *Assoc) pathAlive(p *path) {
	p.Errors = 0
	if p.State == tx.Inactive {
		p.State = tx.Active
		a.events.push(Event{Kind: EventPathUp, Path: p.Remote})
	}
}

// arrived notes what a packet with the right tag says about the way it came: the own address it
// went to and the UDP port to answer to (RFC 6951 section 5.4).
func (p *path) arrived(pkt *rawio.Packet) {
	if !p.Local.IsValid() {
		p.Local = pkt.Local
	}
	if port := pkt.Remote.Port(); port != p.Remote.Port() {
		p.Remote = netip.AddrPortFrom(p.Remote.Addr(), port)
	}
}

// NumPaths returns the number of the peer's addresses.
func (a *Assoc) NumPaths() int { return len(a.paths) }

// PathStats returns a snapshot of path i, 0 <= i < NumPaths.
func (a *Assoc) PathStats(i int) PathStats {
	p := a.paths[i]
	return PathStats{
		Local: p.Local, Remote: p.Remote, Primary: p == a.primary(),
		State: [...]PathState{tx.Unconfirmed: PathUnconfirmed, tx.Active: PathActive, tx.Inactive: PathInactive}[p.State],
		MTU:   p.MTU(), SRTT: p.SRTT(), RTTVar: p.RTTVar(), RTO: p.RTO(), Cwnd: p.CC().Window(), Ssthresh: p.CC().Ssthresh(),
		Flight: p.Flight(), Errors: p.Errors,
	}
}
