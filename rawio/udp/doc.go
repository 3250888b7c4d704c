// Package udp is the link that carries SCTP in UDP (RFC 6951). It needs no privilege and works on
// every system.
//
//   - In: datagrams to one local encapsulation port, 9899 unless configured (section 5.1); the UDP
//     source port is in the packet's Remote.
//   - Out: datagrams to the port in a packet's Remote, where 0 stands for DefaultPort.
//   - Invariant: it remembers nothing about peers. The receiver stores the port for each
//     association and address, after it has checked the verification tag (section 5.4).
//
// # Linux and other systems
//
// On Linux datagrams move in batches, with DF set. Each has its local address and ECN bits, and
// ICMP errors about them come in. Port unreachable counts as protocol unreachable (section 5.5).
// The UDP checksum is always on (section 5.3). Elsewhere, and on Linux with the build tag
// rawio_portable, packets move one at a time through the net package. That path can neither set DF
// nor see ECN. So it keeps to a fixed MTU of 1500 octets unless configured otherwise (section 5.6).
//
// It also can neither choose a source address nor report where a packet came to. Packet.Local is
// ignored on transmit: each packet leaves from the address that the system's routes give it.
// Packet.Local of a received packet is that address too. So an answer may leave from another
// address than the one that was asked. A peer discards packets from an address that it does not
// know (RFC 9260 section 8.4). On a host with several addresses set Config.Local: every packet
// leaves from there. Paths that begin at several own addresses (sctp.Config.LocalAddrs) differ only
// where the routes to the peer's addresses differ.
package udp
