// Package rawio moves whole SCTP packets (RFC 9260 section 3) between a protocol stack and whatever
// carries them. It knows addresses, lengths and memory, and nothing of what a packet says.
//
// A [Link] reads and writes batches of [Packet]. On the way in a packet is a view into a
// reference-counted [Buf]; on the way out it is a vector of pieces that the link writes in order.
// Links live in the packages below: raw IP sockets, a TUN device, UDP encapsulation (RFC 6951), an
// in-process pair (mem), a tap that records any of them (pcap), and, for tests in virtual time, a
// simulated network that is no Link but is fed with the same packets (simnet).
//
// Two lengths must not be confused. An IP-level MTU counts the IP header, as ip(8) and ICMP do; it
// is what links are configured with. [Link.MTU] is the room left for the SCTP packet; [Overhead] is
// the difference.
package rawio
