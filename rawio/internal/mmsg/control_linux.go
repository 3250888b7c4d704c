package mmsg

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// controlOctets holds packet info and traffic class of either family, a flow label and a segment
// size.
const controlOctets = 120

// Control is what the control messages of a received datagram say.
type Control struct {
	Local netip.Addr // destination of the datagram: ours; invalid if the socket does not report it
	ECN   uint8

	segmentSize int // octets of each packet in it but the last (UDP_GRO), 0 for a single one
}

// extendedErr is struct sock_extended_err (linux/errqueue.h).
type extendedErr struct {
	errno      uint32
	origin     uint8
	typ        uint8
	code       uint8
	_          uint8
	info, data uint32
}

// parseMessages reads the control messages in b into c, and into e, unless that is nil. It
// allocates nothing.
func (c *Control) parseMessages(b []byte, e *extendedErr) {
	for len(b) >= unix.SizeofCmsghdr {
		h, data, rest, err := unix.ParseOneSocketControlMessage(b)
		if err != nil {
			return
		}
		b = rest
		switch {
		case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
			c.Local = netip.AddrFrom4([4]byte(data[8:12])) // ipi_addr, the destination in the header
		case h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_PKTINFO && len(data) >= unix.SizeofInet6Pktinfo:
			c.Local = netip.AddrFrom16([16]byte(data[:16]))
			if c.Local.IsLinkLocalUnicast() {
				c.Local = c.Local.WithZone(zoneName(binary.NativeEndian.Uint32(data[16:])))
			}
		case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_TOS && len(data) >= 1:
			c.ECN = data[0] & 3
		case h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_TCLASS && len(data) >= 4:
			c.ECN = uint8(binary.NativeEndian.Uint32(data)) & 3
		case h.Level == unix.SOL_UDP && h.Type == unix.UDP_GRO && len(data) >= 4:
			c.segmentSize = max(0, int(int32(binary.NativeEndian.Uint32(data))))
		case e != nil && len(data) >= int(unsafe.Sizeof(*e)) &&
			(h.Level == unix.IPPROTO_IP && h.Type == unix.IP_RECVERR || h.Level == unix.IPPROTO_IPV6 &&
				h.Type == unix.IPV6_RECVERR):
			*e = extendedErr{
				errno:  binary.NativeEndian.Uint32(data),
				origin: data[4], typ: data[5], code: data[6],
				info: binary.NativeEndian.Uint32(data[8:]), data: binary.NativeEndian.Uint32(data[12:]),
			}
		}
	}
}

// parseControl returns what parseMessages reads.
func parseControl(b []byte) (c Control, e extendedErr) {
	c.parseMessages(b, &e)
	return c, e
}

// controlBuf is aligned as the kernel wants its cmsghdr.
type controlBuf [controlOctets / 8]uint64

// appendMessage adds a control message with a payload of n octets, which it returns zeroed, at
// offset *at.
func (c *controlBuf) appendMessage(at *int, level, typ, n int) []byte {
	p := unsafe.Add(unsafe.Pointer(c), *at)
	b := unsafe.Slice((*byte)(p), unix.CmsgSpace(n))
	clear(b)
	h := (*unix.Cmsghdr)(p)
	h.Level, h.Type = int32(level), int32(typ)
	h.SetLen(unix.CmsgLen(n))
	*at += unix.CmsgSpace(n)
	return b[unix.CmsgLen(0):][:n]
}
