// Package tun is the link over a TUN device: the stack has IP addresses of its own, which the
// host's kernel knows only as reachable through the device. It works on Linux and needs
// CAP_NET_ADMIN.
//
// The device is point to point. With Host 10.9.0.1/24 and Addrs 10.9.0.2, the kernel holds
// 10.9.0.1, routes the rest of the prefix into the device, and the stack answers as 10.9.0.2. Other
// hosts reach the stack when the kernel forwards (net.ipv4.ip_forward) and they have a route. Since
// the kernel does not own the stack's addresses, an SCTP in the kernel is no trouble here.
//
// The link builds and checks IP headers itself. It answers ICMP and ICMPv6 echo requests for its
// addresses, hands up ICMP packet-too-big and protocol-unreachable about its packets (RFC 9260
// section 10), and counts and drops the rest: other protocols, other destinations. SCTP packets
// that come in IP fragments it puts together, within bounds of octets and time, and sends no ICMP
// about those that stay incomplete. A received packet costs one system call, and so does a sent
// one; the device offers no batches.
package tun
