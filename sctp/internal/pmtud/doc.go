// Package pmtud searches for the largest packet that a path carries. It is Datagram Packetization
// Layer Path MTU Discovery (RFC 8899) as a state machine without timers, packets or a clock.
//
// The owner sends the probes that [Search.ProbeDue] asks for, and reports when one was
// acknowledged. It also passes on packet-too-big reports, black holes, and that the path is up or
// down. Sizes are octets of an SCTP packet; the IP and UDP headers are [Limits.Overhead].
//
// The search first tries the largest size there can be, the local link's: usually the path carries
// that. When that probe is lost the search tries the common MTUs of links and tunnels below. Each
// time it takes about the middle one of those left, and then the middle between two of them. A size
// that was lost only once is tried again in the end: the probe may have been lost for another
// reason. A report of the network names the next size to try; it never sets one.
package pmtud
