// Package tun is the link over a TUN device. The stack has its own IP addresses, which the host's
// kernel reaches only through the device. It works on Linux and needs CAP_NET_ADMIN.
//
//   - In: IP packets for the addresses of the stack. It checks their headers, joins fragments, and
//     hands up SCTP and the ICMP messages about it (RFC 9260 section 10).
//   - Out: IP packets. It also answers ICMP echo requests.
//   - Invariant: everything else is counted and dropped. Fragments that wait are bounded in octets
//     and time.
//   - Read first: tun.go, read_linux.go, write_linux.go.
//
// # Addresses
//
// The device is point to point. With Host 10.9.0.1/24 and Addrs 10.9.0.2, the kernel holds 10.9.0.1
// and routes the rest of the prefix into the device. The stack answers as 10.9.0.2. Other hosts
// reach the stack when the kernel forwards (net.ipv4.ip_forward) and they have a route. Since the
// kernel does not own the stack's addresses, an SCTP in the kernel is no trouble here.
//
// The link builds and checks IP headers itself. It answers ICMP and ICMPv6 echo requests for its
// addresses. It hands up ICMP packet-too-big and protocol-unreachable about its packets (RFC 9260
// section 10). It counts and drops the rest: other protocols, other destinations. It reassembles
// SCTP packets from IP fragments, within bounds of octets and time, and sends no ICMP about those
// that stay incomplete. A received packet costs one system call, and so does a sent one; the device
// offers no batches.
package tun
