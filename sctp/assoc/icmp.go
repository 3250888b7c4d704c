package assoc

import (
	"encoding/binary"
	"syscall"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// handleICMP processes an ICMP report about one of our packets (section 10).
//
// Protocol unreachable ends an association only if nothing was heard from the peer for an RTO. That
// is the RTO before any backing off: backed off it grows as fast as the silence does. A Linux host
// also answers so while the receive buffer of the association's raw socket is full. A peer that has
// just spoken SCTP does speak it. If it has stopped, the next report or the retransmission limit
// will show it.
func (a *Assoc) handleICMP(now rawio.Time, p *rawio.Packet) {
	path := a.findPath(p.Remote.Addr().Unmap())
	if a.state == Closed || path == nil || len(p.Data) < 8 {
		return
	}
	q := p.Data
	be := binary.BigEndian
	if be.Uint16(q) != a.id.localPort || be.Uint16(q[2:]) != a.id.peerPort {
		return
	}
	a.rareCounters().ICMPIn++
	tag := be.Uint32(q[4:])
	isInit := tag == 0
	switch {
	case isInit: // ICMP6: the quote must reach our Initiate Tag
		if len(q) < 20 || wire.ChunkType(q[12]) != wire.ChunkInit || be.Uint32(q[16:]) != a.id.localTag {
			a.rareCounters().ICMPIgnored++
			return
		}
	case tag != a.id.peerTag:
		a.rareCounters().ICMPIgnored++
		return
	}
	if a.isFromThisHost(p) {
		a.rareCounters().ICMPIgnored++
		return
	}
	switch p.Kind {
	case rawio.KindPacketTooBig: // ICMP7
		a.handlePacketTooBig(now, path, p.MTU)
	case rawio.KindProtoUnreachable: // ICMP8
		switch {
		case a.IsProtected(): // nobody vouches for it
			a.rareCounters().ICMPIgnored++
		case isInit && a.state != CookieWait:
			a.rareCounters().ICMPIgnored++
		case !isInit && now.Sub(a.health.lastHeardAt) < max(path.SRTT()+4*path.RTTVar(), a.cfg.RTOMin):
			a.rareCounters().ICMPContradicted++
		default:
			a.endAssoc(onEnd, ErrProtoUnreachable)
		}
	case rawio.KindHostUnreachable: // a network may find a way again, but a setup hears of it
		if isInit && a.state == CookieWait {
			a.handleSetupRefusal(path, syscall.EHOSTUNREACH)
			return
		}
		fallthrough
	default:
		a.rareCounters().ICMPIgnored++
	}
}
