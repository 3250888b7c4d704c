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
// DF, see ECN, nor choose a source address per packet, so it keeps to a fixed MTU of 1500 octets
// unless told otherwise (section 5.6), and a host with several addresses should set Config.Local.
package udp
