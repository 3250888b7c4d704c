// Package raw is the link over raw IP sockets of protocol 132. It carries SCTP directly on IPv4 and
// IPv6, as RFC 9260 has it. It works on Linux and needs CAP_NET_RAW. See [KernelSCTP] for hosts
// whose kernel has SCTP too.
//
//   - In: packets for SCTP ports that were bound with BindPort, by a socket filter (BPF); ICMP
//     messages about our packets.
//   - Out: packets with a header that we build (IP_HDRINCL), with DF set.
//   - Invariant: a link without a bound port receives nothing, and two programs on one host do not
//     see each other's packets.
//
// # Details
//
// The own header spares the kernel the internet checksum over every packet. Short packets to IPv4
// addresses leave by a second socket; the kernel makes the same header for them, which takes less
// time. A port is claimed for the whole network namespace, whatever the link's address, by binding
// the abstract Unix socket "@rddp/sctp/PORT".
//
// ICMP messages about our packets come in through the sockets' error queues as KindPacketTooBig and
// KindProtoUnreachable (RFC 9260 section 10). The kernel matches them to the link's address, not to
// an association. The receiver has to check the verification tag in the quote.
//
// See [KernelSCTP] for hosts whose kernel has SCTP too.
package raw
