// Package iphdr builds and checks the IPv4 and IPv6 headers that carry SCTP. It also reads the ICMP
// messages about SCTP packets (RFC 9260 section 10). It does no I/O and allocates nothing.
package iphdr
