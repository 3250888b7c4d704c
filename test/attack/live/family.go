//go:build linux

package main

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// family is all that depends on the version of IP: who is where, and what routers say.
type family struct {
	name  string
	ether uint16 // its EtherType

	// The addresses of the three hosts. Everything under attackers and innocents is routed to the
	// attacker, who answers for the first and watches what the second would get.
	victimAddr, friendAddr netip.Addr
	friendOther            netip.Addr // a second one of the honest client's host
	subnet                 int        // prefix length of the wires
	gatewayIn, gatewayOut  netip.Addr
	attackers, innocents   netip.Prefix

	protocol, port, tooBig icmpError // ICMP reports
	leastMTU               uint32    // that a report may ask for
	badMTUs                []uint32

	// Addresses that are no other host's. The kernel drops packets from such addresses of IPv4.
	nobodies []netip.Addr

	// What fits an INIT: parameters without a value and addresses in one packet, addresses in the
	// longest.
	params, addrs, mostAddrs int
}

// icmpError is a kind of ICMP error message.
type icmpError struct {
	name      string
	typ, code uint8
	pointer   uint32 // to what is wrong in the quoted packet
}

// The reports are those of RFC 792 and RFC 1191.
var ipv4 = family{
	name: "IPv4", ether: unix.ETH_P_IP,
	victimAddr: netip.MustParseAddr("10.77.1.1"), friendAddr: netip.MustParseAddr("10.77.1.2"),
	friendOther: netip.MustParseAddr("10.77.1.3"),
	subnet:      24, gatewayIn: netip.MustParseAddr("10.77.2.1"), gatewayOut: netip.MustParseAddr("10.77.2.2"),
	attackers: netip.MustParsePrefix("10.88.0.0/16"), innocents: netip.MustParsePrefix("10.99.0.0/16"),
	protocol: icmpError{"ICMP protocol unreachable", 3, 2, 0},
	port:     icmpError{"ICMP port unreachable", 3, 3, 0},
	tooBig:   icmpError{"ICMP fragmentation needed", 3, 4, 0},
	leastMTU: 68, badMTUs: []uint32{0},
	params: 360, addrs: 175, mostAddrs: 8000,
}

// The reports are those of RFC 4443: what IPv4 calls "protocol unreachable" is a parameter problem.
var ipv6 = family{
	name: "IPv6", ether: unix.ETH_P_IPV6,
	victimAddr: netip.MustParseAddr("fd00:77:1::1"), friendAddr: netip.MustParseAddr("fd00:77:1::2"),
	friendOther: netip.MustParseAddr("fd00:77:1::3"),
	subnet:      64, gatewayIn: netip.MustParseAddr("fd00:77:2::1"), gatewayOut: netip.MustParseAddr("fd00:77:2::2"),
	attackers: netip.MustParsePrefix("fd00:88::/64"), innocents: netip.MustParsePrefix("fd00:99::/64"),
	protocol: icmpError{"ICMPv6 unrecognized next header", 4, 1, 6},
	port:     icmpError{"ICMPv6 port unreachable", 1, 4, 0},
	tooBig:   icmpError{"ICMPv6 packet too big", 2, 0, 0},
	leastMTU: 1280, badMTUs: []uint32{0, 68, 1279}, // RFC 8201 section 4: less than 1280 is discarded
	nobodies: []netip.Addr{netip.IPv6Unspecified(), netip.IPv6Loopback(), netip.MustParseAddr("ff02::1"),
		netip.MustParseAddr("ff0e::99"),
		netip.MustParseAddr("::ffff:10.99.0.1"), netip.MustParseAddr("fd00:77:1::1"),
		netip.MustParseAddr("fd00:77:2::1")},
	params: 350, addrs: 70, mostAddrs: 3200,
}

// familyOf is IPv6 or IPv4.
func familyOf(six bool) *family {
	if six {
		return &ipv6
	}
	return &ipv4
}

// prefixOf is the wire that an address is on.
func (f *family) prefixOf(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, f.subnet) }

// victimPort is one of the victim's ports.
func (f *family) victimPort(port uint16) netip.AddrPort {
	return netip.AddrPortFrom(f.victimAddr, port)
}

// clientAddr is the honest client's end, in whose name blind attackers speak.
func (f *family) clientAddr() netip.AddrPort { return netip.AddrPortFrom(f.friendAddr, friendSCTP) }

// hostAddr returns the i-th address in a network.
func hostAddr(n netip.Prefix, i int) netip.Addr {
	a := n.Addr().As16()
	i++
	a[14], a[15] = a[14]|byte(i/250), byte(1+i%250)
	return netip.AddrFrom16(a).Unmap()
}
