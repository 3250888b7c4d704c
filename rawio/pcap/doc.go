// Package pcap records what passes a rawio.Link in a pcapng file, which Wireshark and tshark read.
//
// A Link has no IP headers to show, so the record synthesises them. They are IPv4 or IPv6 with
// protocol 132, and have a UDP header too where either side has an encapsulation port (RFC 6951).
// Lengths and checksums are correct, the ECN field is the packet's, TTL is 64 and Don't Fragment is
// set. Wireshark takes UDP port 9899 for SCTP; other ports need its "Decode As". The link type is
// raw IP (101). Sent and received packets are on two capture interfaces of these names.
//
// ICMP reports (rawio.KindPacketTooBig, rawio.KindProtoUnreachable) are not recorded, because the
// router that sent them is not known. They are counted as skipped. So is a packet that no IP header
// can describe: two address families, or more than 65535 octets.
//
// [New] taps a Link. [Writer] writes the same file by hand, in virtual time for instance.
package pcap
