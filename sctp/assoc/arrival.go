package assoc

import (
	"net/netip"

	"github.com/rddp-go/rddp/rawio"
)

// noteArrival records the way that a packet with the right tag came. That is the own address it
// went to, and the UDP port to send to, 0 for none. The port belongs to the peer's address and may
// change at any time behind a NAT (RFC 6951 section 5.4).
func (a *Assoc) noteArrival(now rawio.Time, p *path, pkt *rawio.Packet) {
	if a.cfg.FollowInterfaces && p.lastLocalAddr != pkt.Local {
		a.noteHeard(pkt.Local.Addr().Unmap())
	}
	p.lastLocalAddr = pkt.Local
	if !p.Local.IsValid() || p.Local.Addr() == pkt.Local.Addr() { // in the latter case for its UDP port
		p.Local = pkt.Local
	}
	port := pkt.Remote.Port()
	if port == p.Remote.Port() {
		return
	}
	before := rawio.Overhead(p.Remote)
	p.Remote = netip.AddrPortFrom(p.Remote.Addr(), port)
	if gain := before - rawio.Overhead(p.Remote); gain != 0 { // encapsulation begins or ends: section 5.6
		p.mtuSearch.encapGain += gain
		p.mtuSearch.ShiftSizes(now, gain)
		a.setMTU(p, p.MTU()+gain)
	}
}
