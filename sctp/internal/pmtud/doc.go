// Package pmtud searches for the largest packet that a path carries: Datagram Packetization Layer
// Path MTU Discovery (RFC 8899) as a state machine without timers, packets or a clock of its own.
//
// The owner sends the probes that [Search.Due] asks for, says when one was acknowledged, and passes
// on what else it learns: packet-too-big reports, black holes, that the path is up or down. Sizes
// are octets of an SCTP packet; what IP and UDP put in front of it is [Limits.Overhead].
//
// The search first tries the largest size there can be, the local link's: mostly that is what the
// path carries. When that probe is lost it goes for common MTUs of links and tunnels below, each
// time about the middle one of those that are left, then for the middle of what is between two of
// them. A size that was lost only once is tried again in the end: losing a probe may have had other
// reasons. A report of the network names the next size to try; it never sets one.
package pmtud
