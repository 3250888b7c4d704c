// Package pcap records what passes a rawio.Link in a pcapng file, which Wireshark and tshark read.
//
//   - In: the packets of the Link that [New] taps. [Writer] writes the same file by hand, in
//     virtual time for instance.
//   - Out: packets with IP headers, which a Link does not have: they are synthesised.
//   - Invariant: lengths and checksums are correct, and the Link behaves as if there were no tap.
//
// # What is in the file
//
// The IP headers are IPv4 or IPv6 with protocol 132. A UDP header follows where either side has an
// encapsulation port (RFC 6951). The ECN field is the packet's, TTL is 64 and Don't Fragment is
// set. Wireshark takes UDP port 9899 for SCTP; other ports need its "Decode As". The link type is
// raw IP (101). Sent and received packets are on two capture interfaces of these names.
//
// ICMP reports (rawio.KindPacketTooBig, rawio.KindProtoUnreachable) are not recorded, because the
// router that sent them is not known. They are counted as skipped. So is a packet that no IP header
// can describe: two address families, or more than 65535 octets.
//
// [New] taps a Link. [Writer] writes the same file by hand, in virtual time for instance.
package pcap
