package sctptest

import (
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// knownAddrs are the addresses of a host that its peers know, by the host's tags. They are those
// that its INITs and INIT ACKs left from, or list, and those that packets with the tag have come
// to. From any other address a packet is out of the blue to the peer (RFC 9260 section 8.4), whose
// ABORT ends the association. So none may leave from there. None may leave to a family of addresses
// of which the peer knows none. Packets of an association that a test drives past its host are not
// judged.
type knownAddrs struct {
	testing.TB
	of   map[uint32]map[netip.Addr]bool
	came uint64 // packets
}

func (k *knownAddrs) learnAddrs(tag uint32, addrs ...netip.Addr) {
	if k.of == nil {
		k.of = make(map[uint32]map[netip.Addr]bool)
	}
	if k.of[tag] == nil {
		k.of[tag] = make(map[netip.Addr]bool)
	}
	for _, a := range addrs {
		if a.IsValid() {
			k.of[tag][a.Unmap().WithZone("")] = true
		}
	}
}

// notePacket notes a packet that has come.
func (k *knownAddrs) notePacket(p *rawio.Packet) {
	if pkt, err := wire.ParsePacket(p.Data); err == nil && p.Kind == rawio.KindSCTP && pkt.VTag() != 0 {
		k.learnAddrs(pkt.VTag(), p.Local.Addr())
	}
	k.came++
}

// checkLeaving judges a packet of an association, or of the endpoint's own, that is about to leave.
func (k *knownAddrs) checkLeaving(a *assoc.Assoc, p *rawio.Packet) {
	var pkt wire.Packet
	for _, v := range p.Vec {
		pkt = append(pkt, v...)
	}
	cs := pkt.Chunks()
	first, _ := cs.Next()
	if init, err := wire.AsInit(first); err == nil {
		k.learnAddrs(init.Tag(), p.Local.Addr())
		ps := init.Params()
		for prm, ok := ps.Next(); ok; prm, ok = ps.Next() {
			if addr, err := prm.Addr(); err == nil {
				k.learnAddrs(init.Tag(), addr)
			}
		}
		return
	}
	if a == nil || k.TB == nil || a.Stats().PacketsIn > k.came || pkt.VTag() != a.PeerTag() ||
		first.Type() == wire.ChunkAbort && first.Flags()&wire.FlagT != 0 {
		return
	}
	own, all := p.Local.Addr().Unmap().WithZone(""), k.of[a.LocalTag()]
	if !all[own] && (own.IsValid() || len(all) > 0) { // a link that does not tell its addresses chooses among them
		k.Helper()
		k.Errorf("a packet leaves from %v to %v: the peer knows %v of this host", p.Local, p.Remote, all)
	}
}

// Knows says that the peer of an association is to take packets from an address of the host.
func (h *Host) Knows(a *assoc.Assoc, addr netip.Addr) { h.known.learnAddrs(a.LocalTag(), addr) }
