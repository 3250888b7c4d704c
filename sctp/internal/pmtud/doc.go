// Package pmtud searches for the largest packet that a path carries: Datagram Packetization Layer
// Path MTU Discovery (RFC 8899) as a state machine without timers, packets or a clock.
//
//   - In: which probes were acknowledged or lost, packet-too-big reports, black holes, and that the
//     path is up or down.
//   - Out: the probes to send ([Search.ProbeDue]) and the size to use, in octets of an SCTP packet.
//     The IP and UDP headers are [Limits.Overhead].
//   - Invariant: a report of the network names the next size to try; it never sets one.
//   - Read first: search.go; docs/dev/path-mtu.md has the picture.
//
// # The order of the sizes
//
// The search first tries the largest size there can be, the local link's. Usually the path carries
// that. When that probe is lost, the search tries the common MTUs of links and tunnels below. Each
// time it takes about the middle one of those left, and then the middle between two of them. A size
// that was lost only once is tried again in the end, because the probe may have been lost for
// another reason.
package pmtud
