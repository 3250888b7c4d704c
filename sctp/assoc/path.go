package assoc

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/pack"
	"github.com/rddp-go/rddp/sctp/internal/pmtud"
	"github.com/rddp-go/rddp/sctp/internal/tx"
)

// MaxPaths is the most peer addresses that an association keeps; further ones are ignored.
const MaxPaths = 8

// path is one destination of the peer. Its fields are in groups, as those of Assoc: PrefetchSend
// leaves out the first.
type path struct {
	arrivals
	tx.Path             // what the sender keeps of it
	mark      pack.Mark // of its packets
	reach     reach
	heartbeat heartbeat
	mtuSearch pathMTU
}

// arrivals is how packets of the peer come over the path.
type arrivals struct {
	lastLocalAddr netip.AddrPort // own address that the last packet came to
	dataPackets   uint64         // packets with DATA
}

// reach is whether this host can send over the path.
type reach struct {
	addrIsLocal   bool // this host has the peer's address: no HEARTBEATs, see refreshPathIsLocal
	localAddrGone bool // nothing can be sent from the path's own address, see UsableFrom
	resendDue     bool // it is back, and one packet is to go, see Assoc.nextResendAt
	isRemoved     bool // the peer has deleted the address: see removed_path.go
}

// addPath adds a destination if there is space for it and an own address to reach it from. known is
// an own address that the peer has sent to, or that the owner has named.
func (a *Assoc) addPath(known, remote netip.AddrPort, state tx.PathState) {
	remote = netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port())
	if !a.addrs.peerIsLocal && a.env.isLocalAddr(remote.Addr()) {
		return
	}
	if local, ok := a.sourceFor(remote.Addr(), known); ok {
		a.addAddrPair(local, remote, state)
	}
}

// addAddrPair is addPath with a given source.
func (a *Assoc) addAddrPair(local, remote netip.AddrPort, state tx.PathState) {
	reused := a.reusePath()
	if len(a.paths) == MaxPaths && reused == nil || a.findPath(remote.Addr()) != nil {
		return
	}
	lim := a.cfg.mtuLimits(a.env, local, remote, 0)
	p := &a.firstPath
	if reused != nil {
		p = reused
	} else if p.Remote.IsValid() { // one of before may still be needed, see replaceSender
		p = new(path)
	}
	*p = path{Path: *tx.NewPath(local, remote, a.cfg.firstMTU(a.env, lim), a.cfg.rtoConfig(), a.cfg.NewController),
		heartbeat: heartbeat{interval: a.cfg.HeartbeatInterval, nextAt: rawio.Never},
		mark:      a.cfg.packetMark(), mtuSearch: pathMTU{Search: pmtud.New(lim)}}
	p.State, p.HeartbeatsOnSuspicion = state, a.cfg.HeartbeatInterval >= 0
	a.refreshCutFrom(p)
	if reused != nil {
		a.sender().RenewPath(slices.Index(a.paths, p))
		return
	}
	if a.sender().AddPath(&p.Path) == nil {
		if a.paths == nil {
			a.paths = a.onePath[:0]
		}
		a.paths = append(a.paths, p)
	}
}

// findPath returns the path to addr, nil if the peer did not announce it.
func (l *pathList) findPath(addr netip.Addr) *path {
	for _, p := range l.paths {
		if p.Remote.Addr() == addr && !(p.State == tx.Unconfirmed && p.reach.isRemoved) {
			return p
		}
	}
	return nil
}

func (a *Assoc) primaryPath() *path {
	if a.IsIdle() {
		return a.paths[a.idleState.sender.Primary()]
	}
	return a.paths[a.sender().Primary().Index()]
}

// dataPath returns where new data goes. It is never unconfirmed.
func (a *Assoc) dataPath() *path { return a.paths[a.sender().DataPath().Index()] }

// NumPaths returns the number of the peer's addresses.
func (a *Assoc) NumPaths() int {
	n := len(a.paths)
	for _, p := range a.paths {
		if p.reach.isRemoved {
			n--
		}
	}
	return n
}

// PathStats returns a snapshot of path i, 0 <= i < NumPaths.
func (a *Assoc) PathStats(i int) PathStats {
	p := a.pathAt(i)
	return PathStats{
		Local: p.Local, Remote: p.Remote, Primary: p == a.primaryPath(),
		State: a.publicPathState(p), Suspected: p.Suspected(),
		MTU: p.MTU() + a.cfg.overhead(p.Remote), MaxPacket: p.MTU() + a.cfg.sealOverhead(),
		SRTT: p.SRTT(), RTTVar: p.RTTVar(), RTO: p.RTO(), Cwnd: p.CC().Window(), Ssthresh: p.CC().Ssthresh(),
		Flight: p.Flight(), Errors: p.Errors, DataIn: p.dataPackets, Heartbeat: p.heartbeat.interval,
		DSCP: p.mark.DSCP, FlowLabel: p.mark.FlowLabel,
		Controller: strings.TrimPrefix(reflect.TypeOf(p.CC()).String(), "*cc."),
	}
}

// Unverified reports whether the address of path i is unconfirmed and did not answer more than
// Path.Max.Retrans probes. The peer has named it, but most likely does not have it.
func (a *Assoc) Unverified(i int) bool {
	p := a.pathAt(i)
	return p.State == tx.Unconfirmed && p.Errors > a.cfg.PathMaxRetrans
}

// publicPathState returns the state that the owner sees.
func (a *Assoc) publicPathState(p *path) PathState {
	switch p.State {
	case tx.Unconfirmed:
		return PathUnconfirmed
	case tx.Inactive:
		return PathInactive
	case tx.PotentiallyFailed:
		if !a.cfg.HidePotentiallyFailed {
			return PathPotentiallyFailed
		}
	}
	return PathActive
}

// PathTo returns the value of Message.Path for an address of the peer. It fails with ErrNoPath.
func (a *Assoc) PathTo(addr netip.Addr) (uint8, error) {
	p := a.findPath(addr.Unmap())
	if p == nil {
		return 0, ErrNoPath
	}
	return uint8(p.Index() + 1), nil
}
