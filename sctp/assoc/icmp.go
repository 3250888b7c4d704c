package assoc

import (
	"encoding/binary"
	"syscall"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// handleICMP processes an ICMP report about one of our packets (section 10).
//
// Protocol unreachable ends an association only when nothing was heard from the peer for an RTO, before
// any backing off: backed off it grows as fast as the silence does. A Linux host answers so, too, when the receive buffer of the raw socket that has the association is
// full for a moment; a peer that has just spoken SCTP does speak it, and if it has stopped, the next
// report or the retransmission limit will say so.
func (a *Assoc) handleICMP(now rawio.Time, p *rawio.Packet) {
	path := a.pathOf(p.Remote.Addr().Unmap())
	if a.state == Closed || path == nil || len(p.Data) < 8 {
		return
	}
	q := p.Data
	be := binary.BigEndian
	if be.Uint16(q) != a.localPort || be.Uint16(q[2:]) != a.peerPort {
		return
	}
	a.rare().ICMPIn++
	tag := be.Uint32(q[4:])
	isInit := tag == 0
	switch {
	case isInit: // ICMP6: the quote must reach our Initiate Tag
		if len(q) < 20 || wire.ChunkType(q[12]) != wire.ChunkInit || be.Uint32(q[16:]) != a.localTag {
			a.rare().ICMPIgnored++
			return
		}
	case tag != a.peerTag:
		a.rare().ICMPIgnored++
		return
	}
	if a.fromHere(p) {
		a.rare().ICMPIgnored++
		return
	}
	switch p.Kind {
	case rawio.KindPacketTooBig: // ICMP7
		a.packetTooBig(now, path, p.MTU)
	case rawio.KindProtoUnreachable: // ICMP8
		switch {
		case isInit && a.state != CookieWait:
			a.rare().ICMPIgnored++
		case !isInit && now.Sub(a.lastHeard) < max(path.SRTT()+4*path.RTTVar(), a.cfg.RTOMin):
			a.rare().ICMPContradicted++
		default:
			a.down(onEnd, ErrProtoUnreachable)
		}
	case rawio.KindHostUnreachable: // a network may find a way again, but who sets an association up is told
		if isInit && a.state == CookieWait {
			a.noRoute(path, syscall.EHOSTUNREACH)
			return
		}
		fallthrough
	default:
		a.rare().ICMPIgnored++
	}
}

// Unroutable says that the link has refused a packet of the last PollTransmit because this host has no way to where it goes. It returns true
// where an INIT is to go to another address of the peer at once; without one the setup ends by a *NoRouteError. An established
// association leaves the path at once: what is in flight there goes again over another, and a HEARTBEAT finds out when there is a way again. Without another
// path the packet counts as lost.
func (a *Assoc) Unroutable(now rawio.Time, pkt *rawio.Packet, err error) (again bool) {
	p := a.pathOf(pkt.Remote.Addr().Unmap())
	if a.state == CookieWait {
		return a.noRoute(p, err)
	}
	return p != nil && a.cut(now, p)
}

// noRoute sends the INIT that went to p elsewhere, and says whether there is an address left.
func (a *Assoc) noRoute(p *path, err error) bool {
	s := a.setup
	if p != a.paths[s.path] {
		return false // it has gone elsewhere since
	}
	if s.unroutable++; s.unroutable >= len(a.paths) {
		a.down(onEnd, &NoRouteError{err})
		return false
	}
	s.path = (s.path + 1) % len(a.paths)
	s.due = true
	return true
}
