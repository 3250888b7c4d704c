// Package asconf is dynamic address reconfiguration (RFC 5061) of one association, as two state
// machines without timers, packets or a clock.
//
//   - In: requests of the program ([Requester.Ask]), ASCONF and ASCONF-ACK chunks of the peer.
//   - Out: those chunks, and calls of a [Peer], which are the peer's addresses.
//   - Invariant: one own ASCONF is under way at most, and is sent again as it was. Each ASCONF of the
//     peer is performed once, and answered alike each time. What is kept for that is bounded.
//   - Read first: responder.go, then requester.go.
package asconf
