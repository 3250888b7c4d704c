package mmsg

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// maxHeadLen is the longest header a codec puts in front of a packet: IPv6's.
const maxHeadLen = 40

// Outgoing is what a codec adds to a packet on its way out.
type Outgoing struct {
	headBuf        [maxHeadLen]byte
	headLen        int
	destination    sockaddr
	destinationLen uint32
	control        controlBuf
	controlLen     int
}

// ReserveHead returns n octets to fill that go in front of the packet, at most 40.
func (o *Outgoing) ReserveHead(n int) []byte {
	o.headLen = n
	return o.headBuf[:n]
}

// SetDestination sets the destination.
func (o *Outgoing) SetDestination(a netip.Addr, port uint16) {
	o.destinationLen = o.destination.setAddr(a, port)
}

// SetSource adds packet info with the source address, and with its interface if the address is
// bound to one. To an address without an interface the kernel sends from such a source only with
// it.
func (o *Outgoing) SetSource(a netip.Addr) {
	if a.Is4() {
		b := o.control.appendMessage(&o.controlLen, unix.IPPROTO_IP, unix.IP_PKTINFO, unix.SizeofInet4Pktinfo)
		s := a.As4()
		copy(b[4:], s[:]) // ipi_spec_dst
		return
	}
	b := o.control.appendMessage(&o.controlLen, unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, unix.SizeofInet6Pktinfo)
	s := a.As16()
	copy(b, s[:])
	binary.NativeEndian.PutUint32(b[len(s):], zoneIndex(a.Zone()))
}

// SetClass adds the TOS or traffic class, ECN field and all.
func (o *Outgoing) SetClass(class uint8, v6 bool) {
	level, typ := unix.IPPROTO_IP, unix.IP_TOS
	if v6 {
		level, typ = unix.IPPROTO_IPV6, unix.IPV6_TCLASS
	}
	b := o.control.appendMessage(&o.controlLen, level, typ, 4)
	*(*int32)(pointerTo(&b[0])) = int32(class)
}

// ipv6FlowInfo is IPV6_FLOWINFO of linux/in6.h, which package unix lacks.
const ipv6FlowInfo = 11

// SetFlowLabel adds the flow label of IPv6.
func (o *Outgoing) SetFlowLabel(label uint32) {
	binary.BigEndian.PutUint32(o.control.appendMessage(&o.controlLen, unix.IPPROTO_IPV6, ipv6FlowInfo, 4), label)
}
