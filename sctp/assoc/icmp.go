package assoc

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// handleICMP processes an ICMP report about one of our packets (section 10).
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
	tag := be.Uint32(q[4:])
	isInit := tag == 0
	switch {
	case isInit: // ICMP6: the quote must reach our Initiate Tag
		if len(q) < 20 || wire.ChunkType(q[12]) != wire.ChunkInit || be.Uint32(q[16:]) != a.localTag {
			return
		}
	case tag != a.peerTag:
		return
	}
	switch p.Kind {
	case rawio.KindPacketTooBig: // ICMP7
		a.packetTooBig(now, path, p.MTU)
	case rawio.KindProtoUnreachable: // ICMP8
		if !isInit || a.state == CookieWait {
			a.down(ErrProtoUnreachable)
		}
	}
}
