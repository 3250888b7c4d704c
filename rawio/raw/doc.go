// Package raw is the link over raw IP sockets of protocol 132: SCTP as RFC 9260 has it, directly on
// IPv4 and IPv6. It works on Linux and needs CAP_NET_RAW.
//
// Packets leave with a header that we build (IP_HDRINCL), with DF set; that also spares the kernel
// the internet checksum it would otherwise compute over every packet. Short packets to IPv4
// addresses leave by a second socket, with a header as ours that the kernel makes, which takes less
// time for them. A socket filter (BPF) lets in only packets for SCTP ports that were bound with
// BindPort, so a link without a bound port receives nothing, and two programs on one host do not
// see each other's packets. A port is claimed for the whole network namespace, whatever the link's
// address, by binding the abstract Unix socket "@rddp/sctp/PORT".
//
// ICMP messages about our packets come in through the sockets' error queues as KindPacketTooBig and
// KindProtoUnreachable (RFC 9260 section 10). The kernel matches them to the link's address, not to
// an association: the receiver has to check the verification tag that the quote shows.
//
// See [KernelSCTP] for hosts whose kernel has an SCTP of its own.
package raw
