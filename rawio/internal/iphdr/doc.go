// Package iphdr builds and checks the IPv4 and IPv6 headers that carry SCTP.
//
//   - In: octets of IP packets, and ICMP messages about SCTP packets (RFC 9260 section 10).
//   - Out: addresses, lengths and quoted packets; headers for packets to send.
//   - Invariant: it does no I/O and allocates nothing.
package iphdr
