package iphdr

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/rawio"
)

// ApplyMarks writes the marks of a packet, or else of the link, into a header that Put4, Put6 or
// Fragment has written.
func ApplyMarks(b []byte, p *rawio.Packet, m rawio.Mark) {
	class := ClassOf(p, m)
	if class|m.TTL == 0 && p.FlowLabel == 0 {
		return
	}
	if b[0]>>4 == 6 {
		b[0], b[1] = b[0]|class>>4, b[1]|class<<4|uint8(p.FlowLabel>>16)&0xf
		binary.BigEndian.PutUint16(b[2:], uint16(p.FlowLabel))
		if m.TTL > 0 {
			b[7] = m.TTL
		}
		return
	}
	b[1] |= class
	if m.TTL > 0 {
		b[8] = m.TTL
	}
	binary.BigEndian.PutUint16(b[10:], 0)
	binary.BigEndian.PutUint16(b[10:], ^foldChecksum(AddChecksum(0, b[:IPv4HeaderLen])))
}

// DefaultClass returns the TOS octet or traffic class of most packets of such a link. It is set on
// the sockets; only other packets carry their own.
func DefaultClass(m rawio.Mark) uint8 { return m.Class&^3 | rawio.ECT0 }

// ClassOf returns the DSCP bits of the TOS octet or traffic class, from the packet or else from the
// link.
func ClassOf(p *rawio.Packet, m rawio.Mark) uint8 {
	if p.DSCP != 0 {
		return p.DSCP << 2
	}
	return m.Class &^ 3
}
