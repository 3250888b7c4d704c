// Package raw is the link over raw IP sockets of protocol 132. It carries SCTP directly on IPv4 and
// IPv6, as RFC 9260 has it. It works on Linux and needs CAP_NET_RAW.
//
// Packets leave with a header that we build (IP_HDRINCL), with DF set. That also spares the kernel
// the internet checksum it would otherwise compute over every packet. Short packets to IPv4
// addresses leave by a second socket; the kernel makes the same header for them, which takes less
// time. A socket filter (BPF) lets in only packets for SCTP ports that were bound with BindPort. So
// a link without a bound port receives nothing, and two programs on one host do not see each
// other's packets. A port is claimed for the whole network namespace, whatever the link's address,
// by binding the abstract Unix socket "@rddp/sctp/PORT".
//
// ICMP messages about our packets come in through the sockets' error queues as KindPacketTooBig and
// KindProtoUnreachable (RFC 9260 section 10). The kernel matches them to the link's address, not to
// an association. The receiver has to check the verification tag in the quote.
//
// See [KernelSCTP] for hosts whose kernel has SCTP too.
package raw
