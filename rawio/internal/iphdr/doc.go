// Package iphdr builds and checks the IPv4 and IPv6 headers that carry SCTP, and reads the ICMP
// messages that speak about SCTP packets (RFC 9260 section 10). It does no I/O and allocates
// nothing.
package iphdr
