// Package udp is the link that carries SCTP in UDP (RFC 6951). It needs no privilege and works on
// every system.
//
// A Link has a single local encapsulation port (RFC 6951 section 5.1), 9899 unless configured, for
// both address families. It remembers nothing about peers: a received packet's Remote has the UDP
// source port it came from, and a packet leaves for the port in its Remote, where 0 stands for
// DefaultPort. Storing the port per association and address, after the verification tag is checked
// (section 5.4), is the receiver's part.
//
// On Linux datagrams move in batches, with DF set, with the local address and ECN bits of each one,
// and with ICMP errors about them: port unreachable counts as protocol unreachable (section 5.5).
// The UDP checksum is always on (section 5.3). Elsewhere, and on Linux with the build tag
// rawio_portable, packets move one at a time through the net package. That path can neither set
// DF nor see ECN, so it keeps to a fixed MTU of 1500 octets unless told otherwise (section 5.6).
//
// Nor can it choose a source address, or tell where a packet came to. Packet.Local is ignored on
// transmit: each packet leaves from the address that the system's routes give it, and Packet.Local
// of one that was received is that address. So an answer may leave from another address than the
// one that was asked, and a peer discards what comes from an address that it does not know (RFC
// 9260 section 8.4). On a host with several addresses set Config.Local: every packet leaves from
// there. Paths that begin at several own addresses (sctp.Config.LocalAddrs) take different ways
// only where the routes to the peer's addresses differ.
package udp
