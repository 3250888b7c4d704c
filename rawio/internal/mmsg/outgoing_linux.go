package mmsg

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// maxHead is the longest header a codec puts in front of a packet: IPv6's.
const maxHead = 40

// Outgoing is what a codec adds to a packet on its way out.
type Outgoing struct {
	head    [maxHead]byte
	headLen int
	name    sockaddr
	nameLen uint32
	ctl     controlBuf
	ctlLen  int
}

// Head returns n octets to fill that go in front of the packet, at most 40.
func (o *Outgoing) Head(n int) []byte {
	o.headLen = n
	return o.head[:n]
}

// To sets the destination.
func (o *Outgoing) To(a netip.Addr, port uint16) { o.nameLen = o.name.put(a, port) }

// From adds packet info with the source address, and with its interface, if it is of one: to an
// address that says nothing of interfaces the kernel sends from no other such source.
func (o *Outgoing) From(a netip.Addr) {
	if a.Is4() {
		b := o.ctl.append(&o.ctlLen, unix.IPPROTO_IP, unix.IP_PKTINFO, unix.SizeofInet4Pktinfo)
		s := a.As4()
		copy(b[4:], s[:]) // ipi_spec_dst
		return
	}
	b := o.ctl.append(&o.ctlLen, unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, unix.SizeofInet6Pktinfo)
	s := a.As16()
	copy(b, s[:])
	binary.NativeEndian.PutUint32(b[len(s):], zoneIndex(a.Zone()))
}

// Class adds the TOS or traffic class, ECN field and all.
func (o *Outgoing) Class(class uint8, v6 bool) {
	level, typ := unix.IPPROTO_IP, unix.IP_TOS
	if v6 {
		level, typ = unix.IPPROTO_IPV6, unix.IPV6_TCLASS
	}
	b := o.ctl.append(&o.ctlLen, level, typ, 4)
	*(*int32)(ptr(&b[0])) = int32(class)
}

// ipv6FlowInfo is IPV6_FLOWINFO of linux/in6.h, which package unix lacks.
const ipv6FlowInfo = 11

// FlowLabel adds the flow label of IPv6.
func (o *Outgoing) FlowLabel(label uint32) {
	binary.BigEndian.PutUint32(o.ctl.append(&o.ctlLen, unix.IPPROTO_IPV6, ipv6FlowInfo, 4), label)
}
