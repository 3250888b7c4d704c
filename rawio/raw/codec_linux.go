package raw

import (
	"net/netip"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/iphdr"
	"github.com/rddp-go/rddp/rawio/internal/mmsg"
)

// commonHeaderLen is the length of the SCTP common header in octets (RFC 9260 section 3.1).
const commonHeaderLen = 12

// headerCodec builds and strips the IP headers of one family.
type headerCodec struct {
	link *Link
	v6   bool
}

// Decode implements mmsg.Codec. An IPv4 raw socket delivers the whole packet. An IPv6 one delivers
// what follows the headers, with the rest in control messages. The kernel has reassembled
// fragments.
func (c *headerCodec) Decode(m *mmsg.Message, p *rawio.Packet) bool {
	p.Remote = netip.AddrPortFrom(m.From.Addr(), 0)
	if c.v6 {
		p.Local, p.ECN, p.Data = netip.AddrPortFrom(m.Control.Local, 0), m.Control.ECN, m.Data
		return len(p.Data) >= commonHeaderLen
	}
	ip, err := iphdr.ParseIPv4(m.Data)
	if err != nil || ip.Proto != iphdr.ProtoSCTP || len(ip.Payload) < commonHeaderLen {
		return false
	}
	p.Local, p.ECN, p.Data = netip.AddrPortFrom(ip.Dst, 0), ip.ECN, ip.Payload
	return true
}

// DecodeError implements mmsg.Codec. With the header ours, the kernel quotes from the IP header on.
func (c *headerCodec) DecodeError(e *mmsg.ICMPError, p *rawio.Packet) bool {
	kind, mtu, ok := iphdr.ClassifyICMP(e.V6, false, e.Type, e.Code, e.Info)
	if !ok {
		return false
	}
	src, _, sctp, ok := iphdr.ParseQuote(e.Data)
	if !ok || !c.link.ports.isBound(uint16(sctp[0])<<8|uint16(sctp[1]), src) {
		return false // another program's packet
	}
	if src.IsLinkLocalUnicast() {
		src = src.WithZone(e.To.Addr().Zone())
	}
	p.Kind, p.MTU, p.Data = kind, mtu, sctp
	p.Local, p.Remote = netip.AddrPortFrom(src, 0), netip.AddrPortFrom(e.To.Addr(), 0)
	return true
}

// Encode implements mmsg.Codec: it writes the IP header.
func (c *headerCodec) Encode(p *rawio.Packet, o *mmsg.Outgoing) error {
	n, l := p.Len(), c.link
	if n > iphdr.PayloadLimit(1<<30, c.v6) {
		return rawio.ErrTooLong
	}
	src, dst := l.sourceFor(p.Local.Addr().Unmap()), p.Remote.Addr().Unmap()
	if src.IsValid() && src.Is6() != c.v6 {
		return &mmsg.FamilyError{Src: src, Dst: dst}
	}
	if src.IsValid() && src != l.cfg.Local {
		o.SetSource(src) // for routes that depend on the source
	}
	var head []byte
	if c.v6 {
		if !src.IsValid() {
			src = l.routes.Lookup(src, dst).Source // the kernel fills in IPv4's only
		}
		head = o.ReserveHead(iphdr.IPv6HeaderLen)
		iphdr.PutIPv6Header(head, n, iphdr.ProtoSCTP, p.ECN, src, dst)
	} else {
		head = o.ReserveHead(iphdr.IPv4HeaderLen)
		iphdr.PutIPv4Header(head, n, iphdr.ProtoSCTP, p.ECN, src, dst)
	}
	iphdr.ApplyMarks(head, p, l.cfg.Mark)
	o.SetDestination(dst, 0)
	return nil
}
