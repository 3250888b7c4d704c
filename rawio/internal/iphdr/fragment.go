package iphdr

import (
	"encoding/binary"
	"net/netip"
)

// fragmentHeaderLen6 is the length of the IPv6 fragment header in octets.
const fragmentHeaderLen6 = 8

// Fragment cuts a payload into IP fragments of at most mtu octets (RFC 791 section 2.3, RFC 8200
// section 4.5). It passes each, with its headers, to send, which must not keep it. id tells the
// fragments of one packet from those of another. IPv4's has 16 bits, and 0 leaves it to the system.
// Unlike packets of Put4 the fragments do not carry DF, so that routers may cut them again. A
// payload that fits one packet is no fragment. Fragment ends with the first error of send.
func Fragment(payload []byte, mtu int, proto, ecn uint8, src, dst netip.Addr, id uint32,
	send func([]byte) error) error {
	head := IPv4HeaderLen
	if dst.Is6() {
		head = IPv6HeaderLen
	}
	if head+len(payload) <= mtu {
		b := make([]byte, head, head+len(payload))
		if dst.Is6() {
			PutIPv6Header(b, len(payload), proto, ecn, src, dst)
		} else {
			PutIPv4Header(b, len(payload), proto, ecn, src, dst)
		}
		return send(append(b, payload...))
	}
	if dst.Is6() {
		head += fragmentHeaderLen6
	}
	room := max(mtu-head, 8) &^ 7
	buf := make([]byte, head+room)
	for at := 0; at < len(payload); at += room {
		n := min(room, len(payload)-at)
		more := at+n < len(payload)
		if dst.Is6() {
			PutIPv6Header(buf, fragmentHeaderLen6+n, extFragment, ecn, src, dst)
			h := buf[IPv6HeaderLen:]
			h[0], h[1] = proto, 0
			binary.BigEndian.PutUint16(h[2:], uint16(at)|bitIf(more, 1))
			binary.BigEndian.PutUint32(h[4:], id)
		} else {
			PutIPv4Header(buf, n, proto, ecn, src, dst)
			binary.BigEndian.PutUint16(buf[4:], uint16(id))
			binary.BigEndian.PutUint16(buf[6:], uint16(at/8)|bitIf(more, 0x2000))
			binary.BigEndian.PutUint16(buf[10:], 0)
			binary.BigEndian.PutUint16(buf[10:], ^foldChecksum(AddChecksum(0, buf[:IPv4HeaderLen])))
		}
		copy(buf[head:], payload[at:at+n])
		if err := send(buf[:head+n]); err != nil {
			return err
		}
	}
	return nil
}

func bitIf(on bool, bit uint16) uint16 {
	if on {
		return bit
	}
	return 0
}
